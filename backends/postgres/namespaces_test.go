package postgres

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

const doomed = "doomed"

func startIn(t *testing.T, s *Store, must bool) error {
	r := newStart(s)
	r.Namespace = doomed
	started, err := s.StartRuns(t.Context(),
		engine.StartRunsParams{Runs: []engine.StartRun{r}, NamespaceMustExist: must})
	if err != nil {
		return err
	}
	return started[0].Err
}

func emptyDoomed(t *testing.T, s *Store) {
	t.Helper()
	for more := true; more; {
		now := s.Now()
		part, err := s.EmptyNamespace(t.Context(), engine.EmptyNamespaceParams{Name: doomed, Limit: 10,
			AuditID: engine.NewID(now), Now: now})
		if err != nil {
			t.Fatal(err)
		}
		more = part.More
	}
}

func deletionOf(s *Store) engine.DeleteNamespaceParams {
	now := s.Now()
	return engine.DeleteNamespaceParams{Name: doomed, AuditID: engine.NewID(now), Now: now}
}

// waitsFor waits until another session is blocked by the transaction, or done is closed.
func waitsFor(t *testing.T, watch *pgx.Conn, x *tx, done chan error) error {
	for waits := false; !waits && len(done) == 0; {
		err := watch.QueryRow(t.Context(),
			"select exists (select from pg_locks where not granted and $1 = any(pg_blocking_pids(pid)))",
			int32(x.conn.Conn().PgConn().PID())).Scan(&waits)
		if err != nil {
			return err
		}
	}
	return nil
}

func TestCachesOfAnotherServerDoNotBringBackADeletedNamespace(t *testing.T) {
	a, b := rivals(t)
	if err := startIn(t, b, false); err != nil { // b has it in its caches
		t.Fatal(err)
	}
	emptyDoomed(t, a)
	if err := a.DeleteNamespace(t.Context(), deletionOf(a)); err != nil {
		t.Fatal(err)
	}
	if err := startIn(t, b, true); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("a start where the namespace must exist: error = %v, want not found", err)
	}
	if _, err := a.GetNamespace(t.Context(), doomed); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("GetNamespace after a refused start: error = %v, want not found", err)
	}
	if err := startIn(t, b, false); err != nil {
		t.Errorf("a start that may make the namespace: %v", err)
	}
	if _, err := a.GetNamespace(t.Context(), doomed); err != nil {
		t.Errorf("GetNamespace after a start that made it: %v", err)
	}
}

func TestAStartThatMeetsADeletionIsRefusedAfterwards(t *testing.T) {
	a, b := rivals(t)
	if err := startIn(t, b, false); err != nil {
		t.Fatal(err)
	}
	emptyDoomed(t, a)
	watch := adminConnection(t, a.pool.Config().ConnString())
	started := make(chan error, 1)
	_, err := write(a, "delete a namespace, slowly", func(x *tx) (none struct{}, err error) {
		if err := x.queue(lockNamespacesSQL, args{}); err != nil {
			return none, err
		}
		if err := storelogic.DeleteNamespace(x, deletionOf(a)); err != nil {
			return none, err
		}
		if err := x.send(); err != nil {
			return none, err
		}
		go func() { started <- startIn(t, b, true) }()
		return none, waitsFor(t, watch, x, started)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-started; !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("the start: error = %v, want not found", err)
	}
	var runs int
	if err := watch.QueryRow(t.Context(), "select count(*) from runs").Scan(&runs); err != nil || runs != 0 {
		t.Errorf("%d runs (%v), want none", runs, err)
	}
}

func TestADeletionThatMeetsAStartIsRefusedAfterwards(t *testing.T) {
	a, b := rivals(t)
	if err := startIn(t, b, false); err != nil {
		t.Fatal(err)
	}
	emptyDoomed(t, a)
	now := a.Now()
	n, err := a.GetNamespace(t.Context(), doomed)
	if err != nil {
		t.Fatal(err)
	}
	n.Enabled = true
	if _, err := a.UpdateNamespace(t.Context(), engine.NamespaceParams{Namespace: n, AuditID: engine.NewID(now),
		Now: now}); err != nil {
		t.Fatal(err)
	}
	watch := adminConnection(t, a.pool.Config().ConnString())
	deleted := make(chan error, 1)
	r := newStart(a)
	r.Namespace = doomed
	begun := false
	first, err := write(a, "start a run, slowly", func(x *tx) (engine.Started, error) {
		answer, err := x.startOne(&r, true, map[string]error{})
		if err == nil {
			err = x.send()
		}
		if err != nil || begun {
			return answer, err
		}
		begun = true
		go func() { deleted <- b.DeleteNamespace(t.Context(), deletionOf(b)) }()
		return answer, waitsFor(t, watch, x, deleted)
	})
	if err != nil || first.Err != nil {
		t.Fatalf("the start: %v, %v", err, first.Err)
	}
	if err := <-deleted; !errors.Is(err, engine.ErrPrecondition) {
		t.Errorf("DeleteNamespace: error = %v, want that it is not empty", err)
	}
}
