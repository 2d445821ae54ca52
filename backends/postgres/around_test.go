package postgres

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/lab/long"
)

// expectNoDeadlocks fails the test if the database had to end a transaction because of a deadlock.
func expectNoDeadlocks(t *testing.T, s *Store) {
	t.Helper()
	count := func() (n int64) {
		err := s.pool.QueryRow(t.Context(),
			"select deadlocks from pg_stat_database where datname = current_database()").Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := count()
	t.Cleanup(func() {
		t.Helper()
		conn := adminConnection(t, s.pool.Config().ConnString())
		var after int64
		if err := conn.QueryRow(t.Context(),
			"select deadlocks from pg_stat_database where datname = current_database()").Scan(&after); err == nil &&
			after > before {
			t.Errorf("%d deadlocks, want none", after-before)
		}
	})
}

// family starts a parent with n children, makes it wait for all of them, and claims the children.
func family(t *testing.T, s *Store, n int) (parent engine.ID, children []engine.Lease) {
	t.Helper()
	start(t, s, 1)
	claimed, err := s.Claim(t.Context(), claimParams(s, "wa", 1))
	if err != nil || len(claimed.Tasks) != 1 {
		t.Fatalf("Claim: %d tasks, %v", len(claimed.Tasks), err)
	}
	lease := claimed.Tasks[0].Lease
	ids := make([]engine.ID, n)
	for i := range ids {
		child := newStart(s)
		ids[i] = child.ID
		_, err := s.StartChild(t.Context(), engine.StartChildParams{
			Lease: lease, Step: fmt.Sprintf("child %d", i), ID: engine.NewID(s.Now()), Child: child, Now: s.Now(),
		})
		if err != nil {
			t.Fatalf("StartChild: %v", err)
		}
	}
	if _, err := s.AwaitChildren(t.Context(),
		engine.AwaitChildrenParams{Lease: lease, Children: ids, Now: s.Now()}); err != nil {
		t.Fatalf("AwaitChildren: %v", err)
	}
	for len(children) < n {
		claimed, err := s.Claim(t.Context(), claimParams(s, "wa", 100))
		if err != nil || len(claimed.Tasks) == 0 {
			t.Fatalf("Claim: %d tasks, %v", len(claimed.Tasks), err)
		}
		for _, task := range claimed.Tasks {
			children = append(children, task.Lease)
		}
	}
	return lease.RunID, children
}

// atOnce calls do for 0 to n-1 from several goroutines, on two stores in turn.
func atOnce(n int, a, b *Store, do func(s *Store, i int)) {
	var group sync.WaitGroup
	const callers = 16
	for c := range callers {
		group.Go(func() {
			for i := c; i < n; i += callers {
				do([]*Store{a, b}[i%2], i)
			}
		})
	}
	group.Wait()
}

func TestChildrenOfOneParentEndAtTheSameTimeAndWakeItOnce(t *testing.T) {
	a, b := rivals(t)
	register(t, a, "wa")
	expectNoDeadlocks(t, a)
	n := long.Count(300, 1000)
	parent, children := family(t, a, n)
	began := time.Now()
	atOnce(n, a, b, func(s *Store, i int) {
		if _, err := s.CompleteRun(t.Context(), engine.CompleteRunParams{
			Lease: children[i], Now: s.Now()}); err != nil {
			t.Errorf("CompleteRun: %v", err)
		}
	})
	t.Logf("%d children ended in %v", n, time.Since(began))
	claimed, err := b.Claim(t.Context(), claimParams(b, "wa", 2))
	if err != nil || len(claimed.Tasks) != 1 || claimed.Tasks[0].Run.ID != parent {
		t.Fatalf("claimed %d tasks (%v), want the parent alone", len(claimed.Tasks), err)
	}
	if steps := len(claimed.Tasks[0].History); steps != n {
		t.Fatalf("the parent's history has %d steps, want %d", steps, n)
	}
	for _, step := range claimed.Tasks[0].History {
		if step.Status != engine.StepCompleted || step.Awaited != 0 {
			t.Fatalf("step %s is %v, awaited %d, want COMPLETED and 0", step.Name, step.Status, step.Awaited)
		}
	}
}

func TestChildEndRacingExpiryOfSiblings(t *testing.T) {
	a, b := rivals(t)
	register(t, a, "wa")
	expectNoDeadlocks(t, a)
	const n = 200
	_, children := family(t, a, n)
	ids := make([]engine.ID, n)
	for i, l := range children {
		ids[i] = l.RunID
	}
	if _, err := a.pool.Exec(t.Context(), "update runs set deadline_at = 1, expires_at = 1 where run_id = any($1)",
		idArray(ids)); err != nil {
		t.Fatal(err)
	}
	atOnce(n, a, b, func(s *Store, i int) {
		var err error
		if i%8 == 0 {
			_, err = s.EndExpired(t.Context(), engine.EndExpiredParams{Now: s.Now(), Limit: 20})
		} else {
			_, err = s.CompleteRun(t.Context(), engine.CompleteRunParams{Lease: children[i], Now: s.Now()})
		}
		if err != nil && !errors.Is(err, engine.ErrLeaseLost) {
			t.Errorf("an end failed: %v", err)
		}
	})
	if _, err := a.EndExpired(t.Context(), engine.EndExpiredParams{Now: a.Now(), Limit: n}); err != nil {
		t.Fatal(err)
	}
	claimed, err := b.Claim(t.Context(), claimParams(b, "wa", 2))
	if err != nil || len(claimed.Tasks) != 1 {
		t.Fatalf("claimed %d tasks (%v), want the parent", len(claimed.Tasks), err)
	}
}

// A transaction that ends a child holds the child and then wants its parent, so one that holds the
// parent must not wait for the child.
func TestWhoEndsAParentWaitsForItsChildrenWithoutIt(t *testing.T) {
	s := openAt(t, lentURL(t))
	parent, child := newStart(s), newStart(s)
	child.ParentRunID, child.ParentClose = parent.ID, engine.CloseTerminate
	if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{parent, child}}); err != nil {
		t.Fatal(err)
	}
	rival, err := adminConnection(t, s.pool.Config().ConnString()).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const lock = "select run_id from runs where run_id = $1 for no key update nowait"
	var locked engine.ID
	if err := rival.QueryRow(t.Context(), lock, [16]byte(child.ID)).Scan(idOf(&locked)); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	group.Go(func() {
		p := engine.EndRunParams{Namespace: "default", RunID: parent.ID, AuditID: engine.NewID(s.Now()), Now: s.Now()}
		if end, err := s.TerminateRun(t.Context(), p); err != nil || !end.Changed {
			t.Errorf("TerminateRun: %+v, %v", end, err)
		}
	})
	const waiting = "select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')"
	for waits, deadline := false, time.Now().Add(20*time.Second); !waits; {
		if err := s.views.QueryRow(t.Context(), waiting).Scan(&waits); err != nil || time.Now().After(deadline) {
			t.Fatalf("nobody waits for the child: %v", err)
		}
	}
	if err := rival.QueryRow(t.Context(), lock, [16]byte(parent.ID)).Scan(idOf(&locked)); err != nil {
		t.Errorf("the parent is locked by one who waits for its child: %v", err)
	}
	if err := rival.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	group.Wait()
	for _, id := range []engine.ID{parent.ID, child.ID} {
		if run, err := s.GetRun(t.Context(), "default", id); err != nil || run.Status != engine.RunTerminated {
			t.Errorf("run %s is %s (%v), want TERMINATED", id, run.Status, err)
		}
	}
}

