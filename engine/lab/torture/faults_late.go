//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/workload"

	"github.com/kagzi/kagzi/engine/lab/torture/fixture"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"bytes"
	"sync/atomic"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// freezeWorkers is F-10: a frozen worker loses its runs. Its reports about them arrive when another
// worker has them and is in the middle of the same step, as if they had been in transit so long.
// Then the worker comes back and sends what it likes.
func freezeWorkers(ctx context.Context, t *torture) error {
	r, err := t.newReplayer()
	if err != nil {
		return err
	}
	defer r.conn.Close()
	lease := t.system.shape.Lease
	return t.every(ctx, t.brief(1), t.brief(3), func() error {
		ctx := context.WithoutCancel(ctx)
		w := t.worker()
		life, file, name := w.current(), w.history(w.number()), w.alias()
		t.system.fault(faultOnWorker+name, func() bool { return life.Signal(syscall.SIGSTOP) })
		defer life.Signal(syscall.SIGCONT)
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

// unreported returns the step executions that a worker has not reported yet, as the reports that
// they would be. Runs whose lease it gave back, or may have given back, have none.
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
			list = append(list, history.Event{Op: history.Complete, Run: x.run, Token: x.token, Step: x.step,
				Value: string(value)})
		}
	}
	return list
}

// replayWrites is F-15: workers' writes are sent again, some of them changed, when they are long
// out of date.
func replayWrites(ctx context.Context, t *torture) error {
	r, err := t.newReplayer()
	if err != nil {
		return err
	}
	defer r.conn.Close()
	var group sync.WaitGroup
	defer group.Wait()
	return t.every(ctx, t.brief(0.05), t.brief(0.2), func() error {
		events, err := t.system.events()
		if err != nil {
			return err
		}
		for range min(20, len(events)) {
			if e := events[t.system.random.n(len(events))]; e.Outcome == history.OK &&
				(e.Op == history.Complete || e.Op == history.End) {
				group.Go(func() {
					t.system.fault("replay", func() bool { return r.replay(ctx, e, t.system.random.n(2) == 0) })
				})
				return nil
			}
		}
		return nil
	})
}

// forgery replaces a result that a worker sent.
const forgery = `"forged"`

// replayer sends what others have sent, or would have.
type replayer struct {
	conn *grpc.ClientConn
	log  *history.Log
}

func (t *torture) newReplayer() (*replayer, error) {
	conn, err := grpc.NewClient(t.system.servers[0].door.Address(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	return &replayer{conn: conn, log: t.replays}, err
}

// replay sends a write again, or with other content. It did hit if the server answered.
func (r *replayer) replay(ctx context.Context, e history.Event, changed bool) bool {
	if changed {
		e.Value = forgery
	}
	return r.send(ctx, e).Outcome != history.Unknown
}

// send sends a write as if it came from the worker that had its lease.
func (r *replayer) send(ctx context.Context, e history.Event) history.Event {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), workload.CallLimit)
	defer cancel()
	event := r.log.Begin(history.Event{Op: e.Op, Run: e.Run, Token: e.Token, Step: e.Step, Value: e.Value})
	payload := &kagziv1.Payload{Data: []byte(e.Value), Metadata: map[string]string{"content-type": "application/json"}}
	client := kagziv1.NewWorkerServiceClient(r.conn)
	var err error
	if e.Op == history.Complete {
		_, err = client.CompleteStep(ctx, &kagziv1.CompleteStepRequest{
			RunId: e.Run, StepId: e.Step, LeaseToken: e.Token, Output: payload})
	} else {
		_, err = client.CompleteWorkflow(ctx, &kagziv1.CompleteWorkflowRequest{
			RunId: e.Run, LeaseToken: e.Token, Output: payload})
	}
	event.Outcome, event.Code, event.Status = workload.Refusal(err)
	r.log.Finish(event)
	return event
}

// late sends a report as soon as a worker other than the current one has the run, if that happens
// before ctx ends.
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

// lookAgain is the interval of checks for a new holder of a run: well within a step.
const lookAgain = 50 * time.Millisecond

// lateWrites requires every write under a superseded lease to be refused.
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
	return figure{name: "reports of frozen workers that arrived when another had the run",
		got:   fmt.Sprintf("%d refused, %d accepted", refusals, accepted),
		limit: "some refused, none accepted", ok: refusals > 0 && accepted == 0, hard: true}
}

// listenLimit is how long a server may take to notice that its listening connection is dead and to
// listen on another.
const listenLimit = 15 * time.Second

// silenceListener is F-17-listen: nothing passes any more on the connection on which a server
// listens for notifications, and neither side is told. All other connections work.
func silenceListener(ctx context.Context, t *torture) error {
	ears := make([]*ear, len(t.system.servers))
	for i, s := range t.system.servers {
		ears[i] = &ear{}
		s.database.See(ears[i].watch)
	}
	defer func() {
		for _, s := range t.system.servers {
			s.database.See(nil)
		}
	}()
	return t.every(ctx, t.brief(1), t.brief(4), func() error {
		i := t.system.random.n(len(ears))
		ctx := context.WithoutCancel(ctx)
		if !ears[i].await(ctx, 0, fixture.StartLimit) {
			return fmt.Errorf("%s does not listen", t.system.servers[i].name)
		}
		t.system.fault("silence the listener of "+t.system.servers[i].name, func() bool {
			deaf := ears[i].silence()
			began := history.Now()
			noticed := time.Duration(-1)
			if ears[i].await(ctx, deaf, 2*listenLimit) {
				noticed = time.Duration(history.Now() - began)
			}
			t.relistened = append(t.relistened, noticed)
			return deaf > 0
		})
		return nil
	})
}

// ear knows which connections of a server listen.
type ear struct {
	listened atomic.Int64 // listening connections so far
	deaf     atomic.Int64 // the latest silenced one
}

// watch returns the watch of one connection.
func (e *ear) watch() fixture.Watch {
	var once sync.Once
	var mine atomic.Int64 // its number among those that listen; 0: none
	asked := &reader{untyped: true}
	return func(up bool, data []byte) fixture.Decision {
		if up {
			asked.read(data, func(kind byte, body []byte) {
				if (kind == 'Q' || kind == 'P') && bytes.Contains(body, []byte("listen ")) &&
					bytes.HasPrefix(bytes.TrimLeft(body, "\x00"), []byte("listen ")) {
					once.Do(func() { mine.Store(e.listened.Add(1)) })
				}
			})
		}
		if n := mine.Load(); n > 0 && n <= e.deaf.Load() {
			return fixture.Withhold
		}
		return fixture.Pass
	}
}

// silence silences the connections that listen now, and returns the number of the latest.
func (e *ear) silence() int64 {
	n := e.listened.Load()
	e.deaf.Store(n)
	return n
}

// await waits until a connection after the n-th listens; false if none does within the limit.
func (e *ear) await(ctx context.Context, n int64, limit time.Duration) bool {
	for end := time.Now().Add(limit); e.listened.Load() <= n; fixture.Breathe(ctx) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// listensAgain requires each server to notice in time that it was deaf.
func listensAgain(t *torture) figure {
	return figure{name: "from the silence of a listening connection until another listens",
		limit: "≤ " + listenLimit.String()}.within(t.relistened, listenLimit)
}
