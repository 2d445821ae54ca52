package sqlite

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/kagzi/kagzi/engine"
)

// readOnlyAt opens the file read-only until the test ends.
func readOnlyAt(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), path, engine.OpenOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// runsIn returns how many runs the store shows.
func runsIn(ctx context.Context, s *Store) (int64, error) {
	_, info, err := s.ListRuns(ctx, engine.RunFilter{Namespace: "default"}, engine.Page{Limit: 1, Count: true})
	return info.Total, err
}

// expectRuns asks each connection of the store, because they take turns.
func expectRuns(t *testing.T, s *Store, want int64) {
	t.Helper()
	for range readerCount {
		if n, err := runsIn(t.Context(), s); err != nil || n != want {
			t.Fatalf("runs = %d (%v), want %d", n, err, want)
		}
	}
}

// lookAt returns what another process sees that opens the file once.
func lookAt(path string) string {
	s, err := Open(context.Background(), path, engine.OpenOptions{ReadOnly: true})
	if err != nil {
		return err.Error()
	}
	defer s.Close()
	n, err := runsIn(context.Background(), s)
	return fmt.Sprintf("%d runs (%v)", n, err)
}

// contents returns the names in a directory, with a digest of each file.
func contents(t *testing.T, dir string) string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "%s %d %x\n", file.Name(), len(text), sha256.Sum256(text))
	}
	return all.String()
}

// remains makes a database with three runs in the file and two more in its log, as a killed server
// leaves it.
func remains(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kagzi.db")
	server := otherServer(t, path)
	for _, what := range []string{"start", "start", "start", "close", "open", "start", "start"} {
		server.tell(t, what)
	}
	server.kill()
	return path
}

// copyOf copies some of the files of a database to a new directory, and returns the database's path
// there.
func copyOf(t *testing.T, path string, suffixes ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, suffix := range suffixes {
		text, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "kagzi.db"+suffix), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "kagzi.db")
}