// Otherwise each end of a child that coincides with that of its parent would block both until a
// lock timeout.
func TestChildEndRacingParentEnd(t *testing.T) {
	a, b := rivals(t)
	register(t, a, "wa")
	expectNoDeadlocks(t, a)
	const n = 200
	parent, children := family(t, a, n)
	if _, err := a.pool.Exec(t.Context(), "update runs set parent_close = $1 where parent_run_id = $2",
		int16(engine.CloseCancel), [16]byte(parent)); err != nil {
		t.Fatal(err)
	}
	atOnce(n, a, b, func(s *Store, i int) {
		var err error
		if i == n/4 {
			_, err = s.CancelRun(t.Context(), engine.EndRunParams{
				Namespace: "default", RunID: parent, AuditID: engine.NewID(s.Now()), Now: s.Now()})
		} else {
			_, err = s.CompleteRun(t.Context(), engine.CompleteRunParams{Lease: children[i], Now: s.Now()})
		}
		if err != nil && !errors.Is(err, engine.ErrLeaseLost) {
			t.Errorf("an end failed: %v", err)
		}
	})
	var open int
	if err := a.pool.QueryRow(t.Context(), "select count(*) from runs where status <= 3").Scan(&open); err != nil ||
		open > 0 {
		t.Fatalf("%d runs are open still (%v), want none", open, err)
	}
}

