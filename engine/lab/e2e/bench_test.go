package e2e

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kagzi/kagzi/backends/postgres/pgtest"
	"github.com/kagzi/kagzi/engine/server"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// BenchmarkSystem measures the whole system: client, server and worker in this process, gRPC over
// loopback, and a database that syncs each commit. One operation is a run, from its start until the
// caller has its result.
//
//	go test -run '^$' -bench System -count 10 ./engine/lab/e2e | tee new.txt && benchstat old.txt new.txt
func BenchmarkSystem(b *testing.B) {
	for _, backend := range []string{"sqlite", "postgres"} {
		for _, load := range []struct {
			steps, callers int
		}{{0, 1}, {0, 100}, {1, 1}, {10, 1}, {10, 100}} {
			b.Run(fmt.Sprintf("%s/%d steps, %d callers", backend, load.steps, load.callers), func(b *testing.B) {
				s := New(b, openStore(b, durableURL(b, backend)),
					Options{Server: server.Options{HeartbeatInterval: 10 * time.Second}})
				s.work(b, kagzi.WorkerOptions{MaxConcurrent: 100}, func(w *kagzi.Worker) {
					kagzi.Handle(w, "sum", sum)
				})
				benchRuns(b, s.client(b), load.steps, load.callers)
			})
		}
	}
}

// durableURL returns an empty database that is durable across power cuts.
func durableURL(tb testing.TB, backend string) string {
	tb.Helper()
	if backend == "postgres" {
		return pgtest.DurableURL(tb)
	}
	return freshURL(tb, backend)
}

// sum adds up the results of n sequential steps.
func sum(ctx kagzi.Context, steps int) (int, error) {
	total := 0
	for i := range steps {
		v, err := kagzi.Step(ctx, fmt.Sprintf("step-%d", i), func(context.Context) (int, error) { return i, nil })
		if err != nil {
			return 0, err
		}
		total += v
	}
	return total, nil
}

// benchRuns performs runs from several callers; each waits for a result before its next start.
func benchRuns(b *testing.B, c *kagzi.Client, steps, callers int) {
	want := steps * (steps - 1) / 2
	perform := func() error {
		run, err := kagzi.Start(b.Context(), c, "sum", steps, kagzi.StartOptions{})
		if err != nil {
			return err
		}
		got, err := kagzi.Result[int](b.Context(), run)
		if err == nil && got != want {
			err = fmt.Errorf("run %s returned %d, want %d", run.ID(), got, want)
		}
		return err
	}
	if err := perform(); err != nil { // warms up connections and caches
		b.Fatal(err)
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	var group sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range callers {
		group.Go(func() {
			for left.Add(-1) >= 0 {
				if err := perform(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
	if steps > 0 {
		b.ReportMetric(float64(b.N*steps)/b.Elapsed().Seconds(), "steps/s")
	}
}
