package sqlite

import (
	"context"
	"testing"

	lib "modernc.org/sqlite/lib"

	"github.com/kagzi/kagzi/engine"
)

// foldBy has the log folded by another function, from the next write on, as though it had grown long enough.
func foldBy(t *testing.T, s *Store, fold func(context.Context, *conn) folding) {
	t.Helper()
	_, err := write(t.Context(), s, "fold", 0, func(*tx) (none struct{}, err error) {
		s.writer.folder.fold, s.writer.log = fold, checkpointPages
		return none, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWritesGoOnWhileTheLogIsFolded(t *testing.T) {
	s := fresh(t)
	begun, end := make(chan struct{}), make(chan struct{})
	foldBy(t, s, func(ctx context.Context, c *conn) folding {
		close(begun)
		<-end
		return foldOn(ctx, c)
	})
	<-begun
	for range 10 {
		if _, err := s.StartRuns(t.Context(), []engine.StartRun{startOf("t", s)}); err != nil {
			t.Fatal(err)
		}
	}
	if s.folded.Load() != 0 {
		t.Error("the log counts as folded while it is being folded")
	}
	close(end)
	settle(t, s)
	if s.folded.Load() == 0 {
		t.Error("what came meanwhile was not folded")
	}
	long := fileSize(t, s.path+"-wal")
	if _, err := s.StartRuns(t.Context(), []engine.StartRun{startOf("t", s)}); err != nil {
		t.Fatal(err)
	}
	if got := fileSize(t, s.path+"-wal"); got != long {
		t.Errorf("the log has %d bytes and had %d, want it begun anew", got, long)
	}
}

func TestTheWriterWaitsForAFoldingThatItLeavesBehind(t *testing.T) {
	s := fresh(t)
	begun, end := make(chan struct{}), make(chan struct{})
	foldBy(t, s, func(ctx context.Context, c *conn) folding {
		close(begun)
		<-end
		return foldOn(ctx, c)
	})
	<-begun
	_, err := write(t.Context(), s, "grow", 0, func(*tx) (none struct{}, err error) {
		s.writer.log = restPages
		return none, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	later := make(chan error, 1)
	go func() {
		_, err := s.StartRuns(t.Context(), []engine.StartRun{startOf("t", s)})
		later <- err
	}()
	waiting(t, s, 1)
	select {
	case err := <-later:
		t.Fatalf("a write went on (%v) although the log is too long", err)
	default:
	}
	close(end)
	if err := <-later; err != nil {
		t.Fatal(err)
	}
}

func TestAFoldingThatTheDiskFailsEndsTheServer(t *testing.T) {
	s := fresh(t)
	foldBy(t, s, func(context.Context, *conn) folding {
		return folding{err: &libError{lib.SQLITE_IOERR_FSYNC, "sync of the file"}}
	})
	select {
	case <-s.Fatal():
	case <-t.Context().Done():
		t.Fatal("the server goes on")
	}
}

func TestTheWriterFoldsWhatOthersCannotOpen(t *testing.T) {
	s := fresh(t)
	for name, refused := range map[string]int{
		"no file can be opened":       lib.SQLITE_CANTOPEN,
		"the log could not be read":   lib.SQLITE_IOERR_READ,
		"there was no room meanwhile": lib.SQLITE_FULL,
	} {
		s.folded.Store(0)
		foldBy(t, s, func(context.Context, *conn) folding {
			return folding{err: &libError{refused, name}}
		})
		settle(t, s)
		if s.folded.Load() == 0 || s.Failure() != nil {
			t.Errorf("%s: folded at %d, failure %v; want it folded", name, s.folded.Load(), s.Failure())
		}
	}
}
