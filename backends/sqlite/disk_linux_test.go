package sqlite

import (
	"context"
	"errors"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"

	goflag "flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kagzi/kagzi/engine"
)

// small makes a disk of so many bytes, which needs root.
func small(t *testing.T, bytes int) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		t.Skipf("NOT TESTED: a small disk can be mounted by root only: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fillUp fills a disk until the returned function is called.
func fillUp(t *testing.T, dir string) (free func()) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(f, zeros{}); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
	f.Close()
	return func() {
		if err := os.Remove(f.Name()); err != nil {
			t.Error(err)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// roomy makes the store treat its disk as a large one, so that the disk itself refuses writes.
func roomy(s *Store) {
	s.space = dbfile.DiskSpace{Dir: s.space.Dir, Free: func(string) (uint64, error) { return dbfile.LowWater, nil }}
}

// begun starts n runs and returns the acknowledged ones, with the last error.
func begun(t *testing.T, s *Store, n int) (ids []engine.ID, last error) {
	t.Helper()
	for range n {
		start := startOf("t", s)
		start.Input.Data = make([]byte, 64<<10)
		if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{start}}); err != nil {
			last = err
		} else {
			ids = append(ids, start.ID)
		}
	}
	return ids, last
}

func TestAFullDiskLosesNothingAndPasses(t *testing.T) {
	dir := small(t, 24<<20)
	path := filepath.Join(dir, "kagzi.db")
	s := openAt(t, path)
	roomy(s)
	var acknowledged []engine.ID
	for round := range 5 {
		ids, err := begun(t, s, 5)
		acknowledged = append(acknowledged, ids...)
		if err != nil {
			t.Fatalf("round %d, with room: %v", round, err)
		}
		free := fillUp(t, dir)
		ids, err = begun(t, s, 30)
		acknowledged = append(acknowledged, ids...) // the log may have space that it had before
		if !errors.Is(err, engine.ErrExhausted) {
			t.Fatalf("round %d, without room: %v, want exhausted", round, err)
		}
		if s.Health(t.Context()) == nil {
			t.Errorf("round %d: it says that it is healthy", round)
		}
		if _, err := s.Backup(t.Context(), filepath.Join(dir, "copy.db")); !errors.Is(err, engine.ErrExhausted) {
			t.Errorf("round %d, a backup without room: %v, want exhausted", round, err)
		}
		free()
		if err := s.Failure(); err != nil {
			t.Fatalf("a full disk is fatal: %v", err)
		}
	}
	if _, err := begun(t, s, 1); err != nil {
		t.Errorf("with room again: %v", err)
	}
	if err := s.Health(t.Context()); err != nil {
		t.Errorf("health with room again: %v", err)
	}
	s.Close()
	if findings, err := Check(t.Context(), path); err != nil || len(findings) > 0 {
		t.Errorf("findings = %v (%v), want none", findings, err)
	}
	s = openAt(t, path)
	for _, id := range acknowledged {
		if _, err := s.GetRun(t.Context(), "default", id); err != nil {
			t.Errorf("run %s was acknowledged: %v", id, err)
		}
	}
}

func TestHealthRecoversAfterFullDisk(t *testing.T) {
	dir := small(t, 24<<20)
	s := openAt(t, filepath.Join(dir, "kagzi.db"))
	roomy(s)
	s.proof.pause = 0
	free := fillUp(t, dir)
	if _, err := begun(t, s, 30); !errors.Is(err, engine.ErrExhausted) {
		t.Fatalf("without room: %v, want exhausted", err)
	}
	for range 3 {
		err := s.Health(t.Context())
		s.proof.wait()
		if err == nil {
			t.Fatal("it says that it is healthy")
		}
	}
	free()
	if err := s.Health(t.Context()); err == nil {
		t.Error("it is well before the disk has taken a write")
	}
	s.proof.wait()
	if err := s.Health(t.Context()); err != nil {
		t.Errorf("health with room again: %v", err)
	}
	if entries, err := filepath.Glob(filepath.Join(dir, "*-proof")); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v (%v)", entries, err)
	}
}

