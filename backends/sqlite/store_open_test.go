package sqlite

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kagzi/kagzi/backends/sqlite/internal/backup"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"

	lib "modernc.org/sqlite/lib"

	"github.com/kagzi/kagzi/engine"
)

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// TestMain makes the test binary another process if an environment variable names a database: a
// server that has it, or a reader.
func TestMain(m *testing.M) {
	if path := os.Getenv("KAGZI_TEST_HOLD"); path != "" {
		holdAt(path)
		return
	}
	if path := os.Getenv("KAGZI_TEST_LOOK"); path != "" {
		fmt.Println(lookAt(path))
		return
	}
	if err := sqlite3.OwnPageCaches(); err != nil {
		// as the server program does, before a test uses SQLite as another program would
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// holdAt does what it is told, line by line, until it is killed or its parent is gone.
func holdAt(path string) {
	var s *Store
	do := map[string]func() error{
		"open": func() (err error) {
			if s, err = Open(context.Background(), path, engine.OpenOptions{}); err == nil {
				err = s.SetHolder("listening on [::1]:50051\x1b[31m")
			}
			return err
		},
		"start": func() error {
			_, err := s.StartRuns(context.Background(),
				engine.StartRunsParams{Runs: []engine.StartRun{startOf("t", s)}})
			return err
		},
		"checkpoint": func() error {
			_, err := write(context.Background(), s, "checkpoint", 0, func(*tx) (none struct{}, err error) {
				s.writer.logPages = checkpointPages // when this is committed
				return none, nil
			})
			if err == nil {
				err = settled(context.Background(), s)
			}
			return err
		},
		"close": func() error { return s.Close() },
	}
	fmt.Println("open", do["open"]())
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(lines.Text(), do[lines.Text()]())
	}
}

// otherProcess is a server in another process.
type otherProcess struct {
	*exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

// otherServer starts a process that opens the database, and returns when it has.
func otherServer(t *testing.T, path string) *otherProcess {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "KAGZI_TEST_HOLD="+path)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	other := &otherProcess{Cmd: cmd, in: stdin, out: bufio.NewReader(out)}
	other.answers(t, "open")
	return other
}

// tell makes the other process do something, and returns when it is done.
func (o *otherProcess) tell(t *testing.T, what string) {
	t.Helper()
	if _, err := fmt.Fprintln(o.in, what); err != nil {
		t.Fatal(err)
	}
	o.answers(t, what)
}

func (o *otherProcess) answers(t *testing.T, what string) {
	t.Helper()
	if line, err := o.out.ReadString('\n'); err != nil || line != what+" <nil>\n" {
		t.Fatalf("the other server was told to %s and said %q (%v)", what, line, err)
	}
}

// kill ends the other process as a power cut would.
func (o *otherProcess) kill() {
	o.Process.Kill()
	o.Wait()
}

func TestSecondServerIsRefusedWithHolder(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "kagzi.db")
	other := otherServer(t, path)
	link := filepath.Join(dir, "link.db")
	named := []string{path}
	if runtime.GOOS != "windows" { // only administrators may make links
		if err := os.Symlink(path, link); err != nil {
			t.Fatal(err)
		}
		named = append(named, link)
	}
	for _, name := range named {
		var err error
		synctest.Test(t, func(t *testing.T) { // in a synctest bubble, waiting takes no time
			begun := time.Now()
			var s *Store
			if s, err = Open(t.Context(), name, engine.OpenOptions{}); err == nil {
				s.Close()
				t.Fatalf("a second server opened %s", name)
			}
			if took := time.Since(begun); took >= time.Second {
				t.Errorf("it took %s to refuse", took)
			}
		})
		for _, want := range []string{fmt.Sprint("process ", other.Process.Pid), "started 20",
			"listening on [::1]:50051"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not tell %q", err, want)
			}
		}
		if strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%q holds what the other wrote unescaped", err)
		}
	}
}

func TestAServerThatIsKilledLeavesNoLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kagzi.db")
	other := otherServer(t, path)
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	other.Wait()
	openAt(t, path)
}

func TestOnlyTheOwnerMayReadWhatOpenMakes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no modes of files; what lies in a profile is its owner's by inheritance")
	}
	path := filepath.Join(t.TempDir(), "new", "deep", "kagzi.db")
	s := openAt(t, path)
	holding(t, s, 1)
	for name, want := range map[string]fs.FileMode{
		path: 0o600, path + "-wal": 0o600, path + ".lock": 0o600, filepath.Dir(path): 0o700 | fs.ModeDir,
	} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("mode of %s = %s, want %s", filepath.Base(name), info.Mode(), want)
		}
	}
}

