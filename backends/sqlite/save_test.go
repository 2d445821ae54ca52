package sqlite

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/kagzi/kagzi/engine"
)

func TestStepWritesOnlyLease(t *testing.T) {
	s := fresh(t)
	l := holding(t, s, 1)[0]
	behindItsBack(t, s.path,
		"create trigger watch before update on runs begin select raise(abort, 'the row of a run was written'); end")
	now := s.Now()
	begun, err := s.BeginStep(t.Context(), engine.BeginStepParams{
		Lease: l, Name: "pay", Kind: engine.StepFunction, ID: engine.NewID(now), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.CompleteStep(t.Context(), engine.CompleteStepParams{
		Lease: l, Step: engine.StepRef{ID: begun.Step.ID}, ID: engine.NewID(now), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.FailStep(t.Context(), engine.FailStepParams{
		Lease: l, Step: engine.StepRef{Name: "ship"}, ID: engine.NewID(now),
		Failure: engine.Failure{Message: "no", NonRetryable: true}, Now: now,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.PinRun(t.Context(), engine.PinRunParams{
		Pinned:      true,
		SteerParams: engine.SteerParams{Namespace: "default", RunID: l.RunID, AuditID: engine.NewID(now), Now: now},
	}); err == nil {
		t.Fatal("the trigger notices nothing")
	}
	if run, err := s.GetRun(t.Context(), "default", l.RunID); err != nil || run.Steps != 2 {
		t.Fatalf("steps = %d (%v), want 2", run.Steps, err)
	}
}

func TestDisabledNamespaceSurvivesRestartAndRollback(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kagzi.db")
	s := openAt(t, path)
	holding(t, s, 1)
	now := s.Now()
	enable := func(enabled bool) {
		t.Helper()
		n, err := s.GetNamespace(t.Context(), "default")
		if err != nil {
			t.Fatal(err)
		}
		n.Enabled = enabled
		if _, err := s.UpdateNamespace(t.Context(),
			engine.NamespaceParams{Namespace: n, AuditID: engine.NewID(now), Now: now}); err != nil {
			t.Fatal(err)
		}
	}
	start := func() error {
		t.Helper()
		answers, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{startOf("t", s)}})
		if err != nil {
			t.Fatal(err)
		}
		return answers[0].Err
	}
	enable(false)
	s.Close()
	s = openAt(t, path)
	if err := start(); !errors.Is(err, engine.ErrPrecondition) {
		t.Fatalf("start after a restart = %v, want it refused", err)
	}
	broken := errors.New("broken")
	_, err := write(t.Context(), s, "break", 0, func(tx *tx) (none struct{}, err error) {
		n, err := tx.Namespace("default")
		if err != nil {
			return none, err
		}
		n.Enabled = true
		return none, errors.Join(tx.SaveNamespace(n), broken)
	})
	if !errors.Is(err, broken) {
		t.Fatalf("error = %v, want broken", err)
	}
	if err := start(); !errors.Is(err, engine.ErrPrecondition) {
		t.Fatalf("start after what was rolled back = %v, want it refused", err)
	}
	enable(true)
	if err := start(); err != nil {
		t.Fatalf("start in the enabled namespace = %v", err)
	}
}
