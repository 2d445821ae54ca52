package sqlite

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kagzi/kagzi/engine"
)

// holding starts n runs and claims them all.
func holding(tb testing.TB, s engine.Store, n int) []engine.Lease {
	tb.Helper()
	now := s.Now()
	if _, err := s.RegisterWorker(tb.Context(), engine.RegisterWorkerParams{Chosen: true, Now: now, Worker: engine.Worker{
		ID: "w1", Namespace: "default", InstanceID: "one", Queues: []string{"q"}, Types: []string{"t"}, MaxConcurrent: n,
	}}); err != nil {
		tb.Fatal(err)
	}
	starts, grants := make([]engine.StartRun, n), make([]engine.Grant, n)
	for i := range starts {
		starts[i] = startOf("t", s)
		grants[i] = engine.Grant{WorkerID: "w1", Token: engine.NewToken()}
	}
	if _, err := s.StartRuns(tb.Context(), starts); err != nil {
		tb.Fatal(err)
	}
	claimed, err := s.Claim(tb.Context(), engine.ClaimParams{
		Namespace: "default", Queue: "q", Types: []string{"t"}, Grants: grants, HistoryBytes: engine.HistoryBytes, Now: s.Now(),
	})
	if err != nil || len(claimed.Tasks) != n {
		tb.Fatalf("claimed %d runs (%v), want %d", len(claimed.Tasks), err, n)
	}
	leases := make([]engine.Lease, n)
	for i, task := range claimed.Tasks {
		leases[i] = task.Lease
	}
	return leases
}

func startOf(kind string, s engine.Store) engine.StartRun {
	now := s.Now()
	return engine.StartRun{Run: engine.Run{
		ID: engine.NewID(now), Namespace: "default", Queue: "q", Type: kind, CreatedAt: now, AvailableAt: now,
		Input: engine.Payload{Data: []byte(`{"order":1}`)},
	}}
}

func BenchmarkCompleteStep(b *testing.B) {
	for _, callers := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			s := open(b)
			const perRun = 5000
			leases := holding(b, s, b.N/perRun+1)
			var next atomic.Int64
			var group sync.WaitGroup
			b.ResetTimer()
			for range callers {
				group.Go(func() {
					for i := next.Add(1) - 1; i < int64(b.N); i = next.Add(1) - 1 {
						now := s.Now()
						_, err := s.CompleteStep(b.Context(), engine.CompleteStepParams{
							Lease: leases[i/perRun], Step: engine.StepRef{Name: fmt.Sprintf("step-%d", i%perRun)}, ID: engine.NewID(now),
							Output: engine.Payload{Data: []byte(`{"charge":"ch_1234567890"}`)}, Now: now,
						})
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			group.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
		})
	}
}

// BenchmarkRuns is the whole life of runs without steps, in batches as a busy dispatcher makes them.
func BenchmarkRuns(b *testing.B) {
	s := open(b)
	holding(b, s, 1)
	var left atomic.Int64
	left.Store(int64(b.N))
	var group sync.WaitGroup
	b.ResetTimer()
	for range 100 {
		group.Go(func() {
			for left.Add(-1) >= 0 {
				if err := oneRun(b, s); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
}

func oneRun(b *testing.B, s engine.Store) error {
	if _, err := s.StartRuns(b.Context(), []engine.StartRun{startOf("t", s)}); err != nil {
		return err
	}
	claimed, err := s.Claim(b.Context(), engine.ClaimParams{
		Namespace: "default", Queue: "q", Types: []string{"t"}, Grants: []engine.Grant{{WorkerID: "w1", Token: engine.NewToken()}},
		HistoryBytes: engine.HistoryBytes, Now: s.Now(),
	})
	if err != nil {
		return err
	}
	for _, task := range claimed.Tasks {
		err := s.CompleteRun(b.Context(), engine.CompleteRunParams{Lease: task.Lease, Output: task.Run.Input, Now: s.Now()})
		if err != nil {
			return err
		}
	}
	return nil
}
