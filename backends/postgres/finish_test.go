package postgres

import (
	"testing"

	"github.com/kagzi/kagzi/engine"
)

// Another server may still be writing the last result when this one gets the end.
func TestAnEndThatMeetsAChangeOfItsLeaseComesAfterIt(t *testing.T) {
	a, b := rivals(t)
	register(t, a, "w1")
	start(t, a, 1)
	claimed, err := a.Claim(t.Context(), claimParams(a, "w1", 1))
	if err != nil || len(claimed.Tasks) != 1 {
		t.Fatalf("claimed %d runs, %v, want 1", len(claimed.Tasks), err)
	}
	l := claimed.Tasks[0].Lease
	_, err = meanwhile(t, b, func(x *tx) error {
		_, err := x.exec("update leases set bytes = bytes + 1000 where run_id = @run_id",
			args{"run_id": [16]byte(l.RunID)})
		return err
	}, func() (engine.Completed, error) {
		return a.CompleteRun(t.Context(), engine.CompleteRunParams{Lease: l, Now: a.Now()})
	})
	if err != nil {
		t.Fatalf("CompleteRun: %v", err)
	}
	run, err := a.GetRun(t.Context(), "default", l.RunID)
	if want := int64(1000 + len("input")); err != nil || run.Status != engine.RunCompleted || run.Bytes != want {
		t.Errorf("the run is %s with %d bytes, %v, want COMPLETED with %d", run.Status, run.Bytes, err, want)
	}
	if held, err := a.HeldBy(t.Context(), "w1"); err != nil || len(held) != 0 {
		t.Errorf("%d leases are left, %v, want none", len(held), err)
	}
}
