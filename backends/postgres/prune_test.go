package postgres

import (
	"testing"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

func TestStartRacingPruneMakesRun(t *testing.T) {
	s := open(t).(*Store)
	old := newStart(s)
	old.ExternalID = "order-1"
	if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{old}}); err != nil {
		t.Fatal(err)
	}
	end := engine.EndRunParams{Namespace: "default", RunID: old.ID, AuditID: engine.NewID(s.Now()), Now: s.Now()}
	if _, err := s.TerminateRun(t.Context(), end); err != nil {
		t.Fatal(err)
	}
	pruner := adminConnection(t, s.pool.Config().ConnString())
	deletion, err := pruner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{prunePayloadSQL, pruneRunSQL} {
		if _, err := deletion.Exec(t.Context(), statement, args{"run_ids": idArray([]engine.ID{old.ID})}); err != nil {
			t.Fatal(err)
		}
	}
	next := newStart(s)
	next.ExternalID, next.RequestID, next.Reuse = old.ExternalID, "request-2", engine.ReuseNever
	answer := make(chan engine.Started, 1)
	go func() {
		started, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{next}})
		if err != nil {
			t.Errorf("StartRuns: %v", err)
			started = make([]engine.Started, 1)
		}
		answer <- started[0]
	}()
	for waits := false; !waits; { // for the run that it was about to be answered with
		err := deletion.QueryRow(t.Context(),
			"select exists (select from pg_locks where not granted and $1 = any(pg_blocking_pids(pid)))",
			int32(pruner.PgConn().PID())).Scan(&waits)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := deletion.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := <-answer; got.RunID != next.ID || got.Existed || got.Err != nil {
		t.Errorf("answer = %+v, want the new run %s", got, next.ID)
	}
}

func TestRunsWithVeryManyRowsAreDeletedAFewAtATime(t *testing.T) {
	s := open(t).(*Store)
	register(t, s, "wa")
	const n = 4
	start(t, s, n)
	claimed, err := s.Claim(t.Context(), claimParams(s, "wa", n))
	if err != nil || len(claimed.Tasks) != n {
		t.Fatalf("Claim: %d tasks, %v", len(claimed.Tasks), err)
	}
	for _, task := range claimed.Tasks {
		step := engine.CompleteStepParams{Lease: task.Lease, Step: engine.StepRef{Name: "s"}, ID: engine.NewID(s.Now()),
			Now: s.Now()}
		if _, err := s.CompleteStep(t.Context(), step); err != nil {
			t.Fatal(err)
		}
		if _, err := s.CompleteRun(t.Context(), engine.CompleteRunParams{Lease: task.Lease, Now: s.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	// Each claims to have so many steps that two of them fit.
	for _, statement := range []string{
		"update runs set steps = 20000",
		`create function too_many() returns trigger language plpgsql as $$ begin
			if (select count(*) from gone) > 2 then raise exception 'too many at a time'; end if;
			return null;
		end $$`,
		"create trigger few after delete on steps referencing old table as gone for each statement execute function too_many()",
	} {
		if _, err := s.pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []int{2, 2, 0} {
		deleted, err := s.Prune(t.Context(), engine.PruneParams{
			Namespace: "default", Status: engine.RunCompleted, Before: s.Now(), Limit: 10})
		if err != nil || deleted != want {
			t.Errorf("deleted %d runs, %v, want %d", deleted, err, want)
		}
	}
}

func TestARunThatIsPinnedMeanwhileIsKept(t *testing.T) {
	a, b := rivals(t)
	run := newStart(a)
	if _, err := a.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{run}}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.TerminateRun(t.Context(), engine.EndRunParams{
		Namespace: "default", RunID: run.ID, AuditID: engine.NewID(a.Now()), Now: a.Now()}); err != nil {
		t.Fatal(err)
	}
	n, err := meanwhile(t, b, func(x *tx) error {
		p := engine.PinRunParams{Pinned: true}
		p.Namespace, p.RunID, p.AuditID, p.Now = "default", run.ID, engine.NewID(b.Now()), b.Now()
		if _, err := storelogic.PinRun(x, p); err != nil {
			return err
		}
		return x.send()
	}, func() (int, error) {
		return a.Prune(t.Context(), engine.PruneParams{
			Namespace: "default", Status: engine.RunTerminated, Before: a.Now().Add(time.Hour), Limit: 10})
	})
	if err != nil || n != 0 {
		t.Errorf("deleted %d runs, %v, want none", n, err)
	}
	if got, err := a.GetRun(t.Context(), "default", run.ID); err != nil || !got.Pinned {
		t.Errorf("the run is pinned: %t, %v, want it to be", got.Pinned, err)
	}
}
