package sqlite

import (
	"testing"

	"github.com/kagzi/kagzi/engine"
)

func TestClaimGatesMoreRunsThanOneTransaction(t *testing.T) {
	s := fresh(t)
	holding(t, s, 1) // registers the worker
	const keyed = 4 * maxGated
	starts := make([]engine.StartRun, keyed)
	for i := range starts {
		starts[i] = startOf("t", s)
		starts[i].ConcurrencyKey, starts[i].ConcurrencyLimit = "customer", 1
	}
	last := startOf("t", s)
	if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: append(starts, last)}); err != nil {
		t.Fatal(err)
	}
	claim := func(n int) engine.Claimed {
		t.Helper()
		slots := make([]engine.ClaimSlot, n)
		for i := range slots {
			slots[i] = engine.ClaimSlot{WorkerID: "w1", Token: engine.NewToken()}
		}
		claimed, err := s.Claim(t.Context(), engine.ClaimParams{
			Namespace: "default", Queue: "q", Types: []string{"t"}, Slots: slots, HistoryBytes: engine.HistoryBytes,
			Now: s.Now(),
		})
		if err != nil {
			t.Fatal(err)
		}
		return claimed
	}
	before := s.CommitSizes().Commits
	claimed := claim(3)
	if got := s.CommitSizes().Commits - before; got < 3 {
		t.Errorf("commits = %d, want 3 or more for %d runs, so that other writes get their turn", got, keyed)
	}
	if len(claimed.Tasks) != 2 || claimed.Tasks[0].Run.ID != starts[0].ID || claimed.Tasks[1].Run.ID != last.ID ||
		claimed.Limited {
		t.Fatalf("claimed %d runs (limited %t), want the first of the key and then the one without a key",
			len(claimed.Tasks), claimed.Limited)
	}
	if findings, err := Check(t.Context(), s.path); err != nil || len(findings) > 0 {
		t.Fatalf("findings = %v (%v), want none", findings, err)
	}
	if again := claim(1); len(again.Tasks) != 0 {
		t.Fatalf("claimed %d runs past the limit of the key", len(again.Tasks))
	}
	for i := 1; i < 4; i++ { // one slot, one run, in order
		if _, err := s.CompleteRun(t.Context(), engine.CompleteRunParams{
			Lease: claimed.Tasks[0].Lease, Now: s.Now()}); err != nil {
			t.Fatal(err)
		}
		if claimed = claim(2); len(claimed.Tasks) != 1 || claimed.Tasks[0].Run.ID != starts[i].ID {
			t.Fatalf("claimed %d runs after a slot was free, want number %d of the line", len(claimed.Tasks), i)
		}
	}
}

func TestWhatAnotherQueueHoldsOfAKeyCounts(t *testing.T) {
	s := fresh(t)
	holding(t, s, 1)
	starts := []engine.StartRun{startOf("t", s), startOf("t", s)}
	for i, queue := range []string{"q", "other"} {
		starts[i].Queue, starts[i].ConcurrencyKey, starts[i].ConcurrencyLimit = queue, "customer", 0 // 0 is 1
	}
	if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: starts}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{1, 0} {
		claimed, err := s.Claim(t.Context(), engine.ClaimParams{
			Namespace: "default", Queue: starts[i].Queue, Types: []string{"t"},
			Slots:        []engine.ClaimSlot{{WorkerID: "w1", Token: engine.NewToken()}},
			HistoryBytes: engine.HistoryBytes, Now: s.Now(),
		})
		if err != nil || len(claimed.Tasks) != want {
			t.Fatalf("claimed %d runs from %s (%v), want %d", len(claimed.Tasks), starts[i].Queue, err, want)
		}
	}
}
