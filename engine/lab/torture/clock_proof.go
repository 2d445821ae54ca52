//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/workload"

	"github.com/kagzi/kagzi/engine/lab/torture/fixture"

	"google.golang.org/grpc"

	"github.com/kagzi/kagzi/engine/lab/torture/check"
	"github.com/kagzi/kagzi/engine/lab/torture/history"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// stamp is the lower and upper bound of how far a server's timestamp was ahead of this machine's
// clock.
type stamp struct{ from, to time.Duration }

// shows reports whether a stamp proves a clock that is ahead by this much, within slack. It must
// have been taken fast enough to tell it from a clock that differs by twice its own duration.
func (s stamp) shows(ahead, slack, within time.Duration) bool {
	return s.to-s.from <= within && s.from-slack <= ahead && ahead <= s.to+slack
}

// stampAt makes a server write a timestamp: when a run was created.
func (t *torture) stampAt(ctx context.Context, c *kagzi.Client) (stamp, error) {
	t.mu.Lock()
	t.stamps++
	request := fmt.Sprintf("stamp-%d", t.stamps)
	t.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, workload.CallLimit)
	defer cancel()
	t.load.Expected.Store(request, check.Wanted{Type: workload.FloodType, Queue: "default", Input: `""`})
	event := t.replays.Begin(history.Event{Op: history.Start, Request: request})
	before := time.Now()
	run, err := kagzi.Start(ctx, c, workload.FloodType, "", kagzi.StartOptions{RequestID: request})
	after := time.Now()
	if event.Outcome, event.Code = workload.Outcome(err); err == nil {
		event.Run = run.ID()
	}
	t.replays.Finish(event)
	if err != nil {
		return stamp{}, err
	}
	answer, err := kagziv1.NewWorkflowServiceClient(c.Conn()).GetWorkflow(
		ctx, &kagziv1.GetWorkflowRequest{RunId: run.ID()}, grpc.WaitForReady(true))
	if err != nil {
		return stamp{}, err
	}
	created := answer.Workflow.CreatedAt.AsTime()
	return stamp{created.Sub(after), created.Sub(before)}, nil
}

// stampsShow reports whether, within the limit, a server writes timestamps of a clock that is ahead
// by this much.
func (t *torture) stampsShow(ctx context.Context, c *kagzi.Client, ahead, slack, within, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for ctx.Err() == nil {
		if s, err := t.stampAt(context.WithoutCancel(ctx), c); err == nil && s.shows(ahead, slack, within) {
			return true
		}
		fixture.Breathe(ctx)
	}
	return false
}

// offsetShows reports whether, within the limit, a server reports that its clock is ahead of that
// of Postgres by this much.
func offsetShows(ctx context.Context, c *kagzi.Client, ahead, slack, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for ctx.Err() == nil {
		answer, err := kagziv1.NewAdminServiceClient(c.Conn()).GetServerInfo(ctx, &kagziv1.GetServerInfoRequest{})
		if err == nil {
			if offset, err := offsetOf(answer.Facts); err == nil && (offset+ahead).Abs() <= slack {
				return true
			}
		}
		fixture.Breathe(ctx)
	}
	return false
}

// offsetOf returns how far a server says that the clock of Postgres is ahead of its own.
func offsetOf(facts []*kagziv1.ServerFact) (time.Duration, error) {
	for _, f := range facts {
		if f.Name == "clock offset" {
			number, _, _ := strings.Cut(f.Value, " ms")
			return time.ParseDuration(number + "ms")
		}
	}
	return 0, fmt.Errorf("a server does not tell the offset of its clock")
}
