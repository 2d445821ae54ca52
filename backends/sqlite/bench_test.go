package sqlite

import (
	"testing"
	"time"

	"github.com/kagzi/kagzi/backends/storetest"
	"github.com/kagzi/kagzi/engine"
)

// BenchmarkStore runs the benchmarks of storetest. For claims among many runs:
// -storetest.ended=1000000 -storetest.sleeping=100000.
func BenchmarkStore(b *testing.B) { storetest.Bench(b, open, fill) }

// fill writes the rows directly: first the sleeping runs, then the ended ones.
func fill(tb testing.TB, store engine.Store, ended, sleeping int, now time.Time) {
	tb.Helper()
	statement := `
		with recursive n (i) as (select 1 union all select i + 1 from n where i < @ended + @sleeping)
		insert into runs (run_id, namespace, lane_id, task_queue, workflow_type, status, created_at, available_at,
			started_at, finished_at)
		select unhex(printf('019000000000700080000000%08x', i)), 'default', (select lane_id from lanes limit 1), 'orders', 'order',
			iif(i <= @sleeping, 3, 4), @now,
			iif(i <= @sleeping, @now + 400 * 86400000000 + i, null), @now, iif(i <= @sleeping, null, @now + i)
		from n`
	payloads := "insert into payloads (run_id, input) select run_id, x'7b7d' from runs"
	s := store.(*Store)
	_, err := write(tb.Context(), s, "fill", 0, func(t *tx) (none struct{}, err error) {
		if err := t.useNamespace("default", now); err != nil {
			return none, err
		}
		if _, err := t.lane(&engine.Run{Namespace: "default", Queue: "orders", Type: "order"}, ""); err != nil {
			return none, err
		}
		if _, err := t.exec(&statement, num("ended", ended), num("sleeping", sleeping),
			instant("now", now)); err != nil {
			return none, err
		}
		_, err = t.exec(&payloads)
		return none, err
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// holding starts n runs and claims them all.
func holding(tb testing.TB, s engine.Store, n int) []engine.Lease {
	tb.Helper()
	now := s.Now()
	if _, err := s.RegisterWorker(tb.Context(),
		engine.RegisterWorkerParams{Chosen: true, Now: now, Worker: engine.Worker{
			ID: "w1", Namespace: "default", InstanceID: "one", Queues: []string{"q"}, Types: []string{"t"},
			MaxConcurrent: n,
		}}); err != nil {
		tb.Fatal(err)
	}
	starts, slots := make([]engine.StartRun, n), make([]engine.ClaimSlot, n)
	for i := range starts {
		starts[i] = startOf("t", s)
		slots[i] = engine.ClaimSlot{WorkerID: "w1", Token: engine.NewToken()}
	}
	if _, err := s.StartRuns(tb.Context(), engine.StartRunsParams{Runs: starts}); err != nil {
		tb.Fatal(err)
	}
	claimed, err := s.Claim(tb.Context(), engine.ClaimParams{
		Namespace: "default", Queue: "q", Types: []string{"t"}, Slots: slots, HistoryBytes: engine.HistoryBytes,
		Now: s.Now(),
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