func TestAcknowledgedWritesSurviveReopen(t *testing.T) {
	odd := "with space % and ?"
	if runtime.GOOS == "windows" { // no name has a question mark
		odd = "with space % and #é"
	}
	path := filepath.Join(t.TempDir(), odd, "kagzi.db")
	s := openAt(t, path)
	lease := holding(t, s, 1)[0]
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the log is left after Close: %v", err)
	}
	s = openAt(t, path)
	if got, err := s.CurrentLease(t.Context(), "default", lease.RunID); err != nil || got != lease {
		t.Fatalf("lease = %v (%v), want %v", got, err, lease)
	}
	if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{
		Runs: []engine.StartRun{startOf("t", s)}}); err != nil {
		t.Fatalf("a start in the lane that was there: %v", err)
	}
}

func TestANewerSchemaIsRefusedWithBothNumbers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kagzi.db")
	s := openAt(t, path)
	s.Close()
	behindItsBack(t, path, "pragma user_version = 4711")
	_, err := Open(t.Context(), path, engine.OpenOptions{})
	if err == nil || !strings.Contains(err.Error(), "4711") ||
		!strings.Contains(err.Error(), fmt.Sprint("schemas up to ", s.schema)) {
		t.Fatalf("error = %v, want both numbers", err)
	}
}

func TestAnOldSchemaIsKeptWhenAskedToAndMigratedOtherwise(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kagzi.db")
	if status, err := Status(t.Context(), path); err != nil || status.Applied != 0 ||
		len(status.Pending) != status.Newest || !status.Missing {
		t.Fatalf("status of no file = %+v (%v)", status, err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Fatal("asking for the status made the file")
	}
	if _, err := Open(t.Context(), path, engine.OpenOptions{KeepSchema: true}); err == nil {
		t.Fatal("an empty database was opened with its schema kept")
	}
	if err := Migrate(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if status, err := Status(t.Context(), path); err != nil || status.Applied != status.Newest ||
		len(status.Pending) != 0 || status.Missing {
		t.Fatalf("status after Migrate = %+v (%v)", status, err)
	}
	s, err := Open(t.Context(), path, engine.OpenOptions{KeepSchema: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

func TestADatabaseOfAnotherProgramIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "other.db")
	behindItsBack(t, path, "create table t (a)")
	if _, err := Open(t.Context(), path, engine.OpenOptions{}); err == nil ||
		!strings.Contains(err.Error(), "another program") {
		t.Fatalf("error = %v, want it to say whose it is", err)
	}
}

func TestAFileThatIsNoDatabaseIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kagzi.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("this is no database ", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), path, engine.OpenOptions{})
	if failure, ok := errors.AsType[*FatalError](err); !ok || failure.ExitCode() != 71 {
		t.Fatalf("error = %v, want it damaged, with exit code 71", err)
	}
}

func TestADirectoryIsNoDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kagzi")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	_, opened := Open(t.Context(), path, engine.OpenOptions{})
	_, asked := Status(t.Context(), path)
	for what, err := range map[string]error{"Open": opened, "Status": asked} {
		if !errors.Is(err, dbfile.ErrNoFile) {
			t.Errorf("%s: %v, want %v", what, err, dbfile.ErrNoFile)
		}
	}
	if beside := names(t, filepath.Dir(path)); len(beside) != 1 {
		t.Errorf("there are %v, want the directory alone", beside)
	}
}

func TestLosingDurabilityIsSaidLoudly(t *testing.T) {
	t.Setenv("KAGZI_UNSAFE_SYNCHRONOUS", "normal")
	var said strings.Builder
	path := filepath.Join(t.TempDir(), "kagzi.db")
	s, err := Open(t.Context(), path, engine.OpenOptions{Log: slog.New(slog.NewTextHandler(&said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if !strings.Contains(said.String(), "POWER CUT") {
		t.Fatalf("log = %q, want a warning", said.String())
	}
	t.Setenv("KAGZI_UNSAFE_SYNCHRONOUS", "off")
	if _, err := Open(t.Context(), path, engine.OpenOptions{}); err == nil {
		t.Fatal("another level was taken")
	}
}

func TestADamagedFileIsFatalWithItsOwnExitCode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kagzi.db")
	s := openAt(t, path)
	holding(t, s, 100)
	s.Close()
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	junk := []byte(strings.Repeat("\xff", 4096))
	for page := int64(2); page < fileSize(t, path)/4096; page++ {
		if _, err := file.WriteAt(junk, page*4096); err != nil {
			t.Fatal(err)
		}
	}
	file.Close()
	findings, err := Check(t.Context(), path)
	if err == nil && len(findings) == 0 {
		t.Error("Check finds nothing")
	}

	s, err = Open(t.Context(), path, engine.OpenOptions{})
	if err != nil {
		return // it was noticed at once
	}
	defer s.Close()
	if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{startOf("t", s)}}); !errors.Is(
		err, engine.ErrUnavailable) {
		t.Fatalf("start = %v, want unavailable", err)
	}
	<-s.Fatal()
	coder, ok := s.Failure().(interface{ ExitCode() int })
	if !ok || coder.ExitCode() != 71 {
		t.Fatalf("failure = %v, want exit code 71", s.Failure())
	}
	if s.Health(t.Context()) == nil {
		t.Error("it says that it is healthy")
	}
}

func TestTheLogIsCheckpointedAtTheStart(t *testing.T) {
	s := fresh(t)
	if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{
		Runs: []engine.StartRun{startOf("t", s)}}); err != nil {
		t.Fatal(err)
	}
	left := copyOf(t, s.path, "", "-wal") // as a killed server leaves it
	if fileSize(t, left+"-wal") == 0 {
		t.Fatal("the log is empty after a write")
	}
	again := openAt(t, left)
	if size := fileSize(t, left+"-wal"); size != 0 {
		t.Errorf("the log has %d bytes after the start, want 0", size)
	}
	if page, _, err := again.ListRuns(t.Context(), engine.RunFilter{Namespace: "default"},
		engine.Page{Limit: 10}); err != nil || len(page) != 1 {
		t.Errorf("runs after the start = %v, %v, want one", page, err)
	}
}

