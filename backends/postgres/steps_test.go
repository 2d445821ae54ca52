package postgres

import (
	"errors"
	"fmt"
	"testing"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/ledger"
)

// A worker that has lost sight of one server reports to another while the first is still at work on what it sent. The lease is locked by that
// when the second has read it.
func TestAResultThatMeetsAChangeOfItsLeaseIsCountedAfterIt(t *testing.T) {
	a, b := rivals(t)
	register(t, a, "w1")
	start(t, a, 2)
	claimed, err := a.Claim(t.Context(), claimParams(a, "w1", 2))
	if err != nil || len(claimed.Tasks) != 2 {
		t.Fatalf("claimed %d runs, %v, want 2", len(claimed.Tasks), err)
	}
	changed, lost := claimed.Tasks[0].Lease, claimed.Tasks[1].Lease
	result := func(l engine.Lease, name string) engine.CompleteStepParams {
		return engine.CompleteStepParams{Lease: l, Step: engine.StepRef{Name: name}, ID: engine.NewID(a.Now()), Output: engine.Payload{Data: []byte("1234")}, Now: a.Now()}
	}
	type answer struct {
		step engine.Step
		err  error
	}
	watch := adminConnection(t, a.pool.Config().ConnString())
	// meanwhile has b change something, and a record a result when that is done but not committed.
	meanwhile := func(l engine.Lease, name string, change func(*tx) error) answer {
		late, begun := make(chan answer, 1), false
		_, err := write(b, "change a lease, slowly", func(x *tx) (none struct{}, err error) {
			if err := change(x); err != nil || begun {
				return none, err
			}
			begun = true
			go func() {
				step, err := a.CompleteStep(t.Context(), result(l, name))
				late <- answer{step, err}
			}()
			for waits := false; !waits && len(late) == 0; {
				err := watch.QueryRow(t.Context(), "select exists (select from pg_locks where not granted and $1 = any(pg_blocking_pids(pid)))",
					int32(x.conn.Conn().PgConn().PID())).Scan(&waits)
				if err != nil {
					return none, err
				}
			}
			return none, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return <-late
	}

	begun, err := a.BeginStep(t.Context(), engine.BeginStepParams{Lease: changed, Name: "begun", Kind: engine.StepFunction, ID: engine.NewID(a.Now()), Now: a.Now()})
	if err != nil {
		t.Fatal(err)
	}
	for i, early := range []engine.StepRef{{Name: "early"}, {ID: begun.Step.ID}} { // the latter changes the lease's bytes alone
		got := meanwhile(changed, fmt.Sprint("late ", i), func(x *tx) error {
			p := result(changed, "")
			p.Step = early
			_, err := ledger.CompleteStep(x, p)
			return err
		})
		if want := int64(3 + i); got.err != nil || got.step.Sequence != want {
			t.Errorf("the late result is number %d, %v, want %d", got.step.Sequence, got.err, want)
		}
		run, err := a.GetRun(t.Context(), "default", changed.RunID)
		if want := int64(len("input") + (2+2*i)*len("1234")); err != nil || run.Steps != int64(3+i) || run.Bytes != want {
			t.Errorf("the run has %d steps and %d bytes, %v, want %d and %d", run.Steps, run.Bytes, err, 3+i, want)
		}
	}

	got := meanwhile(lost, "late", func(x *tx) error {
		_, err := ledger.TerminateRun(x, engine.EndRunParams{Namespace: "default", RunID: lost.RunID, AuditID: engine.NewID(b.Now()), Now: b.Now()})
		return err
	})
	if !errors.Is(got.err, engine.ErrLeaseLost) {
		t.Errorf("a result after the end of its lease is answered with %v, want ErrLeaseLost", got.err)
	}
	var steps int
	if err := watch.QueryRow(t.Context(), fmt.Sprintf("select count(*) from steps where run_id = '%s'", lost.RunID)).Scan(&steps); err != nil || steps != 0 {
		t.Errorf("%d steps were recorded without a lease, %v, want 0", steps, err)
	}
}