func TestOpenOnFullDisk(t *testing.T) {
	dir := small(t, 1<<20)
	path := filepath.Join(dir, "kagzi.db")
	free := fillUp(t, dir)
	if s, err := Open(t.Context(), path, engine.OpenOptions{}); err == nil {
		s.Close()
		t.Fatal("it was opened")
	}
	free()
	openAt(t, path)
}

func TestADiskThatTakesNoWritesIsRefusedInPlainWords(t *testing.T) {
	dir := small(t, 8<<20)
	path := filepath.Join(dir, "kagzi.db")
	openAt(t, path).Close()
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(t.Context(), path, engine.OpenOptions{}); err == nil ||
		!strings.Contains(err.Error(), "read-only") {
		if err == nil {
			s.Close()
		}
		t.Errorf("error = %v, want that it is read-only", err)
	}
	if findings, err := Check(t.Context(), path); err != nil || len(findings) > 0 {
		t.Errorf("check = %v (%v), want it to work", findings, err)
	}
	if _, err := Backup(t.Context(), path, filepath.Join(t.TempDir(), "copy.db")); err != nil {
		t.Errorf("backup = %v, want it to work", err)
	}
}

// replaceFD replaces the file behind this process's descriptor of path.
func replaceFD(t *testing.T, path, by string, mode int) {
	t.Helper()
	other, err := unix.Open(by, mode, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(other)
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("NOT TESTED: %v", err)
	}
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil || target != path {
			continue
		}
		var number int
		fmt.Sscan(e.Name(), &number)
		if err := unix.Dup3(other, number, unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("%s is not open", path)
}

func TestAWriteThatTheDiskFailsEndsTheServerUnacknowledged(t *testing.T) {
	s := fresh(t)
	holding(t, s, 1)
	settle(t, s)
	replaceFD(t, s.path+"-wal", "/dev/null", unix.O_RDONLY) // every write to it fails
	if _, err := begun(t, s, 1); !errors.Is(err, engine.ErrUnavailable) {
		t.Fatalf("start = %v, want unavailable", err)
	}
	<-s.Fatal()
	if coder, ok := s.Failure().(interface{ ExitCode() int }); !ok || coder.ExitCode() != 70 {
		t.Errorf("failure = %v, want exit code 70", s.Failure())
	}
	if _, err := begun(t, s, 1); !errors.Is(err, engine.ErrUnavailable) || s.Health(t.Context()) == nil {
		t.Errorf("afterwards: start = %v, health = %v", err, s.Health(t.Context()))
	}
}

func TestRemovedFilesStopServer(t *testing.T) {
	for name, take := range map[string]func(t *testing.T, path string) error{
		"the log is deleted":  func(_ *testing.T, path string) error { return os.Remove(path + "-wal") },
		"the file is deleted": func(_ *testing.T, path string) error { return os.Remove(path) },
		"the file is renamed": func(_ *testing.T, path string) error { return os.Rename(path, path+".old") },
		"the file is replaced": func(t *testing.T, path string) error {
			return os.Rename(backupOfStore(t, busy(t)).File, path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, asked := range []string{"a write", "health"} {
				s := fresh(t)
				holding(t, s, 1)
				if err := take(t, s.path); err != nil {
					t.Fatal(err)
				}
				var err error
				if asked == "a write" {
					_, err = begun(t, s, 1)
				} else {
					err = s.Health(t.Context())
				}
				if !errors.Is(err, engine.ErrUnavailable) {
					t.Errorf("%s: %v, want unavailable", asked, err)
				}
				<-s.Fatal()
				if coder, ok := s.Failure().(interface{ ExitCode() int }); !ok || coder.ExitCode() != 70 ||
					!strings.Contains(s.Failure().Error(), "kagzi db restore") {
					t.Errorf("failure = %v, want exit code 70 and what to do", s.Failure())
				}
			}
		})
	}
}

func TestRemovedLockStopsServer(t *testing.T) {
	for name, take := range map[string]func(path string) error{
		"deleted": os.Remove,
		"renamed": func(path string) error { return os.Rename(path, path+".old") },
	} {
		t.Run(name, func(t *testing.T) {
			for _, asked := range []string{"a write", "health"} {
				s := fresh(t)
				holding(t, s, 1)
				if err := take(s.path + ".lock"); err != nil {
					t.Fatal(err)
				}
				other := openAt(t, s.path)
				if ids, err := begun(t, other, 1); err != nil || len(ids) != 1 {
					t.Errorf("the server that has the lock: %v, want it at work", err)
				}
				var err error
				if asked == "a write" {
					_, err = begun(t, s, 1)
				} else {
					err = s.Health(t.Context())
				}
				if !errors.Is(err, engine.ErrUnavailable) {
					t.Errorf("%s: %v, want unavailable", asked, err)
				}
				if coder, ok := s.Failure().(interface{ ExitCode() int }); !ok || coder.ExitCode() != 70 ||
					!strings.Contains(s.Failure().Error(), "lock file") {
					t.Errorf("failure = %v, want exit code 70 and the lock", s.Failure())
				}
			}
		})
	}
}

var spoiltCopies = goflag.Int("spoilt.copies", 16, "how many spoilt copies of a database are put to work")

// TestABitThatFlipsIsNoticedOrHarmless damages copies of a database and uses each.
func TestABitThatFlipsIsNoticedOrHarmless(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := fresh(t)
	holding(t, s, 200)
	whole := backupOfStore(t, s).File
	content, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	var refused, stopped, found, harmless int
	for i := range *spoiltCopies {
		spoilt := append([]byte(nil), content...)
		if i%2 == 0 {
			for range 1 + random.IntN(64) {
				spoilt[random.IntN(len(spoilt))] ^= 1 << random.IntN(8)
			}
		} else {
			page := random.IntN(len(spoilt) / 4096)
			clear(spoilt[page*4096 : (page+1)*4096])
		}
		path := filepath.Join(t.TempDir(), "kagzi.db")
		if err := os.WriteFile(path, spoilt, 0o600); err != nil {
			t.Fatal(err)
		}
		switch outcome := putToWork(t, path); {
		case outcome == nil:
			if findings, err := Check(t.Context(), path); err != nil || len(findings) > 0 {
				found++
			} else {
				harmless++
			}
		case errors.Is(outcome, errNotOpened):
			refused++
		default:
			stopped++
		}
	}
	t.Logf("refused at the start: %d, stopped at work: %d, found by check: %d, nothing to be found: %d", refused,
		stopped, found, harmless)
	if refused+stopped+found == 0 {
		t.Error("no damage was noticed")
	}
}

var errNotOpened = errors.New("not opened")

// putToWork returns how a damaged database ends; nil if it served. A process that keeps running
// must not have failed because of damage.
func putToWork(t *testing.T, path string) error {
	t.Helper()
	s, err := Open(t.Context(), path, engine.OpenOptions{})
	if err != nil {
		if _, statErr := os.Stat(path); errors.Is(statErr, fs.ErrNotExist) {
			t.Error("the spoilt file is gone")
		}
		return fmt.Errorf("%w: %w", errNotOpened, err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for range 20 {
		s.StartRuns(ctx, engine.StartRunsParams{Runs: []engine.StartRun{startOf("t", s)}})
		s.ListRuns(ctx, engine.RunFilter{Namespace: "default"}, engine.Page{Limit: 1000})
		if ctx.Err() != nil {
			t.Error("it hangs")
		}
		select {
		case <-s.Fatal():
			if coder, ok := s.Failure().(interface{ ExitCode() int }); !ok || coder.ExitCode() != 71 {
				t.Errorf("failure = %v, want exit code 71", s.Failure())
			}
			if _, err := s.StartRuns(ctx, engine.StartRunsParams{
				Runs: []engine.StartRun{startOf("t", s)}}); err == nil {
				t.Error("a write was acknowledged after the damage was found")
			}
			return s.Failure()
		default:
		}
	}
	return nil
}

func TestReaderDoesNotRecreateRemovedFile(t *testing.T) {
	s := fresh(t)
	if err := os.Remove(s.path); err != nil {
		t.Fatal(err)
	}
	if _, err := s.GetRun(t.Context(), "default", engine.NewID(s.Now())); err == nil {
		t.Errorf("a run in a file that is gone: %v", err)
	}
	if _, err := os.Stat(s.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is there again: %v", err)
	}
}
