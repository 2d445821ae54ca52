//go:build linux

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/engine/lab/torture/check"
	"github.com/kagzi/kagzi/engine/lab/torture/history"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// load is the clients: they start runs, cancel some, and wait for all.
type load struct {
	mix     mix
	seed    uint64
	rate    float64 // starts a second, of all clients
	clients []*client

	answers  answers
	expected sync.Map // request id: check.Wanted
	started  atomic.Int64
	ended    atomic.Int64
	group    sync.WaitGroup
}

// client is one application with a connection of its own.
type client struct {
	sdk *kagzi.Client
	log *history.Log
}

// callLimit is how long a client waits for one answer before it asks again.
const callLimit = 5 * time.Second

var quiet = slog.New(slog.DiscardHandler)

func newLoad(m mix, seed uint64, rate float64, servers []*server, clients int) (*load, error) {
	l := &load{mix: m, seed: seed, rate: rate}
	for i := range clients {
		address := servers[i%len(servers)].door.address()
		log := history.NewLog(fmt.Sprintf("client-%d", i+1))
		c, err := kagzi.NewClient(kagzi.ClientOptions{Profile: kagzi.NoProfile, Address: address, Logger: quiet,
			DialOptions: []grpc.DialOption{grpc.WithStatsHandler(&l.answers), triedIn(log)}})
		if err != nil {
			return nil, err
		}
		l.clients = append(l.clients, &client{c, log})
	}
	return l, nil
}

