package bench

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

var (
	fullEnded    = flag.Int("storetest.ended", 20_000, "how many ended runs a full table has in benchmarks")
	fullSleeping = flag.Int("storetest.sleeping", 2_000, "how many sleeping runs a full table has in benchmarks")
)

// Fill puts ended runs and sleeping runs into a new store, faster than the operations can: runs of
// the namespace "default", queue "orders" and type "order". The sleeping ones must not be due
// within a year of now.
type Fill func(tb testing.TB, s engine.Store, ended, sleeping int, now time.Time)

// Bench measures the operations of a store as its callers see them: each call is durable when it
// returns. Making a million ended runs with the operations takes a while; pass a Fill, or lower the
// flags.
func Bench(b *testing.B, open func(tb testing.TB) engine.Store, fill ...Fill) {
	b.Run("CompleteStep/1 caller", func(b *testing.B) { benchCompleteStep(newBench(b, open), 1) })
	b.Run("CompleteStep/100 callers", func(b *testing.B) { benchCompleteStep(newBench(b, open), 100) })
	b.Run("StartRuns/1 caller", func(b *testing.B) { benchStart(newBench(b, open), 1, 1) })
	b.Run("StartRuns/100 callers", func(b *testing.B) { benchStart(newBench(b, open), 100, 1) })
	b.Run("StartRuns/batches of 100", func(b *testing.B) { benchStart(newBench(b, open), 1, 100) })
	b.Run("empty table", func(b *testing.B) { benchClaims(newBench(b, open)) })
	b.Run("full table", func(b *testing.B) { benchClaims(fullBench(b, open, fill)) })
	b.Run("CompleteRun/1 caller", func(b *testing.B) { benchCompleteRun(newBench(b, open), 1) })
	b.Run("CompleteRun/100 callers", func(b *testing.B) { benchCompleteRun(newBench(b, open), 100) })
	b.Run("whole life/1 caller", func(b *testing.B) { benchLife(newBench(b, open), 1) })
	b.Run("whole life/100 callers", func(b *testing.B) { benchLife(newBench(b, open), 100) })
	b.Run("Heartbeat/100 callers", func(b *testing.B) { benchHeartbeat(newBench(b, open), 100) })
	b.Run("History of 1000 steps", func(b *testing.B) { benchHistory(newBench(b, open), 1000) })
	b.Run("Prune/batches of 100", func(b *testing.B) { benchPrune(newBench(b, open), 100) })
}

// bench is a store that is measured.
type bench struct {
	*fixture.F
	b *testing.B
}

func newBench(b *testing.B, open func(tb testing.TB) engine.Store) *bench {
	s := fixture.New(b, open(b))
	s.Worker("w1")
	return &bench{F: s, b: b}
}

// on returns the same store for another benchmark.
func (f *bench) on(b *testing.B) *bench {
	s := *f.F
	s.T, s.Ctx = b, b.Context()
	return &bench{F: &s, b: b}
}

// fullBench returns a store whose table is full of ended and sleeping runs.
func fullBench(b *testing.B, open func(tb testing.TB) engine.Store, fill []Fill) *bench {
	f := newBench(b, open)
	if len(fill) > 0 {
		fill[0](b, f.Store, *fullEnded, *fullSleeping, f.Now)
		return f
	}
	f.cycle(*fullEnded, func(l engine.Lease, _ engine.ID) error { return f.TryFinish(l, "done") })
	f.cycle(*fullSleeping, func(l engine.Lease, id engine.ID) error {
		return f.SleepWith(engine.SleepParams{
			Lease: l, Step: fixture.Named("nap"), ID: id, Duration: 10_000 * time.Hour, Now: f.Now})
	})
	return f
}

// cycle starts and claims n runs and calls do for each; the id is for what do makes.
func (f *bench) cycle(n int, do func(engine.Lease, engine.ID) error) {
	for ; n > 0; n -= engine.MaxBatch {
		leases := f.claimed(min(n, engine.MaxBatch))
		made := make([]engine.ID, len(leases))
		for i := range made {
			made[i] = f.ID()
		}
		f.concurrently(len(leases), 100, func(_ context.Context, i int) error { return do(leases[i], made[i]) })
	}
}

// claimed starts and claims n runs.
func (f *bench) claimed(n int) []engine.Lease {
	f.Helper()
	var leases []engine.Lease
	for len(leases) < n {
		batch := min(n-len(leases), engine.MaxBatch)
		runs := make([]engine.StartRun, batch)
		workers := make([]string, batch)
		for i := range runs {
			runs[i], workers[i] = f.NewRun(), "w1"
		}
		f.StartAll(runs...)
		for _, task := range f.ClaimWith(f.ClaimParams(workers...)).Tasks {
			leases = append(leases, task.Lease)
		}
	}
	return leases
}

