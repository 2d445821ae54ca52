package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"

	lib "modernc.org/sqlite/lib"

	"github.com/kagzi/kagzi/engine"
)

func fresh(t *testing.T) *Store {
	t.Helper()
	return openAt(t, freshFile(t))
}

// hold keeps the writer busy with one call until the returned function is called, so that other
// calls wait and join its commit.
func hold(t *testing.T, s *Store) (release func()) {
	t.Helper()
	begun, end, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var begin sync.Once
	go func() {
		defer close(over)
		_, err := write(context.Background(), s, "hold", 0, func(*tx) (struct{}, error) {
			begin.Do(func() { close(begun) }) // it may be carried out again, together with calls that joined it
			<-end
			return struct{}{}, nil
		})
		if err != nil {
			t.Errorf("hold: %v", err)
		}
	}()
	<-begun
	return func() {
		close(end)
		<-over
	}
}

// waiting returns when n calls wait for the writer.
func waiting(t *testing.T, s *Store, n int) {
	t.Helper()
	for len(s.writer.calls) < n {
		if t.Context().Err() != nil {
			t.Fatalf("calls that wait = %d, want %d", len(s.writer.calls), n)
		}
	}
}

func insertNamespace(t *tx, name string) error {
	now := time.UnixMicro(1)
	return t.InsertNamespace(&engine.Namespace{
		Name: name, ID: engine.NewID(now), Enabled: true, CreatedAt: now, UpdatedAt: now})
}

