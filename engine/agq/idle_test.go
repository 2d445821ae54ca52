package agq_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/agq"
	"github.com/kagzi/kagzi/engine/server"
)

// asked counts what could be asked of a store for a worker that waits.
type asked struct {
	engine.Store
	queries, heartbeats atomic.Int64
}

func (a *asked) Claim(ctx context.Context, p engine.ClaimParams) (engine.Claimed, error) {
	a.queries.Add(1)
	return a.Store.Claim(ctx, p)
}

func (a *asked) RegisterWorker(ctx context.Context, p engine.RegisterWorkerParams) (engine.Worker, error) {
	a.queries.Add(1)
	return a.Store.RegisterWorker(ctx, p)
}

func (a *asked) GetWorker(ctx context.Context, id string) (engine.Worker, error) {
	a.queries.Add(1)
	return a.Store.GetWorker(ctx, id)
}

func (a *asked) HeldBy(ctx context.Context, worker string) ([]engine.Held, error) {
	a.queries.Add(1)
	return a.Store.HeldBy(ctx, worker)
}

func (a *asked) GetQueueDepth(ctx context.Context, namespace, queue string,
	now time.Time) ([]engine.QueueDepth, error) {
	a.queries.Add(1)
	return a.Store.GetQueueDepth(ctx, namespace, queue, now)
}

func (a *asked) Heartbeat(ctx context.Context, p engine.HeartbeatParams) (engine.Beat, error) {
	a.heartbeats.Add(1)
	return a.Store.Heartbeat(ctx, p)
}

// TestIdleWorkersAskNothingOfTheStore has workers that pop as AGW does: again after each heartbeat.
func TestIdleWorkersAskNothingOfTheStore(t *testing.T) {
	for _, beat := range []time.Duration{time.Hour, time.Nanosecond} {
		t.Run(beat.String(), func(t *testing.T) {
			w := newWorld()
			store := &asked{Store: w.db.Open(nil)}
			f := serveWith(t, store, w.now, server.Options{}, func(d *agq.Door) { d.BeatEvery(beat) })
			f.submit("a", 1)
			const workers, rounds = 20, 50
			clients := make([]*client, workers)
			for n := range clients {
				clients[n] = f.as(fmt.Sprintf("w%d", n))
			}
			job := clients[0].popped() // so the queue is known, and empty
			clients[0].want("+OK", "SET", "job:"+job+":status", "completed")
			for _, c := range clients {
				c.send("BRPOPLPUSH", "queue:ready", "queue:processing", "20")
			}
			metrics := f.dial()
			for !strings.Contains(metrics.do("METRICS"), fmt.Sprintf("$popping_workers $%d", workers)) {
			}
			queries, beats := store.queries.Load(), store.heartbeats.Load()
			for range rounds {
				for n, c := range clients {
					c.send("PING", fmt.Sprintf("w%d", n))
					if a, b := c.answer(), c.answer(); a != "nil$" || b != fmt.Sprintf("$w%d", n) {
						t.Fatalf("a pop and a PING are answered %q and %q", a, b)
					}
					c.send("BRPOPLPUSH", "queue:ready", "queue:processing", "20")
				}
			}
			// A few are the matcher's, which looks for what is due, however many wait.
			if n := store.queries.Load() - queries; n > 5 {
				t.Errorf("%d pops asked the store %d times", workers*rounds, n)
			}
			if n := store.heartbeats.Load() - beats; beat == time.Hour && n > 0 || beat < time.Hour && n == 0 {
				t.Errorf("heartbeats every %v: %d reached the store", beat, n)
			}
		})
	}
}