func TestNoDatabaseIsMadeBesideTheLogOfOneThatIsGone(t *testing.T) {
	for name, take := range map[string]func(path string) error{
		"taken away": func(path string) error { return os.Rename(path, path+".old") },
		"emptied": func(path string) error {
			return errors.Join(os.Link(path, path+".old"), replaceByNothing(path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path, rows := crashed(t)
			if err := take(path); err != nil {
				t.Fatal(err)
			}
			for doing, open := range map[string]func() error{
				"open": func() error {
					s, err := Open(t.Context(), path, engine.OpenOptions{})
					if err == nil {
						s.Close()
					}
					return err
				},
				"migrate": func() error { return Migrate(t.Context(), path) },
			} {
				if err := open(); !errors.Is(err, engine.ErrPrecondition) ||
					!strings.Contains(err.Error(), "bring the database back") {
					t.Errorf("%s: %v, want it refused with what to do", doing, err)
				}
			}
			if err := os.Rename(path+".old", path); err != nil {
				t.Fatal(err)
			}
			if got := rowsAt(t, path); got != rows {
				t.Errorf("after the database was brought back it holds\n%s\nwant\n%s", got, rows)
			}
		})
	}
}

func TestReaderLeavesLogOfEmptiedDatabase(t *testing.T) {
	taken := backupOfStore(t, busy(t)).File
	path, _ := crashed(t)
	if err := replaceByNothing(path); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	for doing, look := range map[string]func() error{
		"look": func() error {
			s, err := Open(t.Context(), path, engine.OpenOptions{ReadOnly: true})
			if err == nil {
				s.Close()
			}
			return err
		},
		"status": func() error { _, err := Status(t.Context(), path); return err },
		"check":  func() error { _, err := Check(t.Context(), path); return err },
		"backup": func() error { _, err := Backup(t.Context(), path, filepath.Join(t.TempDir(), "b.db")); return err },
		"accept": func() error { _, _, err := Accept(t.Context(), path); return err },
	} {
		if err := look(); !errors.Is(err, engine.ErrPrecondition) ||
			!strings.Contains(err.Error(), "bring the database back") {
			t.Errorf("%s: %v, want it refused with what to do", doing, err)
		}
		if left, err := os.ReadFile(path + "-wal"); err != nil || !bytes.Equal(left, log) {
			t.Fatalf("%s: the log has %d bytes, %v; want those that it had, %d", doing, len(left), err, len(log))
		}
	}
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	for _, dry := range []bool{true, false} {
		if _, err := Restore(t.Context(), path, engine.RestoreParams{File: taken, Now: now, DryRun: dry}); err != nil {
			t.Fatal(err)
		}
		name := path + "-wal"
		if !dry {
			name = path + ".before-restore-" + backup.Stamp(now) + "-wal"
		}
		if left, err := os.ReadFile(name); err != nil || !bytes.Equal(left, log) {
			t.Fatalf("restored (only to look: %t), the log has %d bytes, %v; want those that it had, %d", dry,
				len(left), err, len(log))
		}
	}
}

// replaceByNothing replaces a file by an empty one.
func replaceByNothing(path string) error {
	return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600))
}

func TestDiskFailureAtStartExitCode(t *testing.T) {
	for code, want := range map[int]int{
		lib.SQLITE_IOERR_WRITE: 70, lib.SQLITE_IOERR_FSYNC: 70, lib.SQLITE_IOERR_TRUNCATE: 70,
		lib.SQLITE_IOERR_DIR_FSYNC: 70,
		lib.SQLITE_CORRUPT:         71, lib.SQLITE_IOERR_READ: 0, lib.SQLITE_CANTOPEN: 0, lib.SQLITE_FULL: 0,
	} {
		got := 0
		var coded interface{ ExitCode() int }
		if errors.As(dbfile.OpenError("any.db", &sqlite3.Error{Code: code, Text: "of a test"}), &coded) {
			got = coded.ExitCode()
		}
		if got != want {
			t.Errorf("exit code for %d is %d, want %d", code, got, want)
		}
	}
}
