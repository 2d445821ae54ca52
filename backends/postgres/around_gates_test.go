package postgres

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// keyed starts n runs of one concurrency key.
func keyed(t *testing.T, s *Store, n, limit int) []engine.ID {
	t.Helper()
	starts, ids := make([]engine.StartRun, n), make([]engine.ID, n)
	for i := range starts {
		starts[i] = newStart(s)
		starts[i].ConcurrencyKey, starts[i].ConcurrencyLimit = "key", limit
		ids[i] = starts[i].ID
	}
	if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: starts}); err != nil {
		t.Fatal(err)
	}
	return ids
}

func TestConcurrencyLimitAcrossServers(t *testing.T) {
	url := lentURL(t)
	a, b := openAt(t, url), openAt(t, url)
	register(t, a, "wa")
	register(t, b, "wb")
	expectNoDeadlocks(t, a)
	const n, limit = 120, 3
	keyed(t, a, n, limit)
	var mu sync.Mutex
	holders, ended, most := 0, 0, 0
	count := func(by int) int {
		mu.Lock()
		defer mu.Unlock()
		if holders += by; by < 0 {
			ended -= by
		}
		most = max(most, holders)
		return ended
	}
	stuck := time.Now().Add(time.Minute)
	var group sync.WaitGroup
	for i := range 8 {
		s, worker := a, "wa"
		if i%2 == 1 {
			s, worker = b, "wb"
		}
		group.Go(func() {
			for count(0) < n && time.Now().Before(stuck) {
				claimed, err := s.Claim(t.Context(), claimParams(s, worker, 2))
				if err != nil {
					t.Errorf("Claim: %v", err)
					return
				}
				count(len(claimed.Tasks))
				for _, task := range claimed.Tasks {
					count(-1) // before the slot is free, because then another may take it at once
					if _, err := s.CompleteRun(t.Context(),
						engine.CompleteRunParams{Lease: task.Lease, Now: s.Now()}); err != nil {
						t.Errorf("CompleteRun: %v", err)
						return
					}
				}
			}
		})
	}
	group.Wait()
	if most > limit {
		t.Fatalf("%d runs of the key were held at once, at most %d are allowed", most, limit)
	}
	var open int
	if err := a.pool.QueryRow(t.Context(), "select count(*) from runs where status <= 3").Scan(&open); err != nil ||
		open > 0 {
		t.Fatalf("%d runs are open still (%v), want none", open, err)
	}
	expectSound(t, url)
}

func TestCancelOfGatedRunsRacingGateOpening(t *testing.T) {
	url := lentURL(t)
	a, b := openAt(t, url), openAt(t, url)
	register(t, a, "wa")
	expectNoDeadlocks(t, a)
	const n = 100
	ids := keyed(t, a, n, 1)
	for i := 0; ; {
		claimed, err := a.Claim(t.Context(), claimParams(a, "wa", 5))
		if err != nil {
			t.Fatal(err)
		}
		if len(claimed.Tasks) == 0 {
			break
		}
		var group sync.WaitGroup
		group.Go(func() {
			_, err := a.CompleteRun(t.Context(), engine.CompleteRunParams{Lease: claimed.Tasks[0].Lease, Now: a.Now()})
			if err != nil && !errors.Is(err, engine.ErrLeaseLost) {
				t.Errorf("CompleteRun: %v", err)
			}
		})
		for range 3 {
			if i++; i >= n {
				break
			}
			id := ids[i]
			group.Go(func() {
				p := engine.EndRunParams{Namespace: "default", RunID: id, AuditID: engine.NewID(b.Now()), Now: b.Now()}
				if _, err := b.CancelRun(t.Context(), p); err != nil && !errors.Is(err, engine.ErrPrecondition) {
					t.Errorf("CancelRun: %v", err)
				}
			})
		}
		group.Wait()
	}
	var open int
	if err := a.pool.QueryRow(t.Context(), "select count(*) from runs where status <= 3").Scan(&open); err != nil ||
		open > 0 {
		t.Fatalf("%d runs are open still (%v), want none", open, err)
	}
	expectSound(t, url)
}

// A transaction that opens a gate holds the key's lock and then wants the run, so one that holds
// the run must not wait for the key.
func TestGatedRunEndWaitsForKeyFirst(t *testing.T) {
	s := openAt(t, lentURL(t))
	register(t, s, "wa")
	ids := keyed(t, s, 2, 1)
	for range 2 { // the first takes the slot, the second is gated
		if _, err := s.Claim(t.Context(), claimParams(s, "wa", 1)); err != nil {
			t.Fatal(err)
		}
	}
	conn := adminConnection(t, s.pool.Config().ConnString())
	opener, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := opener.Exec(t.Context(), "select pg_advisory_xact_lock($1)",
		keyNumber("default", "order", "key")); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	group.Go(func() {
		p := engine.EndRunParams{Namespace: "default", RunID: ids[1], AuditID: engine.NewID(s.Now()), Now: s.Now()}
		if end, err := s.CancelRun(t.Context(), p); err != nil || !end.Changed {
			t.Errorf("CancelRun: %+v, %v", end, err)
		}
	})
	for waiting, deadline := 0, time.Now().Add(20*time.Second); waiting == 0; {
		err := opener.QueryRow(t.Context(),
			"select count(*) from pg_locks where locktype = 'advisory' and not granted").Scan(&waiting)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("nobody waits for the key: %v", err)
		}
	}
	var locked engine.ID
	err = opener.QueryRow(t.Context(), "select run_id from runs where run_id = $1 for no key update nowait",
		[16]byte(ids[1])).Scan(idOf(&locked))
	if err != nil {
		t.Errorf("the run is locked by one who waits for its key: %v", err)
	}
	if err := opener.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	group.Wait()
}