// concurrently calls do for 0 to n-1 from so many goroutines.
func (f *bench) concurrently(n, callers int, do func(ctx context.Context, i int) error) {
	f.Helper()
	var next atomic.Int64
	var first atomic.Pointer[error]
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := do(f.Ctx, i); err != nil {
					first.CompareAndSwap(nil, &err)
					return
				}
			}
		})
	}
	group.Wait()
	if err := first.Load(); err != nil {
		f.Fatalf("a call of the benchmark: %v", *err)
	}
}

// measured runs the calls of the benchmark from so many goroutines and reports how many things were
// done per second.
func (f *bench) measured(callers, thingsPerCall int, do func(ctx context.Context, i int) error) {
	f.Helper()
	f.b.ReportAllocs()
	f.b.ResetTimer()
	f.concurrently(f.b.N, callers, do)
	f.b.StopTimer()
	f.b.ReportMetric(float64(f.b.N*thingsPerCall)/f.b.Elapsed().Seconds(), "ops/s")
}

// benchCompleteStep records steps of many runs, fewer than MaxSteps of each.
func benchCompleteStep(f *bench, callers int) {
	leases := f.claimed(max(callers, f.b.N/1000+1))
	params := make([]engine.CompleteStepParams, f.b.N)
	for i := range params {
		params[i] = engine.CompleteStepParams{
			Lease: leases[i%len(leases)], Step: fixture.Named(fmt.Sprintf("step-%d", i/len(leases))), ID: f.ID(),
			Output: fixture.Text(`{"charge":"ch_1234567890","amount":4200,"currency":"eur","captured":true}`),
			Now:    f.Now,
		}
	}
	f.measured(callers, 1, func(ctx context.Context, i int) error {
		_, err := f.Store.CompleteStep(ctx, params[i])
		return err
	})
}

func benchStart(f *bench, callers, batch int) {
	calls := make([][]engine.StartRun, f.b.N)
	for i := range calls {
		for range batch {
			calls[i] = append(calls[i], f.NewRun())
		}
	}
	f.measured(callers, batch, func(ctx context.Context, i int) error {
		_, err := f.Store.StartRuns(ctx, engine.StartRunsParams{Runs: calls[i]})
		return err
	})
}

// benchClaims measures claims on one store, which is filled once.
func benchClaims(f *bench) {
	f.b.Run("Claim", func(b *testing.B) { benchClaim(f.on(b), 1) })
	f.b.Run("Claim of 100", func(b *testing.B) { benchClaim(f.on(b), 100) })
	f.b.Run("Claim of nothing", func(b *testing.B) { benchClaimNothing(f.on(b)) })
}

// benchClaim claims batch runs per call, which were started just before.
func benchClaim(f *bench, batch int) {
	for left := f.b.N * batch; left > 0; left -= engine.MaxBatch {
		runs := make([]engine.StartRun, min(left, engine.MaxBatch))
		for i := range runs {
			runs[i] = f.NewRun()
		}
		f.StartAll(runs...)
	}
	params := make([]engine.ClaimParams, f.b.N)
	for i := range params {
		params[i] = f.ClaimParams(slices.Repeat([]string{"w1"}, batch)...)
	}
	f.measured(1, batch, func(ctx context.Context, i int) error {
		claimed, err := f.Store.Claim(ctx, params[i])
		if err == nil && len(claimed.Tasks) != batch {
			err = fmt.Errorf("claimed %d runs, want %d", len(claimed.Tasks), batch)
		}
		return err
	})
}

// benchClaimNothing claims when nothing is due.
func benchClaimNothing(f *bench) {
	p := f.ClaimParams("w1")
	f.measured(1, 1, func(ctx context.Context, _ int) error {
		claimed, err := f.Store.Claim(ctx, p)
		if err == nil && len(claimed.Tasks) != 0 {
			err = fmt.Errorf("claimed %d runs, want none", len(claimed.Tasks))
		}
		return err
	})
}

func benchCompleteRun(f *bench, callers int) {
	leases := f.claimed(f.b.N)
	f.measured(callers, 1, func(_ context.Context, i int) error { return f.TryFinish(leases[i], `{"ok":true}`) })
}

