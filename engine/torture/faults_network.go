//go:build linux

package main

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/kagzi/kagzi/engine/torture/history"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// storms makes a nemesis that gives one proxy at a time, of those that pick names, a weather for a while.
func storms(name string, w weather, from, to float64, pick func(t *torture) *proxy) func(context.Context, *torture) error {
	return func(ctx context.Context, t *torture) error {
		return t.every(ctx, t.brief(1), t.brief(4), func() error {
			p := pick(t)
			t.rig.fault(name, func() bool { return t.storm(ctx, p, w, t.brief(from), t.brief(to)) })
			return nil
		})
	}
}

// storm lasts for its time; it did hit when something was connected through the proxy. What is lost in a deaf time stays lost: the
// connections are broken at its end.
func (t *torture) storm(ctx context.Context, p *proxy, w weather, from, to time.Duration) bool {
	hit := p.connected()
	p.set(w)
	t.pause(context.WithoutCancel(ctx), from, to)
	if w.deaf {
		p.cut()
	}
	p.set(weather{})
	return hit || p.connected()
}

func (p *proxy) connected() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns) > 0
}

func workerDoor(t *torture) *proxy { return t.worker().door }
func serverDoor(t *torture) *proxy { return t.server().door }

// databaseDoor is between a server and Postgres.
func databaseDoor(t *torture) *proxy { return t.server().database }

// constantly makes a nemesis that gives all proxies of servers a weather for the whole time.
func constantly(name string, w weather) func(context.Context, *torture) error {
	return func(ctx context.Context, t *torture) error {
		t.rig.fault(name, func() bool {
			for _, s := range t.rig.servers {
				s.door.set(w)
			}
			<-ctx.Done()
			return true
		})
		return nil
	}
}

// starve notes that the workers spin for the whole time.
func starve(ctx context.Context, t *torture) error {
	t.rig.fault("workers spin", func() bool { <-ctx.Done(); return true })
	return nil
}

// replayWrites is F-15: what workers have sent is sent again, some of it changed, when it is long out of date.
func replayWrites(ctx context.Context, t *torture) error {
	conn, err := grpc.NewClient(t.rig.servers[0].door.address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	r := &replayer{client: kagziv1.NewWorkerServiceClient(conn), log: t.replays}
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

// replayer sends what others have sent.
type replayer struct {
	client kagziv1.WorkerServiceClient
	log    *history.Log
}

// replay sends a write again, or with another content. It did hit when the server answered.
func (r *replayer) replay(ctx context.Context, e history.Event, changed bool) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callLimit)
	defer cancel()
	if changed {
		e.Value = forgery
	}
	event := r.log.Begin(history.Event{Op: e.Op, Run: e.Run, Token: e.Token, Step: e.Step, Value: e.Value})
	payload := &kagziv1.Payload{Data: []byte(e.Value), Metadata: map[string]string{"content-type": "application/json"}}
	var err error
	if e.Op == history.Complete {
		_, err = r.client.CompleteStep(ctx, &kagziv1.CompleteStepRequest{RunId: e.Run, StepId: e.Step, LeaseToken: e.Token, Output: payload})
	} else {
		_, err = r.client.CompleteWorkflow(ctx, &kagziv1.CompleteWorkflowRequest{RunId: e.Run, LeaseToken: e.Token, Output: payload})
	}
	event.Outcome, event.Code, event.Status = refusal(err)
	r.log.Finish(event)
	return event.Outcome != history.Unknown
}
