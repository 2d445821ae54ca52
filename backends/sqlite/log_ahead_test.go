package sqlite

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"
	"github.com/kagzi/kagzi/engine"
)

// lengthened returns a new database of a server, once its log has its full length.
func lengthened(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "kagzi.db"),
		engine.OpenOptions{Serving: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{
		Runs: []engine.StartRun{startOf("t", s)}}); err != nil {
		// between calls
		t.Fatal(err)
	}
	for fileSize(t, s.path+"-wal") < logAhead {
		if t.Context().Err() != nil {
			t.Fatalf("the log has %d bytes, want %d", fileSize(t, s.path+"-wal"), logAhead)
		}
	}
	return s
}

// betweenCalls makes the writer do something while no transaction is running.
func betweenCalls(t *testing.T, s *Store, do func(*sqlite3.Conn) error) {
	t.Helper()
	_, err := write(t.Context(), s, "between", 0, func(x *tx) (none struct{}, err error) {
		if err := x.conn.Rollback(x.ctx); err != nil {
			return none, err
		}
		if err := do(x.conn); err != nil {
			return none, err
		}
		return none, x.conn.Begin(x.ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestCommitsAreFoundInALogThatWasLengthenedAhead(t *testing.T) {
	s := lengthened(t)
	rows := rowsAt(t, s.path)
	if got := rowsAt(t, copyOf(t, s.path, "", "-wal")); got != rows {
		t.Errorf("after a crash there is %s, want %s", got, rows)
	}
	if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{
		Runs: []engine.StartRun{startOf("t", s)}}); err != nil {
		t.Fatal(err)
	}
	if size := fileSize(t, s.path+"-wal"); size >= logAhead+lengthenBy {
		t.Errorf("the log has %d bytes, want it lengthened no further than %d", size, logAhead)
	}
}

func TestALogIsLengthenedWhereThereIsRoom(t *testing.T) {
	for _, c := range []struct {
		name string
		free uint64
		by   int64
	}{
		{name: "room", free: dbfile.LowWater, by: lengthenBy},
		{name: "little room", free: dbfile.LowWater - 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := fresh(t) // as for a command: it does not lengthen its log by itself
			holding(t, s, 1)
			settle(t, s)
			before := fileSize(t, s.path+"-wal")
			betweenCalls(t, s, func(*sqlite3.Conn) error {
				s.space = dbfile.DiskSpace{Dir: s.space.Dir, Free: func(string) (uint64, error) { return c.free, nil }}
				if more := s.writer.lengthen(); more != (c.by > 0) {
					t.Errorf("more = %t", more)
				}
				return nil
			})
			if size := fileSize(t, s.path+"-wal"); size != before+c.by {
				t.Errorf("the log has %d bytes and had %d, want %d more", size, before, c.by)
			}
		})
	}
}

func TestALogIsNotLengthenedWhileAnotherProgramWrites(t *testing.T) {
	s := fresh(t)
	other, err := sqlite3.Open(sqlite3.DSN(s.path, "journal_mode(wal)", "wal_autocheckpoint(0)"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	betweenCalls(t, s, func(c *sqlite3.Conn) error {
		if err := c.Script(t.Context(), "pragma busy_timeout = 0"); err != nil {
			return err
		}
		if err := other.Script(t.Context(), "begin immediate; create table other (n)"); err != nil {
			return err
		}
		before := fileSize(t, s.path+"-wal")
		if more := s.writer.lengthen(); more || fileSize(t, s.path+"-wal") != before {
			t.Errorf("the log had %d bytes and was lengthened to %d in the midst of another's transaction", before,
				fileSize(t, s.path+"-wal"))
		}
		if err := other.Script(t.Context(), "commit"); err != nil {
			return err
		}
		if more := s.writer.lengthen(); !more || s.Failure() != nil {
			t.Errorf("afterwards more = %t and failure = %v", more, s.Failure())
		}
		return nil
	})
}

func TestALogIsLengthenedNoFurtherOnceNoCallCanCome(t *testing.T) {
	s := fresh(t)
	betweenCalls(t, s, func(*sqlite3.Conn) error {
		w := &writer{store: s, calls: make(chan *call), tx: tx{session: s.writer.tx.session}, logTooShort: true}
		close(w.calls)
		before := fileSize(t, s.path+"-wal")
		if _, more := w.firstCall(); more || fileSize(t, s.path+"-wal") != before {
			t.Errorf("more calls = %t, and the log had %d bytes and has %d", more, before, fileSize(t, s.path+"-wal"))
		}
		return nil
	})
}
