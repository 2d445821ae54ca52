package postgres

import (
	"errors"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// afterEachRow makes a database call a function of the test for each row of these tables at the
// commit.
func afterEachRow(t *testing.T, url, body string) (undo func()) {
	t.Helper()
	admin := adminConnection(t, url)
	exec := func(text string) {
		t.Helper()
		if _, err := admin.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	exec(`create function spoil() returns trigger language plpgsql as $$ begin ` + body + `; return null; end $$`)
	for _, table := range []string{"runs", "standing"} {
		exec(`create constraint trigger spoil after insert on ` + table +
			` deferrable initially deferred for each row execute function spoil()`)
	}
	return func() { exec(`drop function spoil cascade`) }
}

// asked returns the database's health now, although it was asked a moment ago.
func asked(t *testing.T, s *Store) error {
	t.Helper()
	s.health.Lock()
	s.health.at = time.Time{}
	s.health.Unlock()
	return s.Health(t.Context())
}

func TestHealthWhileDatabaseRefusesWrites(t *testing.T) {
	url := lentURL(t)
	s := openAt(t, url)
	undo := afterEachRow(t, url, `raise exception using errcode = '53100'`)
	if err := asked(t, s); err != nil {
		t.Errorf("health before a write = %v", err)
	}
	if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{newStart(s)}}); !errors.Is(
		err, engine.ErrExhausted) {
		t.Fatalf("start = %v, want exhausted", err)
	}
	for range 2 {
		if err := asked(t, s); !errors.Is(err, engine.ErrExhausted) {
			t.Errorf("health of a full disk = %v, want exhausted", err)
		}
	}
	undo()
	if err := asked(t, s); err != nil { // although nobody has written
		t.Errorf("health with room again = %v", err)
	}
	if s.suspicions.any() {
		t.Error("suspicions are left")
	}
}

func TestHealthWhileCommitsHang(t *testing.T) {
	url := lentURL(t)
	s := openAt(t, url)
	admin := adminConnection(t, url)
	if _, err := admin.Exec(t.Context(), `select pg_advisory_lock(hashtext(current_schema()))`); err != nil {
		t.Fatal(err)
	}
	undo := afterEachRow(t, url, `perform pg_advisory_xact_lock_shared(hashtext(current_schema()))`)
	answer := make(chan error, 1)
	go func() {
		_, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{newStart(s)}})
		answer <- err
	}()
	for waits := false; !waits; { // for the lock, in its commit
		if err := admin.QueryRow(t.Context(),
			`select exists (select from pg_locks where locktype = 'advisory' and not granted)`).Scan(
			&waits); err != nil {
			t.Fatal(err)
		}
	}
	s.suspicions.mu.Lock()
	for number := range s.suspicions.begun {
		s.suspicions.begun[number] = time.Now().Add(-lateAfter) // the test does not wait that long
	}
	s.suspicions.mu.Unlock()
	if err := asked(t, s); !errors.Is(err, engine.ErrUnavailable) {
		t.Errorf("health while a commit does not come back = %v, want unavailable", err)
	}
	if _, err := admin.Exec(t.Context(), `select pg_advisory_unlock(hashtext(current_schema()))`); err != nil {
		t.Fatal(err)
	}
	if err := <-answer; err != nil && !errors.Is(err, engine.ErrUnavailable) {
		t.Errorf("start = %v", err)
	}
	undo()
	if err := asked(t, s); err != nil {
		t.Errorf("health afterwards = %v", err)
	}
}

func TestHealthOfReadOnlyDatabase(t *testing.T) {
	url := lentURL(t)
	openAt(t, url)
	conn := adminConnection(t, url)
	if _, err := conn.Exec(t.Context(), `set default_transaction_read_only = on`); err != nil {
		// as some hosts do when the disk is nearly full
		t.Fatal(err)
	}
	var readOnly, fenced bool
	if err := conn.QueryRow(t.Context(), healthSQL).Scan(&readOnly, &fenced); err != nil || !readOnly {
		t.Errorf("read-only = %t, %v", readOnly, err)
	}
}