// found returns the states of a file that no server uses, with the number of its runs.
func found(t *testing.T) map[string]struct {
	path string
	runs int64
} {
	t.Helper()
	killed := remains(t)
	add := func(path, suffix, text string) string {
		if err := os.WriteFile(path+suffix, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return map[string]struct {
		path string
		runs int64
	}{
		"a file alone":                     {copyOf(t, killed, ""), 3},
		"left by a server that was killed": {copyOf(t, killed, "", "-wal", "-shm", ".lock"), 5},
		"copied with its log":              {copyOf(t, killed, "", "-wal"), 5},
		"with an empty log":                {add(copyOf(t, killed, ""), "-wal", ""), 3},
		"with an empty log and an index":   {add(copyOf(t, killed, "", "-shm"), "-wal", ""), 3},
		"with an index and no log":         {copyOf(t, killed, "", "-shm"), 3},
		"with an empty index":              {add(copyOf(t, killed, "", "-wal"), "-shm", ""), 5},
		"with a log of nothing":            {add(copyOf(t, killed, ""), "-wal", strings.Repeat("x", 5000)), 3},
	}
}

func TestReadOnlyStoreLeavesNoFiles(t *testing.T) {
	for name, file := range found(t) {
		t.Run(name, func(t *testing.T) {
			before := contents(t, filepath.Dir(file.path))
			s := readOnlyAt(t, file.path)
			expectRuns(t, s, file.runs)
			if _, err := s.Describe(t.Context()); err != nil {
				t.Errorf("Describe: %v", err)
			}
			if err := s.Health(t.Context()); err != nil {
				t.Errorf("Health: %v", err)
			}
			ctx, stop := context.WithCancel(t.Context())
			if err := s.Listen(ctx, func(engine.Notification) { stop() }, nil); !errors.Is(err, context.Canceled) {
				t.Errorf("Listen: %v", err)
			}
			if during := contents(t, filepath.Dir(file.path)); during != before {
				t.Errorf("while it is open the directory holds\n%swant\n%s", during, before)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if after := contents(t, filepath.Dir(file.path)); after != before {
				t.Errorf("afterwards the directory holds\n%swant\n%s", after, before)
			}
			openAt(t, file.path).Close()
			expectRuns(t, readOnlyAt(t, file.path), file.runs)
		})
	}
}

func TestReadOnlyStoreSeesServerAtOnce(t *testing.T) {
	path := remains(t)
	for name, file := range map[string]string{
		"beside a log": path, "beside nothing": copyOf(t, path, ""), "copied": copyOf(t, path, "", "-wal")} {
		t.Run(name, func(t *testing.T) {
			s := readOnlyAt(t, file)
			n, err := runsIn(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			server := otherServer(t, file)
			for _, what := range []string{"start", "start", "checkpoint", "start", "close", "open", "start",
				"checkpoint"} {
				server.tell(t, what)
				if what == "start" {
					n++
				}
				expectRuns(t, s, n)
			}
			server.tell(t, "start")
			server.kill()
			expectRuns(t, s, n+1)
			successor := otherServer(t, file)
			successor.tell(t, "start")
			expectRuns(t, s, n+2)
			successor.tell(t, "close")
			expectRuns(t, s, n+2)
		})
	}
}

func TestReadOnlyStoreAfterShortLivedServer(t *testing.T) {
	path := copyOf(t, remains(t), "")
	s := readOnlyAt(t, path)
	expectRuns(t, s, 3)
	server := otherServer(t, path)
	server.tell(t, "start")
	server.tell(t, "close")
	expectRuns(t, s, 4)
}

func TestAnAnswerThatAServerHasOvertakenIsReadAgain(t *testing.T) {
	path := copyOf(t, remains(t), "")
	s := readOnlyAt(t, path)
	calls := 0
	count := "select count(*) from runs"
	n, err := read(t.Context(), s, "count", func(r session) (n int64, err error) {
		if calls++; calls == 1 {
			server := otherServer(t, path)
			server.tell(t, "start")
			server.tell(t, "close")
		}
		_, err = r.found(&count, func(row *row) error {
			n = row.num()
			return nil
		})
		return n, err
	})
	if err != nil || calls != 2 || n != 4 {
		t.Fatalf("runs = %d (%v) in %d looks, want 4 in 2", n, err, calls)
	}
}

func TestAFileThatTakesTheOthersPlaceIsSeen(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows lets no file take the place of one that is open")
	}
	path := remains(t)
	other := copyOf(t, path, "", "-wal", "-shm")
	server := otherServer(t, other)
	server.tell(t, "start")
	server.kill()
	s := readOnlyAt(t, path)
	expectRuns(t, s, 5)
	for _, suffix := range []string{"-wal", "-shm", ""} {
		if err := os.Rename(other+suffix, path+suffix); err != nil {
			t.Fatal(err)
		}
	}
	expectRuns(t, s, 6)
}

func TestCloseWithReaderCheckpointsAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kagzi.db")
	server := otherServer(t, path)
	server.tell(t, "start")
	s := readOnlyAt(t, path)
	expectRuns(t, s, 1)
	server.tell(t, "start")
	server.tell(t, "close")
	expectRuns(t, readOnlyAt(t, copyOf(t, path, "")), 2)
	expectRuns(t, s, 2)
}

func TestReadersAreNeverWrongWhileServersComeAndGo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kagzi.db")
	server := otherServer(t, path)
	server.tell(t, "close")
	s := readOnlyAt(t, path)
	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	defer readers.Wait()
	defer stop()
	for range 3 {
		readers.Go(func() {
			for last := int64(0); ctx.Err() == nil; {
				n, err := runsIn(ctx, s)
				if ctx.Err() != nil {
					return
				}
				if err != nil || n < last {
					t.Errorf("runs = %d (%v) after %d", n, err, last)
					return
				}
				last = n
			}
		})
	}
	for range 8 {
		for _, what := range []string{"open", "start", "checkpoint", "start", "close"} {
			server.tell(t, what)
		}
	}
	expectRuns(t, s, 16)
}

func TestAChangeWatchNoticesEachChangeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kagzi.db")
	server := otherServer(t, path)
	server.tell(t, "close")
	g := &changeWatch{path: path}
	defer g.close()
	expect := func(what string, want bool) {
		t.Helper()
		if got := g.changed(t.Context()); got != want {
			t.Errorf("changed %s = %t, want %t", what, got, want)
		}
	}
	expect("at first", true)
	expect("when nothing happened", false)
	server.tell(t, "open")
	expect("when a server has come", true)
	expect("beside an idle server", false)
	server.tell(t, "start")
	expect("after a start", true)
	expect("after that", false)
	server.tell(t, "start")
	server.tell(t, "start")
	expect("after two", true)
	expect("after these", false)
	server.kill()
	expect("when the server was killed", false)
	if runtime.GOOS == "windows" {
		return // Windows removes no open file
	}
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	expect("when the file is gone", false)
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	expect("when it is back", true)
}

func TestReadOnlyListenerIsNotified(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kagzi.db")
	server := otherServer(t, path)
	s := readOnlyAt(t, path)
	notifications := make(chan engine.Notification, 100)
	ended := make(chan error, 1)
	go func() { ended <- s.Listen(t.Context(), func(r engine.Notification) { notifications <- r }, nil) }()
	for n := range int64(3) {
		if r := <-notifications; r.Kind != engine.NotifyAll {
			t.Fatalf("notification = %+v, want NotifyAll", r)
		}
		expectRuns(t, s, n)
		server.tell(t, "start")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, engine.ErrUnavailable) {
		t.Fatalf("Listen ended with %v, want that the store is closed", err)
	}
}

func TestClosingAReaderReleasesEverything(t *testing.T) {
	path := remains(t)
	s := readOnlyAt(t, path)
	if s.writer != nil || s.lock != nil {
		t.Error("it has a writer or a lock")
	}
	expectRuns(t, s, 5)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := runsIn(t.Context(), s); !errors.Is(err, engine.ErrUnavailable) {
		t.Errorf("a read after Close: %v, want unavailable", err)
	}
	if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{startOf("t", s)}}); !errors.Is(
		err, engine.ErrUnavailable) {
		t.Errorf("a write after Close: %v, want unavailable", err)
	}
	if err := s.Health(t.Context()); !errors.Is(err, engine.ErrUnavailable) {
		t.Errorf("Health after Close: %v, want unavailable", err)
	}
	server := openAt(t, path) // in this process, with all its files closed
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(path + suffix); err == nil {
			t.Errorf("the server's end left %s", suffix)
		}
	}
}
