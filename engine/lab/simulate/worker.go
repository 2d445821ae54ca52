package simulate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/lab/host"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// worker is one life of a worker process.
type worker struct {
	sim   *simulation
	index int
	host  *host.Host
	sdk   *kagzi.Worker
	stop  context.CancelFunc
	group sync.WaitGroup
	dead  atomic.Bool
	nonce atomic.Int64 // counts the step bodies that it began
	life  string
}

// The workflow types.
const (
	programType = "program"
	handlerType = "handler"
)

// caches are how many parked runs the workers keep in memory: a thousand, two, and none.
var caches = []int{0, 2, -1}

func (w *simulation) hire(index int) *worker {
	w.lives++
	k := &worker{sim: w, index: index, host: host.New(w.network.connect), life: fmt.Sprintf("w%d.%d", index, w.lives)}
	k.sdk = kagzi.NewWorker(kagzi.WorkerOptions{
		Profile: kagzi.NoProfile, Address: "passthrough:///simulation", Namespace: namespace, Queue: "default",
		Logger:        quiet,
		Cache:         caches[index%len(caches)],
		MaxConcurrent: w.plan.Workers[index], DrainTimeout: time.Second, HandleSignals: []os.Signal{},
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(k.host.Dial)},
	})
	kagzi.Handle(k.sdk, programType, k.program)
	kagzi.Handle(k.sdk, handlerType, func(kagzi.Context, kagzi.WorkflowFailedEvent) (string, error) {
		return "handled", nil
	})
	ctx, stop := context.WithCancel(context.Background())
	k.stop = stop
	k.group.Go(func() { _ = k.sdk.Run(ctx) })
	return k
}

// die kills the process: nobody hears from it again, and what its code still does in the bubble
// does not count.
func (k *worker) die() {
	k.dead.Store(true)
	k.host.Die()
}

// close drains the worker and waits for it.
func (k *worker) close() {
	k.stop()
	k.group.Wait()
}

// activation is one execution of a run's code.
type activation struct {
	worker *worker
	run    engine.ID
	// the steps that had a result when the run was handed out; a task that was long in transit
	// lacks what another worker recorded since
	done map[string]bool
}

// line is one line of execution: what steps told its code so far.
type told map[string]string

// program is the code of every workflow: it does what its input says.
func (k *worker) program(ctx kagzi.Context, p Program) (string, error) {
	id, err := engine.ParseID(kagzi.Info(ctx).RunID)
	if err != nil {
		return "", err
	}
	s := &activation{worker: k, run: id, done: k.sim.watch.known(k.sdk.ID(), id)}
	heard := told{}
	var results []string
	for _, a := range p.Acts {
		result, err := s.act(ctx, heard, a)
		if err != nil {
			return "", err
		}
		results = append(results, result)
	}
	switch {
	case p.Fail:
		return "", errors.New("the program fails")
	case p.Next != nil:
		return kagzi.ContinueAsNew[string](ctx, *p.Next)
	}
	return strings.Join(results, ","), nil
}

func (s *activation) act(ctx kagzi.Context, heard told, a Act) (string, error) {
	switch a.Do {
	case "step":
		return s.step(ctx, heard, a)
	case "branches":
		return s.branches(ctx, heard, a)
	case "sleep":
		return s.sleep(ctx, a)
	case "signal":
		v, err := kagzi.WaitSignal[string](ctx, a.Name, a.For)
		if errors.Is(err, kagzi.ErrTimeout) {
			return "nothing", nil
		}
		return v, err
	case "child":
		v, err := kagzi.RunChild[string](ctx, a.Name, programType, *a.Child,
			kagzi.ChildOptions{ParentClose: kagzi.ParentClosePolicy(a.Close)})
		if failed := (*kagzi.StepError)(nil); errors.As(err, &failed) && !errors.Is(err, kagzi.ErrCancelled) {
			return "failed", nil
		}
		return v, err
	case "note":
		kagzi.Note(ctx, "noted")
	}
	return "", nil
}

func (s *activation) step(ctx kagzi.Context, heard told, a Act) (string, error) {
	began := false
	options := []kagzi.StepOption{kagzi.Retry{Attempts: a.Tries, Initial: 500 * time.Millisecond}}
	if a.Limit > 0 {
		options = append(options, kagzi.Timeout(a.Limit))
	}
	v, err := kagzi.Step(ctx, a.Name, func(ctx context.Context) (string, error) {
		began = true
		return s.body(ctx, heard, a)
	}, options...)
	if err != nil {
		return "", err
	}
	if !began && !s.worker.dead.Load() {
		s.worker.sim.report.told(2, s.recorded(a.Name) == v,
			"run %s: the code was told %q of step %s, which is recorded as %q", s.run, v, a.Name, s.recorded(a.Name))
	}
	heard[a.Name] = v
	return v, nil
}

// recorded returns a step's result in the database; empty if it has none.
func (s *activation) recorded(step string) string {
	row := s.worker.sim.db.Run(s.run)
	if row == nil {
		return ""
	}
	if r := row.Latest(step); r != nil && r.Status == engine.StepCompleted {
		return strings.Trim(string(r.Output.Data), `"`)
	}
	return ""
}

// body is the code of a step: its result names this execution.
func (s *activation) body(ctx context.Context, heard told, a Act) (string, error) {
	k := s.worker
	if !k.dead.Load() {
		r := k.sim.report
		r.note("bodies")
		k.sim.bodyBegins(k.index)
		r.told(9, !s.done[a.Name], "run %s: step %s runs again, although its result was recorded when %s was handed it",
			s.run, a.Name, k.life)
		for name, v := range heard {
			r.told(2, s.recorded(name) == v,
				"run %s: step %s begins, and the result %q of step %s before it is not recorded (but %q)", s.run,
				a.Name, v, name, s.recorded(name))
		}
	}
	timer := time.NewTimer(a.For)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if kagzi.Attempt(ctx) <= a.Fails {
		return "", errors.New("this attempt fails")
	}
	return fmt.Sprintf("%s of %s/%d", a.Name, k.life, k.nonce.Add(1)), nil
}

func (s *activation) branches(ctx kagzi.Context, heard told, a Act) (string, error) {
	var futures []*kagzi.Future[string]
	for _, part := range a.Parts {
		own := told{}
		for name, v := range heard {
			own[name] = v
		}
		futures = append(futures, kagzi.Go(ctx, func(ctx kagzi.Context) (string, error) {
			return s.act(ctx, own, part)
		}))
	}
	var results []string
	var failed error
	for i, f := range futures {
		v, err := f.Wait(ctx)
		failed = errors.Join(failed, err)
		results = append(results, v)
		if a.Parts[i].Do == "step" && err == nil {
			heard[a.Parts[i].Name] = v
		}
	}
	slices.Sort(results)
	return strings.Join(results, "+"), failed
}

func (s *activation) sleep(ctx kagzi.Context, a Act) (string, error) {
	kagzi.Sleep(ctx, a.Name, a.For)
	if s.worker.dead.Load() || ctx.Err() != nil {
		return "", ctx.Err()
	}
	r := s.worker.sim.report
	r.note("sleeps")
	if row := s.worker.sim.db.Run(s.run); row != nil {
		if step := row.Latest(a.Name); step != nil {
			now := time.Now()
			r.told(10, !now.Before(step.WakeAt) && step.WakeAt.Sub(step.StartedAt) >= a.For,
				"run %s: timer %s of %s was set at %s, to end at %s, and ended at %s", s.run, a.Name, a.For,
				step.StartedAt, step.WakeAt, now)
		}
	}
	return "slept", nil
}
