package postgres

import (
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// Where Postgres knows of one worker only, it would look for the old ones again for each, and find others in place of those that are gone.
func TestASweepTakesNoMoreThanItsLimitHoweverItIsPlanned(t *testing.T) {
	s := openAt(t, lentURL(t))
	now := time.Now()
	for i, id := range []string{"a", "b", "c"} {
		register(t, s, id)
		if _, err := s.OfflineWorker(t.Context(), engine.OfflineWorkerParams{WorkerID: id, Reason: engine.OfflineDeregistered, Now: now}); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if _, err := s.pool.Exec(t.Context(), "analyze workers"); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, want := range []bool{true, false} {
		more, err := s.PruneRecords(t.Context(), engine.PruneRecordsParams{Workers: now.Add(time.Hour), Limit: 2})
		if err != nil || more != want {
			t.Errorf("sweep %d says more = %t (%v), want %t", i+1, more, err, want)
		}
	}
}
