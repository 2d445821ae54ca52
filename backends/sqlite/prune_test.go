package sqlite

import (
	"testing"

	"github.com/kagzi/kagzi/engine"
)

func TestRunsWithVeryManyRowsAreDeletedAFewAtATime(t *testing.T) {
	s := open(t).(*Store)
	const n = 5
	for range n {
		id := startedRun(t, s, "default", "in")
		end := engine.EndRunParams{Namespace: "default", RunID: id, AuditID: engine.NewID(s.Now()), Now: s.Now()}
		if _, err := s.TerminateRun(t.Context(), end); err != nil {
			t.Fatal(err)
		}
	}
	// Each claims to have so many steps that two of them fit.
	statement := "update runs set steps = 4000"
	if _, err := write(t.Context(), s, "grow", 0, func(x *tx) (int64, error) {
		return x.exec(&statement)
	}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{2, 2, 1, 0} {
		deleted, err := s.Prune(t.Context(), engine.PruneParams{
			Namespace: "default", Status: engine.RunTerminated, Before: s.Now(), Limit: n})
		if err != nil || deleted != want {
			t.Errorf("deleted %d runs, %v, want %d", deleted, err, want)
		}
	}
}