// run starts errands at the load's rate, or as fast as earlier ones end where only so many may be open, until ctx ends. Their clients go on until
// each has come to its end, or rest ends.
func (l *load) run(ctx, rest context.Context) {
	tick := time.NewTicker(time.Duration(float64(time.Second) / l.rate))
	defer tick.Stop()
	open := make(chan struct{}, cmp.Or(l.mix.AtOnce, math.MaxInt32))
	for n := 0; ; n++ {
		select {
		case open <- struct{}{}:
		case <-ctx.Done():
			return
		}
		c := l.clients[n%len(l.clients)]
		l.group.Go(func() {
			l.serve(rest, c, l.mix.errand(l.seed, n))
			<-open
		})
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// wait blocks until all that was begun has ended.
func (l *load) wait() { l.group.Wait() }

func (l *load) close() {
	for _, c := range l.clients {
		c.sdk.Close()
	}
}

// serve is the life of one errand.
func (l *load) serve(ctx context.Context, c *client, e errand) {
	input, err := json.Marshal(e.job)
	if err != nil {
		panic(err) // a struct of texts and numbers
	}
	l.expected.Store(e.Name, check.Wanted{Type: jobType, Queue: "default", Input: history.Digest(input), OnFailure: e.handler()})
	l.started.Add(1)
	twins := 1
	if e.Twice {
		twins = 2
	}
	var run *kagzi.Run
	var starting sync.WaitGroup
	for twin := range twins {
		starting.Go(func() {
			if r := c.start(ctx, e); twin == 0 {
				run = r
			}
		})
	}
	starting.Wait()
	if run == nil {
		return
	}
	if e.Started != nil {
		e.Started(run)
	}
	if e.Cancel > 0 {
		select {
		case <-time.After(e.Cancel):
		case <-ctx.Done():
			return
		}
		c.cancel(ctx, run)
	}
	if c.awaitEnd(ctx, run) {
		l.ended.Add(1)
	}
}

// start starts the errand's run, again and again until it is acknowledged.
func (c *client) start(ctx context.Context, e errand) *kagzi.Run {
	o := kagzi.StartOptions{RequestID: e.Name, OnFailure: e.handler()}
	for ctx.Err() == nil {
		event := c.log.Begin(history.Event{Op: history.Start, Request: e.Name})
		call, cancel := context.WithTimeout(ctx, callLimit)
		run, err := kagzi.Start(call, c.sdk, jobType, e.job, o)
		cancel()
		if event.Outcome, event.Code = outcome(err); err == nil {
			event.Run = run.ID()
		}
		c.log.Finish(event)
		if err == nil {
			return run
		}
		breathe(ctx)
	}
	return nil
}

// cancel cancels the run, again and again until it is known what came of it.
func (c *client) cancel(ctx context.Context, run *kagzi.Run) {
	for ctx.Err() == nil {
		event := c.log.Begin(history.Event{Op: history.Cancel, Run: run.ID()})
		call, cancel := context.WithTimeout(ctx, callLimit)
		err := run.Cancel(call, "torture")
		cancel()
		event.Outcome, event.Code = outcome(err)
		var refusal *kagzi.Error
		if errors.As(err, &refusal) {
			event.Status = refusal.Metadata["status"]
		}
		c.log.Finish(event)
		if event.Outcome != history.Unknown {
			return
		}
		breathe(ctx)
	}
}

// awaitEnd waits for the run's end and looks at it twice.
func (c *client) awaitEnd(ctx context.Context, run *kagzi.Run) bool {
	_, err := run.Wait(ctx)
	return err == nil && c.lookTwice(ctx, run.ID())
}

// lookTwice reads the run until it has had two answers. One that is not there any more was lost: no other answer will come, and the history
// has what the run was.
func (c *client) lookTwice(ctx context.Context, id string) bool {
	for looks := 0; looks < 2; {
		if ctx.Err() != nil {
			return false
		}
		switch err := c.observe(ctx, id); {
		case err == nil:
			looks++
		case status.Code(err) == codes.NotFound:
			return false
		default:
			breathe(ctx)
		}
	}
	return true
}

// observe reads the run as it stands.
func (c *client) observe(ctx context.Context, id string) error {
	event := c.log.Begin(history.Event{Op: history.Observe, Run: id})
	call, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	answer, err := kagziv1.NewWorkflowServiceClient(c.sdk.Conn()).GetWorkflow(call, &kagziv1.GetWorkflowRequest{RunId: id}, grpc.WaitForReady(true))
	if event.Outcome, event.Code = outcome(err); err == nil {
		w := answer.Workflow
		event.Status = statusName(w.Status)
		event.Code = strings.TrimPrefix(w.GetError().GetCode().String(), "ERROR_CODE_")
		event.Message = history.Digest([]byte(w.GetError().GetMessage()))
		if w.FinishedAt != nil {
			event.Ended = w.FinishedAt.AsTime().UnixMicro()
			event.Value = history.Digest(w.GetOutput().GetData())
			event.Answer = fmt.Sprint(event.Status, " ", event.Value, " ", event.Code, " ", w.FinishedAt.AsTime().UnixMicro(), " ", w.Attempts)
		}
	}
	c.log.Finish(event)
	return err
}

// outcome is what an error of a call tells of its effect.
func outcome(err error) (history.Outcome, string) {
	if err == nil {
		return history.OK, ""
	}
	switch status.Code(err) {
	case codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.FailedPrecondition, codes.ResourceExhausted,
		codes.PermissionDenied, codes.Unauthenticated, codes.OutOfRange, codes.Unimplemented:
		var refusal *kagzi.Error
		if errors.As(err, &refusal) {
			return history.Refused, string(refusal.Code)
		}
		return history.Refused, status.Code(err).String()
	}
	return history.Unknown, status.Code(err).String()
}

// refusal is outcome for a call of the plain API, with where its run stands.
func refusal(err error) (o history.Outcome, code, stands string) {
	o, code = outcome(err)
	for _, d := range status.Convert(err).Details() {
		if detail, ok := d.(*kagziv1.ErrorDetail); ok {
			code = strings.TrimPrefix(detail.Code.String(), "ERROR_CODE_")
			stands = detail.Metadata["status"]
		}
	}
	return o, code, stands
}

// breathe keeps a client whose call has failed from asking again at once.
func breathe(ctx context.Context) {
	select {
	case <-time.After(100 * time.Millisecond):
	case <-ctx.Done():
	}
}