// A run may have more gated children than a write has retries, each with its own key that another
// transaction holds at the moment.
func TestRunEndWaitsForKeysOfChildren(t *testing.T) {
	const children = writeAttempts + 3
	s := openAt(t, lentURL(t))
	parent := newStart(s)
	starts := []engine.StartRun{parent}
	rivals := map[int64]pgx.Tx{}
	for i := range children {
		child := newStart(s)
		child.ParentRunID, child.ParentClose = parent.ID, engine.CloseTerminate
		child.ConcurrencyKey, child.ConcurrencyLimit = fmt.Sprint("key", i), 1
		starts = append(starts, child)
		rival, err := adminConnection(t, s.pool.Config().ConnString()).Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		key := keyNumber("default", "order", child.ConcurrencyKey)
		if _, err := rival.Exec(t.Context(), "select pg_advisory_xact_lock($1)", key); err != nil {
			t.Fatal(err)
		}
		rivals[key] = rival
	}
	if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: starts}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.pool.Exec(t.Context(),
		"update runs set gated = true, held_at = available_at, available_at = null where concurrency_key <> ''"); err !=
		nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := s.TerminateRun(t.Context(), engine.EndRunParams{
			Namespace: "default", RunID: parent.ID, AuditID: engine.NewID(s.Now()), Now: s.Now()})
		ended <- err
	}()
	// No other transaction releases its locks before this one waits for them.
	const wanted = "select (classid::bigint << 32) | objid::bigint from pg_locks where locktype = 'advisory' and objsubid = 1 and not granted " +
		"and database = (select oid from pg_database where datname = current_database()) limit 1"
	for len(rivals) > 0 {
		var key int64
		err := s.views.QueryRow(t.Context(), wanted).Scan(&key)
		if errors.Is(err, pgx.ErrNoRows) {
			select {
			case err := <-ended:
				t.Fatalf("TerminateRun = %v while %d keys of its children are taken, want it to wait for them", err,
					len(rivals))
			default:
				continue
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		if rival := rivals[key]; rival != nil {
			delete(rivals, key)
			if err := rival.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := <-ended; err != nil {
		t.Fatalf("TerminateRun: %v", err)
	}
	for i := range starts {
		if run, err := s.GetRun(t.Context(), "default", starts[i].ID); err != nil ||
			run.Status != engine.RunTerminated {
			t.Errorf("run %d is %s (%v), want TERMINATED", i, run.Status, err)
		}
	}
}

func TestDisabledNamespaceAcrossServers(t *testing.T) {
	a, b := rivals(t)
	register(t, a, "wa")
	start(t, b, 2)
	update := func(enabled bool) {
		t.Helper()
		n, err := a.GetNamespace(t.Context(), "default")
		if err != nil {
			t.Fatal(err)
		}
		n.Enabled = enabled
		p := engine.NamespaceParams{Namespace: n, Method: "DisableNamespace", AuditID: engine.NewID(a.Now()),
			Now: a.Now()}
		if _, err := a.UpdateNamespace(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	update(false)
	answers, err := b.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{newStart(b)}})
	if err != nil || !errors.Is(answers[0].Err, engine.ErrPrecondition) {
		t.Fatalf("a start in a disabled namespace = %+v (%v), want it refused", answers, err)
	}
	claimed, err := b.Claim(t.Context(), claimParams(b, "wa", 2))
	if err != nil || len(claimed.Tasks) > 0 || !claimed.NextDue.IsZero() {
		t.Fatalf("a claim in a disabled namespace = %+v (%v), want nothing", claimed, err)
	}
	update(true)
	if claimed, err = b.Claim(t.Context(), claimParams(b, "wa", 2)); err != nil || len(claimed.Tasks) != 2 {
		t.Fatalf("claimed %d tasks (%v) when it was enabled again, want 2", len(claimed.Tasks), err)
	}
}

func TestAQueuedWriteThatFailsFailsItsTransaction(t *testing.T) {
	s := openAt(t, lentURL(t))
	_, err := write(s, "test", func(t *tx) (none struct{}, err error) {
		if err := t.ensureNamespace("made", s.Now()); err != nil {
			return none, err
		}
		return none, t.queue("insert into namespaces (namespace) values (null)", args{})
	})
	if err == nil {
		t.Fatalf("a write with a statement that the database refuses = nil, want an error")
	}
	if _, err := s.GetNamespace(t.Context(), "made"); !errors.Is(err, engine.ErrNotFound) {
		t.Fatalf("GetNamespace = %v, want nothing written", err)
	}
	if _, known := s.namespaces.Load("made"); known {
		t.Fatalf("a namespace is remembered that was not made")
	}
}