// benchLife takes runs from start to end, with one step each: one call each for start, step and
// end. Waiting callers share claims, as package matching shares them.
func benchLife(f *bench, callers int) {
	starts := make([]engine.StartRun, f.b.N)
	steps := make([]engine.ID, f.b.N)
	claims := make([]engine.ClaimParams, f.b.N)
	for i := range starts {
		starts[i], steps[i], claims[i] = f.NewRun(), f.ID(), f.ClaimParams("w1")
	}
	waiting := make(chan claimant, callers)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		shareClaims(f.Ctx, f.Store, waiting)
	}()
	f.measured(callers, 1, func(ctx context.Context, i int) error {
		if _, err := f.Store.StartRuns(ctx, engine.StartRunsParams{Runs: starts[i : i+1]}); err != nil {
			return err
		}
		c := claimant{params: claims[i], lease: make(chan engine.Lease, 1), err: make(chan error, 1)}
		waiting <- c
		var l engine.Lease
		select {
		case l = <-c.lease:
		case err := <-c.err:
			return err
		}
		if _, err := f.Store.CompleteStep(ctx, engine.CompleteStepParams{
			Lease: l, Step: fixture.Named("charge"), ID: steps[i], Output: fixture.Text(`{"charge":"ch_1234567890"}`),
			Now: f.Now,
		}); err != nil {
			return err
		}
		return f.TryFinish(l, `{"ok":true}`)
	})
	close(waiting)
	<-ended
}

// benchPrune deletes ended runs of one step each.
func benchPrune(f *bench, batch int) {
	f.cycle(f.b.N*batch, func(l engine.Lease, id engine.ID) error {
		_, err := f.Store.CompleteStep(f.Ctx, engine.CompleteStepParams{
			Lease: l, Step: fixture.Named("charge"), ID: id, Output: fixture.Text(`{"charge":"ch_1234567890"}`), Now: f.Now,
		})
		if err != nil {
			return err
		}
		return f.TryFinish(l, `{"ok":true}`)
	})
	p := engine.PruneParams{Namespace: engine.DefaultNamespace, Status: engine.RunCompleted,
		Before: f.Now.Add(time.Hour), Requests: f.Now, Limit: batch}
	f.measured(1, batch, func(ctx context.Context, _ int) error {
		deleted, err := f.Store.Prune(ctx, p)
		if err == nil && deleted != batch {
			err = fmt.Errorf("deleted %d runs, want %d", deleted, batch)
		}
		return err
	})
}

// claimant is a caller that waits for a run.
type claimant struct {
	params engine.ClaimParams
	lease  chan engine.Lease
	err    chan error
}

// shareClaims claims for all waiting callers, one claim at a time, until no caller can wait any
// more.
func shareClaims(ctx context.Context, store engine.Store, waiting <-chan claimant) {
	for first := range waiting {
		all := []claimant{first}
		for more := true; more; {
			select {
			case c, open := <-waiting:
				if more = open; open {
					all = append(all, c)
				}
			default:
				more = false
			}
		}
		for len(all) > 0 {
			p := all[0].params
			for _, c := range all[1:] {
				p.Slots = append(p.Slots, c.params.Slots...)
			}
			claimed, err := store.Claim(ctx, p)
			if err != nil {
				for _, c := range all {
					c.err <- err
				}
				break
			}
			for i, task := range claimed.Tasks {
				all[i].lease <- task.Lease
			}
			all = all[len(claimed.Tasks):] // there is a run for each: the others are claimed next
		}
	}
}

// benchHeartbeat sends heartbeats of workers that each name the ten runs that they hold.
func benchHeartbeat(f *bench, workers int) {
	beats := make([]engine.HeartbeatParams, workers)
	for i := range beats {
		beats[i] = engine.HeartbeatParams{WorkerID: f.Worker(fmt.Sprintf("beat-%d", i)), Whole: true,
			NameWithin: time.Hour, Now: f.Now}
		var starts []engine.StartRun
		var slots []string
		for range 10 {
			starts, slots = append(starts, f.NewRun()), append(slots, beats[i].WorkerID)
		}
		f.StartAll(starts...)
		for _, task := range f.ClaimWith(f.ClaimParams(slots...)).Tasks {
			beats[i].Held = append(beats[i].Held, task.Lease)
		}
	}
	f.measured(workers, 1, func(ctx context.Context, i int) error {
		_, err := f.Store.Heartbeat(ctx, beats[i%workers])
		return err
	})
}

// benchHistory reads the whole history of a run, in pages as the server sends them.
func benchHistory(f *bench, steps int) {
	l := f.claimed(1)[0]
	f.CompleteMany(l, steps)
	f.measured(1, steps, func(ctx context.Context, _ int) error {
		got := 0
		for from := int64(1); from != 0; {
			page, next, err := f.Store.GetHistory(
				ctx, engine.HistoryParams{Namespace: fixture.Space, RunID: l.RunID, From: from,
					Bytes: engine.HistoryBytes})
			if err != nil {
				return err
			}
			got, from = got+len(page), next
		}
		if got != steps {
			return fmt.Errorf("history of %d steps, want %d", got, steps)
		}
		return nil
	})
}
