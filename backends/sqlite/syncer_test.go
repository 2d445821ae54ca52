package sqlite

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storekit"
	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"

	lib "modernc.org/sqlite/lib"

	"github.com/kagzi/kagzi/engine"
)

// syncing returns a store whose next sync of the log reports its begin, and ends when it is told
// to, with the given code.
func syncing(t *testing.T) (s *Store, begun chan struct{}, end chan error) {
	t.Helper()
	if !sqlite3.SyncsData {
		t.Skip("NOT RUN: syncs are not left to another goroutine on this system")
	}
	s = fresh(t)
	insert(t, s, "first") // its sync is the library's
	begun, end = make(chan struct{}), make(chan error)
	over := make(chan struct{})
	t.Cleanup(func() { close(over) }) // before the store is closed, which waits for its syncs
	s.writer.syncer.sync = func(log sqlite3.UnsyncedLog) error {
		select {
		case begun <- struct{}{}:
		case <-over:
			return log.Sync()
		}
		select {
		case err := <-end:
			if err != nil {
				return err
			}
		case <-over:
		}
		return log.Sync()
	}
	return s, begun, end
}

// synced waits until the sync of the write begins.
func synced(t *testing.T, begun <-chan struct{}, answer <-chan error) {
	t.Helper()
	select {
	case <-begun:
	case err := <-answer:
		t.Fatalf("answer without a sync: %v", err)
	}
}

func insert(t *testing.T, s *Store, name string) {
	t.Helper()
	if err := <-inserting(s, name, nil); err != nil {
		t.Fatal(err)
	}
}

// inserting writes a namespace, and closes atWork while it runs.
func inserting(s *Store, name string, atWork chan struct{}) <-chan error {
	answer := make(chan error, 1)
	go func() {
		_, err := write(context.Background(), s, "insert", 0, func(tx *tx) (none struct{}, err error) {
			if atWork != nil {
				close(atWork)
			}
			return none, insertNamespace(tx, name)
		})
		answer <- err
	}()
	return answer
}

func TestTheNextTransactionIsAtWorkWhileACommitIsSynced(t *testing.T) {
	s, begun, end := syncing(t)
	first := inserting(s, "a", nil)
	synced(t, begun, first)
	atWork := make(chan struct{})
	second := inserting(s, "b", atWork)
	<-atWork
	select {
	case err := <-first:
		t.Fatalf("answer before the sync: %v", err)
	case err := <-second:
		t.Fatalf("answer before any sync: %v", err)
	default:
	}
	end <- nil
	if err := <-first; err != nil {
		t.Error(err)
	}
	synced(t, begun, second)
	select {
	case err := <-second:
		t.Fatalf("answer before its own sync: %v", err)
	default:
	}
	end <- nil
	if err := <-second; err != nil {
		t.Error(err)
	}
}

func TestHealthWhileDiskHangs(t *testing.T) {
	s, begun, end := syncing(t)
	answer := inserting(s, "a", nil)
	synced(t, begun, answer)
	if err := s.Health(t.Context()); err != nil {
		t.Errorf("health a moment after the sync began = %v", err)
	}
	held := s.atDisk.Load()
	late := *held
	late.begun = time.Now().Add(-stalledAfter) // the test does not wait that long
	s.atDisk.Store(&late)
	if err := s.Health(t.Context()); !errors.Is(err, engine.ErrUnavailable) ||
		!strings.Contains(err.Error(), "has not taken a write") {
		t.Errorf("health while a sync does not come back = %v, want unavailable", err)
	}
	s.atDisk.Store(held)
	end <- nil
	if err := <-answer; err != nil {
		t.Error(err)
	}
	if c := s.atDisk.Load(); c != nil {
		t.Error("the disk is taken to be at a commit that is durable")
	}
	if err := s.Health(t.Context()); err != nil {
		t.Errorf("health afterwards = %v", err)
	}
}

func TestTheDiskIsKnownToBeAtAClaimThatWasAnsweredBefore(t *testing.T) {
	s, begun, end := syncing(t)
	_, err := writeAs(t.Context(), s, &call{verb: "insert", harmless: true}, func(tx *tx) (none struct{}, err error) {
		return none, insertNamespace(tx, "a")
	})
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	if s.atDisk.Load() == nil {
		t.Error("nobody knows that the disk is at a commit")
	}
	end <- nil
	second := inserting(s, "b", nil) // it is not written before the first is on disk
	synced(t, begun, second)
	end <- nil
	if err := <-second; err != nil {
		t.Fatal(err)
	}
	if s.atDisk.Load() != nil {
		t.Error("the disk is taken to be at a commit that is durable")
	}
}

