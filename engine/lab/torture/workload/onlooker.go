//go:build linux

package workload

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// Onlooker reads lists a few times a second, as people do, and records what they show: of the
// newest runs, and of some that ended long ago.
type Onlooker struct {
	Log     *history.Log
	clients []*kagzi.Client // one per server
	steps   bool            // it lists steps too
	random  *rand.Rand
	known   []string // runs that it was shown as ended
}

const (
	readEvery = time.Second // three lists
	readRows  = 10          // of a list of runs
	knownRuns = 1000        // that it reads again
)

// NewOnlooker returns the onlooker of a load. It lists no steps if their payloads are of almost the
// maximum size.
func NewOnlooker(m Mix, seed uint64, servers []string) (*Onlooker, error) {
	o := &Onlooker{Log: history.NewLog("onlooker"), steps: m.Filler == 0, random: rand.New(rand.NewPCG(seed, 1))}
	for _, address := range servers {
		c, err := kagzi.NewClient(kagzi.ClientOptions{Profile: kagzi.NoProfile, Address: address, Logger: Quiet})
		if err != nil {
			o.close()
			return nil, err
		}
		o.clients = append(o.clients, c)
	}
	return o, nil
}

func (o *Onlooker) close() {
	for _, c := range o.clients {
		c.Close()
	}
}

// Start begins the reading; stop ends it.
func (o *Onlooker) Start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() {
		tick := time.NewTicker(readEvery)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-tick.C:
				o.read(ctx, o.clients[n%len(o.clients)])
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		group.Wait()
		o.close()
	}
}

// read reads the newest runs, and one that has ended, perhaps from another server.
func (o *Onlooker) read(ctx context.Context, c *kagzi.Client) {
	o.runs(ctx, c, nil)
	if len(o.known) == 0 {
		return
	}
	run := o.known[o.random.IntN(len(o.known))]
	o.runs(ctx, c, &run)
	if o.steps {
		o.stepsOf(ctx, c, run)
	}
}

// runs lists the newest runs or, with an id, that one.
func (o *Onlooker) runs(ctx context.Context, c *kagzi.Client, id *string) {
	ctx, cancel := context.WithTimeout(ctx, CallLimit)
	defer cancel()
	asked := history.Now()
	answer, err := kagziv1.NewWorkflowServiceClient(c.Conn()).ListWorkflows(
		ctx, &kagziv1.ListWorkflowsRequest{Search: id, Page: &kagziv1.PageRequest{PageSize: readRows}})
	if err != nil {
		return // clients check whether calls are answered
	}
	for _, w := range answer.Workflows {
		e := history.Event{Op: history.Listed, Run: w.RunId, Status: StatusName(w.Status)}
		if w.FinishedAt != nil {
			e.Code = strings.TrimPrefix(w.GetError().GetCode().String(), "ERROR_CODE_")
			e.Message = history.Digest([]byte(w.GetError().GetMessage()))
			e.Ended = w.FinishedAt.AsTime().UnixMicro()
			o.remember(w.RunId)
		}
		o.Log.Note(e, asked)
	}
}

// remember keeps an ended run; if there are many, it replaces another.
func (o *Onlooker) remember(run string) {
	if len(o.known) < knownRuns {
		o.known = append(o.known, run)
		return
	}
	o.known[o.random.IntN(knownRuns)] = run
}

// stepsOf lists the steps of a run.
func (o *Onlooker) stepsOf(ctx context.Context, c *kagzi.Client, run string) {
	ctx, cancel := context.WithTimeout(ctx, CallLimit)
	defer cancel()
	asked := history.Now()
	answer, err := kagziv1.NewAdminServiceClient(c.Conn()).ListSteps(ctx, &kagziv1.ListStepsRequest{RunId: run})
	if err != nil {
		return
	}
	e := history.Event{Op: history.ListedSteps, Run: run, Steps: map[string]string{},
		Part: answer.Page.GetNextPageToken() != ""}
	for _, s := range answer.Steps {
		if s.Kind == kagziv1.StepKind_STEP_KIND_FUNCTION && s.Status == kagziv1.StepStatus_STEP_STATUS_COMPLETED {
			e.Steps[s.Name] = history.Digest(s.Output.GetData())
		}
	}
	o.Log.Note(e, asked)
}
