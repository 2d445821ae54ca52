//go:build linux

package workload

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

	"github.com/kagzi/kagzi/engine/lab/torture/fixture"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/engine/lab/torture/check"
	"github.com/kagzi/kagzi/engine/lab/torture/history"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// Load is the clients: they start runs, cancel some, and wait for all.
type Load struct {
	Mix     Mix
	Seed    uint64
	rate    float64 // starts a second, over all clients
	Clients []*Client

	Answers  answers
	Expected sync.Map // request id: check.Wanted
	Started  atomic.Int64
	Ended    atomic.Int64
	group    sync.WaitGroup
}

// Client is one application with its own connection.
type Client struct {
	SDK *kagzi.Client
	Log *history.Log
}

// CallLimit is how long a client waits for an answer before it retries.
const CallLimit = 5 * time.Second

var Quiet = slog.New(slog.DiscardHandler)

func NewLoad(m Mix, seed uint64, rate float64, servers []string, clients int) (*Load, error) {
	l := &Load{Mix: m, Seed: seed, rate: rate}
	for i := range clients {
		address := servers[i%len(servers)]
		log := history.NewLog(fmt.Sprintf("client-%d", i+1))
		c, err := kagzi.NewClient(kagzi.ClientOptions{Profile: kagzi.NoProfile, Address: address, Logger: Quiet,
			DialOptions: []grpc.DialOption{grpc.WithStatsHandler(&l.Answers), TriedIn(log)}})
		if err != nil {
			return nil, err
		}
		l.Clients = append(l.Clients, &Client{c, log})
	}
	return l, nil
}

// Run starts errands until ctx ends: at the load's rate or, if only some may be open, as fast as
// earlier ones end. Their clients continue until each has ended, or rest ends.
func (l *Load) Run(ctx, rest context.Context) {
	tick := time.NewTicker(time.Duration(float64(time.Second) / l.rate))
	defer tick.Stop()
	open := make(chan struct{}, cmp.Or(l.Mix.AtOnce, math.MaxInt32))
	for n := 0; ; n++ {
		select {
		case open <- struct{}{}:
		case <-ctx.Done():
			return
		}
		c := l.Clients[n%len(l.Clients)]
		l.group.Go(func() {
			l.Serve(rest, c, l.Mix.Errand(l.Seed, n))
			<-open
		})
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Wait blocks until everything that was begun has ended.
func (l *Load) Wait() { l.group.Wait() }

func (l *Load) Close() {
	for _, c := range l.Clients {
		c.SDK.Close()
	}
}

// Serve carries out one errand.
func (l *Load) Serve(ctx context.Context, c *Client, e Errand) {
	input, err := json.Marshal(e.Job)
	if err != nil {
		panic(err) // a struct of texts and numbers
	}
	l.Expected.Store(e.Name, check.Wanted{Type: jobType, Queue: "default", Input: history.Digest(input),
		OnFailure: e.handler()})
	l.Started.Add(1)
	twins := 1
	if e.Twice {
		twins = 2
	}
	var run *kagzi.Run
	var starting sync.WaitGroup
	for twin := range twins {
		starting.Go(func() {
			if r := c.Start(ctx, e); twin == 0 {
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
		l.Ended.Add(1)
	}
}

// Start starts the errand's run, repeatedly until it is acknowledged.
func (c *Client) Start(ctx context.Context, e Errand) *kagzi.Run {
	o := kagzi.StartOptions{RequestID: e.Name, OnFailure: e.handler()}
	for ctx.Err() == nil {
		event := c.Log.Begin(history.Event{Op: history.Start, Request: e.Name})
		call, cancel := context.WithTimeout(ctx, CallLimit)
		run, err := kagzi.Start(call, c.SDK, jobType, e.Job, o)
		cancel()
		if event.Outcome, event.Code = Outcome(err); err == nil {
			event.Run = run.ID()
		}
		c.Log.Finish(event)
		if err == nil {
			return run
		}
		fixture.Breathe(ctx)
	}
	return nil
}

// cancel cancels the run, repeatedly until the outcome is known.
func (c *Client) cancel(ctx context.Context, run *kagzi.Run) {
	for ctx.Err() == nil {
		event := c.Log.Begin(history.Event{Op: history.Cancel, Run: run.ID()})
		call, cancel := context.WithTimeout(ctx, CallLimit)
		_, err := kagziv1.NewWorkflowServiceClient(c.SDK.Conn()).CancelWorkflow(
			call, &kagziv1.CancelWorkflowRequest{RunId: run.ID(), Reason: "torture"}, grpc.WaitForReady(true))
		cancel()
		event.Outcome, event.Code, event.Status = Refusal(err)
		c.Log.Finish(event)
		if event.Outcome != history.Unknown {
			return
		}
		fixture.Breathe(ctx)
	}
}

// awaitEnd waits for the run's end and reads it twice.
func (c *Client) awaitEnd(ctx context.Context, run *kagzi.Run) bool {
	_, err := run.Wait(ctx)
	return err == nil && c.LookTwice(ctx, run.ID())
}

// LookTwice reads the run until it has two answers. A run that does not exist any more was lost: no
// other answer will come, and the history has what it was.
func (c *Client) LookTwice(ctx context.Context, id string) bool {
	for looks := 0; looks < 2; {
		if ctx.Err() != nil {
			return false
		}
		switch err := c.Observe(ctx, id); {
		case err == nil:
			looks++
		case status.Code(err) == codes.NotFound:
			return false
		default:
			fixture.Breathe(ctx)
		}
	}
	return true
}

// Observe reads the run's current state.
func (c *Client) Observe(ctx context.Context, id string) error {
	event := c.Log.Begin(history.Event{Op: history.Observe, Run: id})
	call, cancel := context.WithTimeout(ctx, CallLimit)
	defer cancel()
	answer, err := kagziv1.NewWorkflowServiceClient(c.SDK.Conn()).GetWorkflow(
		call, &kagziv1.GetWorkflowRequest{RunId: id}, grpc.WaitForReady(true))
	if event.Outcome, event.Code = Outcome(err); err == nil {
		w := answer.Workflow
		event.Status = StatusName(w.Status)
		event.Code = strings.TrimPrefix(w.GetError().GetCode().String(), "ERROR_CODE_")
		event.Message = history.Digest([]byte(w.GetError().GetMessage()))
		if w.FinishedAt != nil {
			event.Ended = w.FinishedAt.AsTime().UnixMicro()
			event.Value = history.Digest(w.GetOutput().GetData())
			event.Answer = fmt.Sprint(event.Status, " ", event.Value, " ", event.Code, " ",
				w.FinishedAt.AsTime().UnixMicro(), " ", w.Attempts)
		}
	}
	c.Log.Finish(event)
	return err
}

// Outcome returns what a call's error says about its effect.
func Outcome(err error) (history.Outcome, string) {
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

// Refusal is Outcome for a call of the plain API, with the state of its run.
func Refusal(err error) (o history.Outcome, code, stands string) {
	o, code = Outcome(err)
	for _, d := range status.Convert(err).Details() {
		if detail, ok := d.(*kagziv1.ErrorDetail); ok {
			code = strings.TrimPrefix(detail.Code.String(), "ERROR_CODE_")
			stands = detail.Metadata["status"]
		}
	}
	return o, code, stands
}
