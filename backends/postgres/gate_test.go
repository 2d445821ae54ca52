package postgres

import (
	"testing"

	"github.com/kagzi/kagzi/engine"
)

// A run that a claim found due may have ended, or be paused, when the claim gets its key.
func TestNobodyWaitsAtAGateForARunThatTookNoSlot(t *testing.T) {
	s := openAt(t, lentURL(t))
	register(t, s, "wa")
	ids := keyed(t, s, 3, 1)
	p := claimParams(s, "wa", 2)
	c := claim{store: s, p: &p, slots: p.Slots}
	_, err := write(s, "claim, slowly", func(x *tx) (none struct{}, err error) {
		heads, free, err := c.heads(x)
		if err != nil {
			return none, err
		}
		steer := engine.SteerParams{Namespace: "default", RunID: ids[0], AuditID: engine.NewID(s.Now()), Now: s.Now()}
		if _, err := s.PauseRun(t.Context(), engine.PauseRunParams{SteerParams: steer}); err != nil {
			return none, err
		}
		_, err = c.settle(x, heads, free, &look{})
		return none, err
	})
	if err != nil {
		t.Fatal(err)
	}
	claimed, err := s.Claim(t.Context(), claimParams(s, "wa", 1))
	if err != nil || len(claimed.Tasks) != 0 {
		t.Fatalf("claimed %d runs, %v, want none beside the one that holds the key", len(claimed.Tasks), err)
	}
	run, err := s.GetRun(t.Context(), "default", ids[1])
	if err != nil || run.Status != engine.RunRunning {
		t.Errorf("the second run is %s, gated %t, %v, want it RUNNING", run.Status, run.Gated, err)
	}
}
