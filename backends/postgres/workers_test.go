package postgres

import (
	"testing"

	"github.com/kagzi/kagzi/engine"
)

func TestRunsOfAWorkerWhoseTakingOffWasCutShortAreFreed(t *testing.T) {
	s := open(t).(*Store)
	register(t, s, "w1")
	start(t, s, 1)
	claimed, err := s.Claim(t.Context(), claimParams(s, "w1", 1))
	if err != nil || len(claimed.Tasks) != 1 {
		t.Fatalf("claimed %d runs, %v, want 1", len(claimed.Tasks), err)
	}
	_, err = write(s, "take off and go no further", func(x *tx) (none struct{}, err error) {
		return none, x.queue(offlineWorkerSQL, args{"worker_id": "w1", "reason": int16(engine.OfflineForced), "now": micros(s.Now())})
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, next, err := s.FreeLost(t.Context(), s.Now()); n != 1 || !next.IsZero() || err != nil {
		t.Errorf("freed %d runs, next %s, %v, want 1 and no other", n, next, err)
	}
	run, err := s.GetRun(t.Context(), "default", claimed.Tasks[0].Run.ID)
	if err != nil || run.Status != engine.RunPending || run.LeaseLosses != 0 {
		t.Errorf("run is %s with %d losses, %v, want PENDING with none", run.Status, run.LeaseLosses, err)
	}
}
