package postgres

import (
	"testing"

	"github.com/kagzi/kagzi/engine"
)

func TestAStartThatMeetsARunWhileItIsDeletedMakesAnother(t *testing.T) {
	s := open(t).(*Store)
	old := newStart(s)
	old.ExternalID = "order-1"
	if _, err := s.StartRuns(t.Context(), []engine.StartRun{old}); err != nil {
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
		started, err := s.StartRuns(t.Context(), []engine.StartRun{next})
		if err != nil {
			t.Errorf("StartRuns: %v", err)
			started = make([]engine.Started, 1)
		}
		answer <- started[0]
	}()
	for waits := false; !waits; { // for the run that it was about to be answered with
		err := deletion.QueryRow(t.Context(), "select exists (select from pg_locks where not granted and $1 = any(pg_blocking_pids(pid)))",
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