func namespaces(t *testing.T, s *Store) int {
	t.Helper()
	n, err := read(t.Context(), s, "count", func(r session) (n int, err error) {
		err = r.query(&knownNamespacesSQL, func(*row) error {
			n++
			return nil
		})
		return n, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// settle returns when the writer has finished everything that was handed to it before, its
// checkpoint included.
func settle(t *testing.T, s *Store) {
	t.Helper()
	if err := settled(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

func TestCallsThatWaitShareOneCommit(t *testing.T) {
	s := fresh(t)
	before := s.CommitSizes().Commits
	release := hold(t, s)
	const callers = 40
	answers := make(chan error, callers)
	for i := range callers {
		go func() {
			_, err := write(t.Context(), s, "insert", 0, func(tx *tx) (struct{}, error) {
				return struct{}{}, insertNamespace(tx, fmt.Sprint("space-", i))
			})
			answers <- err
		}()
	}
	waiting(t, s, callers)
	release()
	for range callers {
		if err := <-answers; err != nil {
			t.Fatal(err)
		}
	}
	if got := s.CommitSizes().Commits - before; got != 1 {
		t.Fatalf("commits = %d, want one for the call that held them up and the %d callers that came meanwhile",
			got, callers)
	}
	if got := namespaces(t, s); got != callers {
		t.Fatalf("rows = %d, want %d", got, callers)
	}
}

// An import may hold many runs; calls that joined its commit would wait for all of them.
func TestAnImportSharesItsCommitWithNobody(t *testing.T) {
	s := fresh(t)
	before := s.CommitSizes().Commits
	release := hold(t, s)
	answers := make(chan error, 3)
	insert := func(name string) {
		_, err := write(t.Context(), s, "insert", 0, func(tx *tx) (none struct{}, err error) {
			return none, insertNamespace(tx, name)
		})
		answers <- err
	}
	go insert("earlier")
	waiting(t, s, 1)
	go func() {
		now := s.Now()
		run := engine.Run{ID: engine.NewID(now), Queue: "q", Type: "t", Status: engine.RunPending, Attempts: 1,
			CreatedAt: now}
		_, err := s.ImportRuns(t.Context(), engine.ImportRunsParams{
			Namespace: "default", Runs: []engine.ImportedRun{{Run: run}}, AuditID: engine.NewID(now), Now: now,
		})
		answers <- err
	}()
	waiting(t, s, 2)
	go insert("later")
	waiting(t, s, 3)
	release()
	if err := errors.Join(<-answers, <-answers, <-answers); err != nil {
		t.Fatal(err)
	}
	if got := s.CommitSizes().Commits - before; got != 3 {
		t.Errorf("commits = %d, want that of the import and one each for those before and after it", got)
	}
}

func TestACallThatFailsAfterItHasWrittenFailsAlone(t *testing.T) {
	s := fresh(t)
	release := hold(t, s)
	broken := errors.New("broken")
	refused := engine.WorkerNotFound("w")
	wants := map[string]error{"a": nil, "b": broken, "c": nil, "d": refused, "e": nil}
	type answer struct {
		name string
		err  error
	}
	answers := make(chan answer, len(wants))
	for name, want := range wants {
		go func() {
			_, err := write(t.Context(), s, "insert", 0, func(tx *tx) (struct{}, error) {
				tx.Notify(engine.Notification{Kind: engine.NotifyQueue, Namespace: "default", Name: name})
				return struct{}{}, errors.Join(insertNamespace(tx, name), want)
			})
			answers <- answer{name, err}
		}()
	}
	waiting(t, s, len(wants))
	release()
	for range wants {
		a := <-answers
		if want := wants[a.name]; want == nil && a.err != nil || want != nil && !errors.Is(a.err, want) {
			t.Errorf("answer to %s = %v, want %v", a.name, a.err, want)
		}
	}
	if got := namespaces(t, s); got != 3 {
		t.Fatalf("rows = %d, want those of the 3 calls that did not fail", got)
	}
}

func TestFailedStatementFailsOnlyItsCall(t *testing.T) {
	s := fresh(t)
	release := hold(t, s)
	answers := make(chan error, 2)
	for _, number := range []string{"1", "'no number'"} {
		go func() {
			_, err := write(t.Context(), s, "insert", 0, func(tx *tx) (struct{}, error) {
				statement :=
					"insert into lanes (namespace, task_queue, workflow_type, requirements, priority) values ('n', 'q', 't', '', " + number + ")"
				_, err := tx.exec(&statement)
				return struct{}{}, err
			})
			answers <- err
		}()
	}
	waiting(t, s, 2)
	release()
	failed := 0
	for range 2 {
		if <-answers != nil {
			failed++
		}
	}
	if failed != 1 {
		t.Fatalf("calls that failed = %d, want 1", failed)
	}
	s.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{startOf("t", s)}})
	if err := s.Health(t.Context()); err != nil {
		t.Fatalf("health = %v", err)
	}
}

func TestHealthRecoversAfterFailedStatement(t *testing.T) {
	s := fresh(t)
	fail := func() {
		t.Helper()
		_, err := write(t.Context(), s, "insert", 0, func(tx *tx) (struct{}, error) {
			statement :=
				"insert into lanes (namespace, task_queue, workflow_type, requirements, priority) values ('n', 'q', 't', '', 'no number')"
			_, err := tx.exec(&statement)
			return struct{}{}, err
		})
		if err == nil || s.Health(t.Context()) == nil {
			t.Fatalf("after a statement that failed (%v) it says that it is healthy", err)
		}
	}
	s.proof.pause = time.Hour
	fail()
	s.proof.wait()
	if s.Health(t.Context()) == nil {
		t.Error("it is well, and no time has passed in which it could have been tried")
	}
	s.proof.pause = 0
	fail()
	s.proof.wait()
	if err := s.Health(t.Context()); err != nil {
		t.Errorf("health afterwards = %v", err)
	}
	fail() // and closes it while it is tried
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.path + "-proof"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left behind: %v", err)
	}
}

func TestACallerThatGivesUpStopsWaitingAndItsWriteGoesOn(t *testing.T) {
	s := fresh(t)
	release := hold(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error)
	go func() {
		_, err := s.StartRuns(ctx, engine.StartRunsParams{Runs: []engine.StartRun{startOf("t", s)}})
		answer <- err
	}()
	waiting(t, s, 1)
	cancel()
	if err := <-answer; !errors.Is(err, engine.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Fatalf("answer = %v, want unavailable, because of the caller's context", err)
	}
	release()
	settle(t, s)
	stats, err := s.GetStats(t.Context(), "", s.Now())
	if err != nil || stats.ByStatus[engine.RunPending] != 1 {
		t.Fatalf("runs = %v (%v), want the one that was begun", stats.ByStatus, err)
	}
}

func TestFullDiskIsExhaustedUntilFreed(t *testing.T) {
	s := fresh(t)
	limit := func(pages int) {
		t.Helper()
		_, err := write(t.Context(), s, "limit", 0, func(tx *tx) (struct{}, error) {
			statement := fmt.Sprintf("pragma max_page_count = %d", pages)
			return struct{}{}, tx.query(&statement, func(*row) error { return nil })
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	big := startOf("t", s)
	big.Input.Data = make([]byte, 1<<20)
	limit(1) // its present size, and no more
	for range 2 {
		if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{big}}); !errors.Is(
			err, engine.ErrExhausted) {
			t.Fatalf("start on a full disk = %v, want exhausted", err)
		}
	}
	if s.Health(t.Context()) == nil {
		t.Error("a store that could not write says that it is healthy")
	}
	if s.Failure() != nil {
		t.Errorf("a full disk is fatal: %v", s.Failure())
	}
	limit(1 << 30)
	if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{big}}); err != nil {
		t.Fatalf("start after there was room again: %v", err)
	}
	if err := s.Health(t.Context()); err != nil {
		t.Errorf("health = %v, want it to pass", err)
	}
}

func TestACallThatWritesNothingDoesNotMakeAStoreWell(t *testing.T) {
	s := fresh(t)
	s.proof.pause = time.Hour // nothing else may show it
	holding(t, s, 1)
	fail := func() {
		t.Helper()
		_, err := write(t.Context(), s, "insert", 0, func(tx *tx) (struct{}, error) {
			return struct{}{}, &sqlite3.Error{Code: lib.SQLITE_FULL, Text: "full"}
		})
		if !errors.Is(err, engine.ErrExhausted) || s.Health(t.Context()) == nil {
			t.Fatalf("after a write without room (%v) it says that it is healthy", err)
		}
	}
	lost := engine.Lease{Namespace: "default", RunID: engine.NewID(s.Now()), Token: engine.NewToken()}
	for name, call := range map[string]func() error{
		"a call that is refused": func() error {
			if _, err := s.CompleteRun(t.Context(), engine.CompleteRunParams{Lease: lost, Now: s.Now()}); !errors.Is(
				err, engine.ErrNotFound) {
				return fmt.Errorf("error = %w, want not found", err)
			}
			return nil
		},
		"a claim that finds nothing": func() error {
			claimed, err := s.Claim(t.Context(), engine.ClaimParams{
				Namespace: "default", Queue: "q", Types: []string{"other"},
				Slots: []engine.ClaimSlot{{WorkerID: "w1", Token: engine.NewToken()}}, Now: s.Now()})
			if err == nil && len(claimed.Tasks) > 0 {
				err = errors.New("it found something")
			}
			return err
		},
	} {
		fail()
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if s.Health(t.Context()) == nil {
			t.Errorf("after %s it says that it is healthy, and nothing was written", name)
		}
	}
	insert(t, s, "written")
	if err := s.Health(t.Context()); err != nil {
		t.Errorf("health after a write = %v", err)
	}
}

func TestOnlyStartsAreRefusedWhenTheDiskIsNearlyFull(t *testing.T) {
	s := fresh(t)
	lease := holding(t, s, 1)[0]
	s.space = dbfile.DiskSpace{Dir: s.space.Dir, Free: func(string) (uint64, error) { return dbfile.LowWater - 1, nil }}
	if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{startOf("t", s)}}); !errors.Is(
		err, engine.ErrExhausted) {
		t.Fatalf("start = %v, want exhausted", err)
	}
	if _, err := s.CompleteRun(t.Context(), engine.CompleteRunParams{Lease: lease, Now: s.Now()}); err != nil {
		t.Fatalf("CompleteRun = %v, want it to go on", err)
	}
	s.space = dbfile.DiskSpace{Dir: s.space.Dir, Free: func(string) (uint64, error) { return dbfile.LowWater, nil }}
	if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{
		Runs: []engine.StartRun{startOf("t", s)}}); err != nil {
		t.Fatalf("start with room = %v", err)
	}
}

func TestTheLogIsCheckpointedWhileWritingGoesOn(t *testing.T) {
	s := fresh(t)
	big := make([]engine.StartRun, 20)
	for range 40 {
		for i := range big {
			big[i] = startOf("t", s)
			big[i].Input.Data = make([]byte, 64<<10)
		}
		if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: big}); err != nil {
			t.Fatal(err)
		}
	}
	settle(t, s)
	if size := fileSize(t, s.path+"-wal"); size > (checkpointPages+restPages)*4096*5/4 {
		t.Fatalf(
			"the log has %d bytes after 52 MB of writes, want it checkpointed every %d pages and grown by %d more at most", size, checkpointPages, restPages)
	}
}

// settled waits as settle does.
func settled(ctx context.Context, s *Store) error {
	for range 2 { // the checkpoint follows the first call
		for running := true; running; {
			_, err := write(ctx, s, "settle", 0, func(*tx) (none struct{}, err error) {
				running = s.writer.checkpointer.over != nil
				return none, nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