func TestWhoHasReadWhatIsNotDurableWaitsForTheSync(t *testing.T) {
	s, begun, end := syncing(t)
	answer := inserting(s, "a", nil)
	synced(t, begun, answer)
	ctx, giveUp := context.WithCancel(t.Context())
	n, err := read(ctx, s, "count", func(r session) (n int, err error) {
		err = r.query(&knownNamespacesSQL, func(*row) error {
			n++
			return nil
		})
		giveUp()
		return n, err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("read of a commit that is not durable = %d, %v, want it to wait", n, err)
	}
	end <- nil
	if err := <-answer; err != nil {
		t.Fatal(err)
	}
	if n := namespaces(t, s); n != 2 {
		t.Errorf("after the sync %d namespaces are seen, want first and a", n)
	}
}

func TestASyncThatFailsIsTheEndOfAnswers(t *testing.T) {
	s, begun, end := syncing(t)
	first := inserting(s, "a", nil)
	synced(t, begun, first)
	atWork := make(chan struct{})
	second := inserting(s, "b", atWork)
	<-atWork
	reading := make(chan error, 1)
	seen := make(chan struct{})
	go func() {
		_, err := read(context.Background(), s, "look", func(session) (none struct{}, err error) {
			close(seen)
			return none, nil
		})
		reading <- err
	}()
	<-seen
	end <- &sqlite3.Error{Code: lib.SQLITE_IOERR_FSYNC, Text: "sync of the log"}
	for who, answer := range map[string]<-chan error{
		"the write": first, "the next write": second, "who has read it": reading} {
		if err := <-answer; !errors.Is(err, dbfile.ErrUnavailable) {
			t.Errorf("answer to %s = %v, want %v", who, err, dbfile.ErrUnavailable)
		}
	}
	<-s.Fatal()
	if failure, ok := errors.AsType[*FatalError](s.Failure()); !ok || failure.ExitCode() != 70 {
		t.Errorf("failure = %v, want a disk that failed", s.Failure())
	}
	if err := <-inserting(s, "c", nil); !errors.Is(err, dbfile.ErrUnavailable) {
		t.Errorf("a later write = %v, want %v", err, dbfile.ErrUnavailable)
	}
	if _, err := read(t.Context(), s, "look", func(session) (none struct{}, err error) {
		return none, nil
	}); !errors.Is(err, dbfile.ErrUnavailable) {
		t.Errorf("a later read = %v, want %v", err, dbfile.ErrUnavailable)
	}
	s.Close()
	again := openAt(t, s.path)
	if n := namespaces(t, again); n > 2 { // a may exist: its sync failed, not its write
		t.Errorf("%d namespaces after the start, want no more than first and a", n)
	}
}

func TestAStoreIsClosedOnceItsLastCommitIsDurable(t *testing.T) {
	s, begun, end := syncing(t)
	answer := inserting(s, "a", nil)
	synced(t, begun, answer)
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	<-s.closed
	select {
	case err := <-closed:
		t.Fatalf("closed before the sync: %v", err)
	default:
	}
	end <- nil
	if err := <-answer; err != nil {
		t.Error(err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

func TestAClaimAloneDoesNotWaitForTheDisk(t *testing.T) {
	if !sqlite3.SyncsData {
		t.Skip("NOT RUN: syncs are not left to another goroutine on this system")
	}
	s := working(t)
	if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{
		Runs: []engine.StartRun{startOf("t", s), startOf("t", s)}}); err != nil {
		t.Fatal(err)
	}
	begun, end := make(chan struct{}, 10), make(chan struct{})
	s.writer.syncer.sync = func(log sqlite3.UnsyncedLog) error {
		begun <- struct{}{}
		<-end
		return log.Sync()
	}
	claim := func() (engine.Claimed, error) {
		return s.Claim(context.Background(), engine.ClaimParams{
			Namespace: "default", Queue: "q", Types: []string{"t"},
			Slots:        []engine.ClaimSlot{{WorkerID: "w", Token: engine.NewToken()}},
			HistoryBytes: engine.HistoryBytes, Now: s.Now(),
		})
	}
	claimed, err := claim()
	if err != nil || len(claimed.Tasks) != 1 {
		t.Fatalf("claimed %d runs (%v), want 1", len(claimed.Tasks), err)
	}
	if _, err := s.GetRun(t.Context(), "default", claimed.Tasks[0].Run.ID); err != nil {
		t.Errorf("look at what was claimed: %v", err)
	}
	<-begun // it is synced before anything else is written
	answer := make(chan error, 1)
	go func() {
		_, err := s.CompleteRun(context.Background(),
			engine.CompleteRunParams{Lease: claimed.Tasks[0].Lease, Now: s.Now()})
		answer <- err
	}()
	another := make(chan error, 1)
	go func() {
		_, err := claim()
		another <- err
	}()
	select {
	case err := <-answer:
		t.Errorf("the end was answered before its sync: %v", err)
	case err := <-another:
		t.Errorf("a claim behind a write that is not durable was answered: %v", err)
	default:
	}
	close(end)
	for _, of := range []chan error{answer, another} {
		if err := <-of; err != nil {
			t.Error(err)
		}
	}
}

func TestNobodyIsRungForACommitBeforeItsSync(t *testing.T) {
	s, begun, end := syncing(t)
	notifications := make(chan engine.Notification, 1000)
	go func() { _ = s.Listen(t.Context(), func(r engine.Notification) { notifications <- r }, nil) }()
	// Notifications arrive in the order in which they were sent, so after a marker none comes that
	// was sent before it.
	heardUntil := func(mark string) (before []engine.Notification) {
		for {
			s.listeners.Notify(storekit.Events(engine.Notification{Kind: engine.NotifyRun, Namespace: mark}))
			for heard := true; heard; {
				select {
				case r := <-notifications:
					if r.Namespace == mark {
						return before
					}
					before = append(before, r)
				case <-time.After(time.Millisecond): // it is not listening yet
					heard = false
				}
			}
		}
	}
	heardUntil("it listens")
	answer := make(chan error, 1)
	go func() {
		_, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{startOf("t", s)}})
		answer <- err
	}()
	synced(t, begun, answer)
	for _, r := range heardUntil("the sync is at work") {
		if r.Namespace != "it listens" {
			t.Errorf("notification before the sync: %+v", r)
		}
	}
	end <- nil
	if err := <-answer; err != nil {
		t.Fatal(err)
	}
	for deadline := time.After(10 * time.Second); ; { // the answer comes before the notification
		select {
		case r := <-notifications:
			if r.Kind == engine.NotifyQueue {
				return
			}
		case <-deadline:
			t.Fatal("nobody was notified after the sync")
		}
	}
}
