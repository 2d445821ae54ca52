//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/workload"

	"github.com/jackc/pgx/v5"
	"google.golang.org/grpc/codes"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
	kagzi "github.com/kagzi/kagzi/sdk"
)

const (
	hotRuns    = 10
	hotCallers = 200 // at the load of the matrix
	hotSteps   = 8
)

// heat holds what happened to rows with many concurrent writers.
type heat struct {
	calls     atomic.Int64 // around the hot runs
	waits     int          // times that a session was seen to wait for a lock
	deadlocks int          // resolved by Postgres
}

// heatRows is F-26: ten runs of many parallel steps, and around each many clients that signal,
// pause, resume and read it on all servers at once.
func heatRows(ctx context.Context, t *torture) error {
	var looking error
	t.system.fault("a crowd around a few runs", func() bool {
		var group sync.WaitGroup
		defer group.Wait()
		var hot [hotRuns]atomic.Pointer[string]
		for i := range hot {
			group.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					t.heatOne(ctx, i, n, &hot[i])
				}
			})
		}
		for i := range max(40, int(hotCallers*t.options.scale)) {
			group.Go(func() {
				for n := i; ctx.Err() == nil; n++ {
					if run := hot[i%hotRuns].Load(); run != nil {
						t.crowd(context.WithoutCancel(ctx), t.load.Clients[n%len(t.load.Clients)], *run, n)
						t.heat.calls.Add(1)
					}
					t.pause(ctx, 0, 20*time.Millisecond)
				}
			})
		}
		if t.system.cluster != nil {
			looking = t.withPostgres(ctx, func(conn *pgx.Conn) error { return t.lookForWaits(ctx, conn) })
		}
		<-ctx.Done()
		return true
	})
	return looking
}

// heatOne is the life of one hot run. Most are cancelled on the way.
func (t *torture) heatOne(ctx context.Context, place, n int, hot *atomic.Pointer[string]) {
	e := workload.Errand{Job: workload.Job{Name: fmt.Sprintf("hot-%d-%d-%d", t.options.seed, place, n),
		Kind: workload.Fanned, Pauses: make([]int, hotSteps), Fails: make([]int, hotSteps)}}
	for i := range e.Pauses {
		e.Pauses[i] = 20 + t.system.random.n(200)
		e.Fails[i] = t.system.random.n(2)
	}
	if n%4 != 0 {
		e.Cancel = t.system.random.between(100*time.Millisecond, 1500*time.Millisecond)
	}
	e.Started = func(run *kagzi.Run) {
		id := run.ID()
		hot.Store(&id)
	}
	// it must end, also when the crowd is gone
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleLimit)
	defer cancel()
	t.load.Serve(rest, t.load.Clients[place%len(t.load.Clients)], e)
	hot.Store(nil)
}

// crowd makes one call about a hot run. It does not matter whether the run accepts it; the answer
// is counted with all others.
func (t *torture) crowd(ctx context.Context, c *workload.Client, id string, n int) {
	run := c.SDK.Run(id)
	call := func(do func(ctx context.Context) error) error {
		limited, cancel := context.WithTimeout(ctx, workload.CallLimit)
		defer cancel()
		return do(limited)
	}
	switch {
	case n%64 == 0: // takes the lease
		_ = call(func(ctx context.Context) error { return run.Pause(ctx, "crowd") })
		for resumed := false; !resumed; { // or it would not end
			o, _ := workload.Outcome(call(func(ctx context.Context) error { return run.Resume(ctx, "crowd") }))
			resumed = o != history.Unknown
		}
	case n%8 == 1:
		_ = call(func(ctx context.Context) error { _, err := run.Describe(ctx); return err })
	default:
		_ = call(func(ctx context.Context) error { return kagzi.Signal(ctx, run, "crowd", n, kagzi.SignalOptions{}) })
	}
}

// lookForWaits counts how often sessions are seen to wait for a lock, until ctx ends, and the
// deadlocks that Postgres resolved.
func (t *torture) lookForWaits(ctx context.Context, conn *pgx.Conn) error {
	for t.pause(ctx, 10*time.Millisecond, 20*time.Millisecond) {
		waiting := 0
		if err := conn.QueryRow(ctx, `select count(*) from pg_stat_activity where wait_event_type = 'Lock'`).Scan(
			&waiting); err != nil {
			return ctxless(ctx, err)
		}
		t.heat.waits += waiting
	}
	return t.withPostgres(context.WithoutCancel(ctx), func(conn *pgx.Conn) error {
		return conn.QueryRow(context.WithoutCancel(ctx), `select sum(deadlocks) from pg_stat_database`).Scan(
			&t.heat.deadlocks)
	})
}

// contended is the proof of F-26.
func contended(t *torture) (missing []string) {
	if t.heat.calls.Load() == 0 {
		missing = append(missing, "nobody crowded around a run")
	}
	if t.system.cluster != nil && t.heat.waits == 0 {
		missing = append(missing, "no session was seen to wait for a lock")
	}
	return missing
}

// noRefusal requires that without faults no caller gets "database busy" or an internal error: the
// store resolves conflicts between calls. Clients and workers repeat such calls, so they are
// counted below that layer. Answers to operations whose predecessor lost the lease do not count.
func noRefusal(t *torture) figure {
	unavailable, internal := t.load.Answers.Count(codes.Unavailable), t.load.Answers.Count(codes.Internal)
	for _, e := range t.events {
		switch {
		case !strings.HasPrefix(e.Proc, "worker"), e.Why == workload.BehindRefused:
		case strings.EqualFold(e.Code, "UNAVAILABLE"):
			unavailable++
		case strings.EqualFold(e.Code, "INTERNAL"):
			internal++
		}
	}
	return figure{name: "lock timeouts and internal errors", limit: "none",
		got: fmt.Sprintf(
			"%d UNAVAILABLE, %d INTERNAL; %d calls of a crowd, %d waits for locks seen, %d deadlocks resolved",
			unavailable, internal, t.heat.calls.Load(), t.heat.waits, t.heat.deadlocks),
		ok: unavailable == 0 && internal == 0, hard: true}
}
