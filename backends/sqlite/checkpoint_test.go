package sqlite

import (
	"context"
	"os"
	"testing"

	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"

	lib "modernc.org/sqlite/lib"

	"github.com/kagzi/kagzi/engine"
)

// checkpointBy replaces the checkpoint by another function, from the next write on, and makes the
// log count as long enough.
func checkpointBy(t *testing.T, s *Store, checkpoint func(context.Context, *sqlite3.Conn) checkpointResult) {
	t.Helper()
	_, err := write(t.Context(), s, "checkpoint", 0, func(*tx) (none struct{}, err error) {
		s.writer.checkpointer.run, s.writer.logPages = checkpoint, checkpointPages
		return none, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// holdCheckpoint keeps a checkpoint running until the returned channel is closed.
func holdCheckpoint(t *testing.T, s *Store) (end chan struct{}) {
	t.Helper()
	begun := make(chan struct{})
	end = make(chan struct{})
	checkpointBy(t, s, func(ctx context.Context, c *sqlite3.Conn) checkpointResult {
		close(begun)
		<-end
		return runCheckpoint(ctx, c)
	})
	<-begun
	return end
}

func TestWritesGoOnDuringACheckpoint(t *testing.T) {
	s := fresh(t)
	end := holdCheckpoint(t, s)
	for range 10 {
		if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{
			Runs: []engine.StartRun{startOf("t", s)}}); err != nil {
			t.Fatal(err)
		}
	}
	if s.checkpointed.Load() != 0 {
		t.Error("the log counts as checkpointed while it is being checkpointed")
	}
	close(end)
	settle(t, s)
	if s.checkpointed.Load() == 0 {
		t.Error("what came meanwhile was not checkpointed")
	}
	long := fileSize(t, s.path+"-wal")
	if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{
		Runs: []engine.StartRun{startOf("t", s)}}); err != nil {
		t.Fatal(err)
	}
	if got := fileSize(t, s.path+"-wal"); got != long {
		t.Errorf("the log has %d bytes and had %d, want it begun again", got, long)
	}
}

func TestWriterWaitsForSlowCheckpoint(t *testing.T) {
	s := fresh(t)
	end := holdCheckpoint(t, s)
	_, err := write(t.Context(), s, "grow", 0, func(*tx) (none struct{}, err error) {
		s.writer.logPages = restPages
		return none, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	later := make(chan error, 1)
	go func() {
		_, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{startOf("t", s)}})
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

func TestACheckpointThatTheDiskFailsEndsTheServer(t *testing.T) {
	s := fresh(t)
	checkpointBy(t, s, func(context.Context, *sqlite3.Conn) checkpointResult {
		return checkpointResult{err: &sqlite3.Error{Code: lib.SQLITE_IOERR_FSYNC, Text: "sync of the file"}}
	})
	select {
	case <-s.Fatal():
	case <-t.Context().Done():
		t.Fatal("the server goes on")
	}
}

func TestTheWriterCheckpointsWhatOthersCannotOpen(t *testing.T) {
	s := fresh(t)
	for name, refused := range map[string]int{
		"no file can be opened":       lib.SQLITE_CANTOPEN,
		"the log could not be read":   lib.SQLITE_IOERR_READ,
		"there was no room meanwhile": lib.SQLITE_FULL,
	} {
		s.checkpointed.Store(0)
		checkpointBy(t, s, func(context.Context, *sqlite3.Conn) checkpointResult {
			return checkpointResult{err: &sqlite3.Error{Code: refused, Text: name}}
		})
		settle(t, s)
		if s.checkpointed.Load() == 0 || s.Failure() != nil {
			t.Errorf("%s: checkpointed at %d, failure %v; want it checkpointed", name, s.checkpointed.Load(),
				s.Failure())
		}
	}
}

func TestLogIsKeptAfterFailedCheckpoint(t *testing.T) {
	for _, name := range []string{"at work", "while the store is being closed"} {
		t.Run(name, func(t *testing.T) {
			s := fresh(t)
			for range 4 {
				if _, err := s.StartRuns(t.Context(),
					engine.StartRunsParams{Runs: []engine.StartRun{startOf("t", s)}}); err != nil {
					t.Fatal(err)
				}
			}
			settle(t, s)
			rows, before := rowsAt(t, s.path), copyOf(t, s.path, "")
			checkpointBy(t, s, func(ctx context.Context, c *sqlite3.Conn) checkpointResult {
				if name != "at work" {
					<-s.closed
				}
				f := runCheckpoint(ctx, c)
				// nothing of the checkpoint is on disk
				f.err = &sqlite3.Error{Code: lib.SQLITE_IOERR_FSYNC, Text: "sync of the file"}
				return f
			})
			if name == "at work" {
				<-s.Fatal()
			}
			if err := s.Close(); s.Failure() == nil || err == nil && name != "at work" {
				t.Errorf("closed: %v, failure %v; want it heard that the disk has failed", err, s.Failure())
			}
			log, err := os.ReadFile(s.path + "-wal")
			if err != nil {
				t.Fatal(err)
			}
			write0600(t, before+"-wal", log)
			if got := rowsAt(t, before); got != rows {
				t.Errorf("of what was acknowledged there is\n%swant\n%s", got, rows)
			}
		})
	}
}
