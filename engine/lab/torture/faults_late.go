//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// freezeWorkers is F-10: a worker that stands still loses its runs. What it was about to report of them arrives when another has them and is in the
// middle of the same step, as if it had been on its way for so long; then the worker comes back, and sends what it likes.
func freezeWorkers(ctx context.Context, t *torture) error {
	r, err := t.newReplayer()
	if err != nil {
		return err
	}
	defer r.conn.Close()
	lease := t.rig.shape.Lease
	return t.every(ctx, t.brief(1), t.brief(3), func() error {
		ctx := context.WithoutCancel(ctx)
		w := t.worker()
		life, file, name := w.current(), w.history(w.number()), w.alias()
		t.rig.fault(faultOnWorker+name, func() bool { return life.signal(syscall.SIGSTOP) })
		defer life.signal(syscall.SIGCONT)
		events, err := history.Read(file)
		if err != nil {
			return err
		}
		limit, cancel := context.WithTimeout(ctx, 3*lease)
		defer cancel()
		var group sync.WaitGroup
		for _, e := range unreported(events) {
			group.Go(func() { r.late(limit, e) })
		}
		t.pause(ctx, lease+time.Second, 3*lease)
		group.Wait()
		return nil
	})
}

// unreported is the executions of steps of which a worker has said nothing yet, as the reports that they would be. A run whose lease it gave back, or
// may have given back, has none.
func unreported(events []history.Event) []history.Event {
	type execution struct{ run, token, step string }
	running := map[execution]history.Event{}
	for _, e := range events {
		switch e.Op {
		case history.CodeBegins:
			running[execution{e.Run, e.Token, e.Step}] = e
		case history.Complete, history.Fail:
			delete(running, execution{e.Run, e.Token, e.Step})
		case history.Park, history.Release, history.End, history.EndBadly:
			for x := range running {
				if x.run == e.Run {
					delete(running, x)
				}
			}
		}
	}
	var list []history.Event
	for x, e := range running {
		if value, err := json.Marshal(e.Value); err == nil {
			list = append(list, history.Event{Op: history.Complete, Run: x.run, Token: x.token, Step: x.step, Value: string(value)})
		}
	}
	return list
}

// replayWrites is F-15: what workers have sent is sent again, some of it changed, when it is long out of date.
func replayWrites(ctx context.Context, t *torture) error {
	r, err := t.newReplayer()
	if err != nil {
		return err
	}
	defer r.conn.Close()
	var group sync.WaitGroup
	defer group.Wait()
	return t.every(ctx, t.brief(0.05), t.brief(0.2), func() error {
		events, err := t.rig.events()
		if err != nil {
			return err
		}
		for range min(20, len(events)) {
			if e := events[t.rig.luck.n(len(events))]; e.Outcome == history.OK && (e.Op == history.Complete || e.Op == history.End) {
				group.Go(func() {
					t.rig.fault("replay", func() bool { return r.replay(ctx, e, t.rig.luck.n(2) == 0) })
				})
				return nil
			}
		}
		return nil
	})
}

// forgery is in the place of a result that a worker has sent.
const forgery = `"forged"`

// replayer sends what others have sent, or would have.
type replayer struct {
	conn *grpc.ClientConn
	log  *history.Log
}

func (t *torture) newReplayer() (*replayer, error) {
	conn, err := grpc.NewClient(t.rig.servers[0].door.address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	return &replayer{conn: conn, log: t.replays}, err
}

// replay sends a write again, or with another content. It did hit when the server answered.
func (r *replayer) replay(ctx context.Context, e history.Event, changed bool) bool {
	if changed {
		e.Value = forgery
	}
	return r.send(ctx, e).Outcome != history.Unknown
}

// send sends a write as if it came from the worker that had its lease.
func (r *replayer) send(ctx context.Context, e history.Event) history.Event {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callLimit)
	defer cancel()
	event := r.log.Begin(history.Event{Op: e.Op, Run: e.Run, Token: e.Token, Step: e.Step, Value: e.Value})
	payload := &kagziv1.Payload{Data: []byte(e.Value), Metadata: map[string]string{"content-type": "application/json"}}
	client := kagziv1.NewWorkerServiceClient(r.conn)
	var err error
	if e.Op == history.Complete {
		_, err = client.CompleteStep(ctx, &kagziv1.CompleteStepRequest{RunId: e.Run, StepId: e.Step, LeaseToken: e.Token, Output: payload})
	} else {
		_, err = client.CompleteWorkflow(ctx, &kagziv1.CompleteWorkflowRequest{RunId: e.Run, LeaseToken: e.Token, Output: payload})
	}
	event.Outcome, event.Code, event.Status = refusal(err)
	r.log.Finish(event)
	return event
}

// late sends a report as soon as another worker has the run than the one that holds it now, if one gets it before ctx ends.
func (r *replayer) late(ctx context.Context, e history.Event) {
	client := kagziv1.NewWorkflowServiceClient(r.conn)
	first := ""
	for ctx.Err() == nil {
		answer, err := client.GetWorkflow(ctx, &kagziv1.GetWorkflowRequest{RunId: e.Run})
		run := answer.GetWorkflow()
		switch holder := run.GetWorkerId(); {
		case err != nil || run.Status != kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING:
		case first == "":
			first = holder
		case holder != first:
			r.send(ctx, e)
			return
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
		}
	}
}

// lookAgain is how soon it is looked whether a run has been handed to another worker: well within a step.
const lookAgain = 50 * time.Millisecond

// lateWrites wants what arrived under a lease that another had by then to be refused, without exception.
func lateWrites(t *torture) figure {
	refusals, accepted := 0, 0
	for _, e := range t.replays.Events() {
		switch e.Outcome {
		case history.Refused:
			refusals++
		case history.OK:
			accepted++
		}
	}
	return figure{name: "reports of frozen workers that arrived when another had the run", got: fmt.Sprintf("%d refused, %d accepted", refusals, accepted),
		limit: "some refused, none accepted", ok: refusals > 0 && accepted == 0, hard: true}
}
