package postgres

import (
	"errors"
	"fmt"
	"testing"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// A worker that cannot reach one server reports to another while the first is still writing what it
// sent. That one has locked the lease when the second reads it.
func TestResultRacingLeaseChange(t *testing.T) {
	a, b := rivals(t)
	register(t, a, "w1")
	start(t, a, 2)
	claimed, err := a.Claim(t.Context(), claimParams(a, "w1", 2))
	if err != nil || len(claimed.Tasks) != 2 {
		t.Fatalf("claimed %d runs, %v, want 2", len(claimed.Tasks), err)
	}
	changed, lost := claimed.Tasks[0].Lease, claimed.Tasks[1].Lease
	result := func(l engine.Lease, name string) engine.CompleteStepParams {
		return engine.CompleteStepParams{Lease: l, Step: engine.StepRef{Name: name}, ID: engine.NewID(a.Now()),
			Output: engine.Payload{Data: []byte("1234")}, Now: a.Now()}
	}
	begun, err := a.BeginStep(t.Context(), engine.BeginStepParams{
		Lease: changed, Name: "begun", Kind: engine.StepFunction, ID: engine.NewID(a.Now()), Now: a.Now()})
	if err != nil {
		t.Fatal(err)
	}
	for i, early := range []engine.StepRef{{Name: "early"}, {ID: begun.Step.ID}} {
		// the latter changes only the lease's bytes
		got, err := meanwhile(t, b, func(x *tx) error {
			p := result(changed, "")
			p.Step = early
			_, err := storelogic.CompleteStep(x, p)
			return err
		}, func() (engine.Step, error) {
			return a.CompleteStep(t.Context(), result(changed, fmt.Sprint("late ", i)))
		})
		if want := int64(3 + i); err != nil || got.Sequence != want {
			t.Errorf("the late result is number %d, %v, want %d", got.Sequence, err, want)
		}
		run, err := a.GetRun(t.Context(), "default", changed.RunID)
		if want := int64(len("input") + (2+2*i)*len("1234")); err != nil || run.Steps != int64(3+i) ||
			run.Bytes != want {
			t.Errorf("the run has %d steps and %d bytes, %v, want %d and %d", run.Steps, run.Bytes, err, 3+i, want)
		}
	}

	_, err = meanwhile(t, b, func(x *tx) error {
		_, err := storelogic.TerminateRun(x, engine.EndRunParams{
			Namespace: "default", RunID: lost.RunID, AuditID: engine.NewID(b.Now()), Now: b.Now()})
		return err
	}, func() (engine.Step, error) { return a.CompleteStep(t.Context(), result(lost, "late")) })
	if !errors.Is(err, engine.ErrLeaseLost) {
		t.Errorf("a result after the end of its lease is answered with %v, want ErrLeaseLost", err)
	}
	var steps int
	if err := a.pool.QueryRow(t.Context(), fmt.Sprintf(
		"select count(*) from steps where run_id = '%s'", lost.RunID)).Scan(&steps); err != nil || steps != 0 {
		t.Errorf("%d steps were recorded without a lease, %v, want 0", steps, err)
	}
}
