package sqlite

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/kagzi/kagzi/engine"
)

// claimLimited claims one run of queue q under limit n.
func claimLimited(t *testing.T, s *Store, n int) []engine.Task {
	t.Helper()
	claimed, err := s.Claim(t.Context(), engine.ClaimParams{
		Namespace: "default", Queue: "q", Types: []string{"t"},
		Slots:      []engine.ClaimSlot{{WorkerID: "w1", Token: engine.NewToken()}},
		QueueLimit: n, HistoryBytes: engine.HistoryBytes, Now: s.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return claimed.Tasks
}

// expectLimitOfTwo checks that the queue's limit of two is reached with two leases, and not with
// one.
func expectLimitOfTwo(t *testing.T, s *Store, held []engine.Lease) {
	t.Helper()
	if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{
		Runs: []engine.StartRun{startOf("t", s)}}); err != nil {
		t.Fatal(err)
	}
	if tasks := claimLimited(t, s, 2); len(tasks) != 0 {
		t.Fatalf("claimed %d runs while two run, want none", len(tasks))
	}
	if _, err := s.CompleteRun(t.Context(), engine.CompleteRunParams{Lease: held[0], Now: s.Now()}); err != nil {
		t.Fatal(err)
	}
	if tasks := claimLimited(t, s, 2); len(tasks) != 1 {
		t.Fatalf("claimed %d runs while one runs, want one", len(tasks))
	}
}

func TestALimitCountsWhatRanBeforeTheStoreWasOpened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kagzi.db")
	s := openAt(t, path)
	held := holding(t, s, 2)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	expectLimitOfTwo(t, openAt(t, path), held)
}

func TestALimitCountsAgainWhatARollbackBroughtBack(t *testing.T) {
	s := fresh(t)
	held := holding(t, s, 2)
	if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{
		Runs: []engine.StartRun{startOf("t", s)}}); err != nil {
		t.Fatal(err)
	}
	if tasks := claimLimited(t, s, 2); len(tasks) != 0 { // from here on the writer has cached the count
		t.Fatalf("claimed %d runs, want none", len(tasks))
	}
	broken := errors.New("broken")
	_, err := write(t.Context(), s, "CompleteRun", 0, func(tx *tx) (none struct{}, err error) {
		if done, err := tx.completeUntied(&engine.CompleteRunParams{Lease: held[1], Now: s.Now()}, 0); err != nil ||
			!done {
			t.Errorf("completed = %t (%v)", done, err)
		}
		return none, broken
	})
	if !errors.Is(err, broken) {
		t.Fatalf("error = %v, want the call's own", err)
	}
	expectLimitOfTwo(t, s, held)
}

func TestExistedRequestIsKnownAfterReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kagzi.db")
	s := openAt(t, path)
	first := startOf("t", s)
	first.ExternalID = "order-1"
	second := startOf("t", s)
	second.ExternalID, second.RequestID = "order-1", "request-2"
	answers, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{first, second}})
	if err != nil || answers[1].RunID != first.ID {
		t.Fatalf("answers = %+v (%v), want the first run twice", answers, err)
	}
	if _, err := s.TerminateRun(t.Context(), engine.EndRunParams{
		Namespace: "default", RunID: first.ID, AuditID: engine.NewID(s.Now()), Now: s.Now()}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	second.ID = engine.NewID(s.Now())
	answers, err = openAt(t, path).StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{second}})
	if err != nil || answers[0].RunID != first.ID || !answers[0].Repeated {
		t.Fatalf("answers = %+v (%v), want the first run, repeated", answers, err)
	}
}
