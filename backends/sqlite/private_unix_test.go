//go:build linux || darwin || freebsd

package sqlite

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/kagzi/kagzi/engine"
)

// chmod sets a file's mode regardless of the umask.
func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func TestPlantedLockLinkIsNotFollowed(t *testing.T) {
	for what, plant := range map[string]func(target, name string) error{
		"a link to a file":       os.Symlink,
		"a link to nothing":      func(target, name string) error { return os.Symlink(target+".none", name) },
		"something else, a pipe": func(_, name string) error { return syscall.Mkfifo(name, 0o600) },
	} {
		t.Run(what, func(t *testing.T) {
			dir, precious := t.TempDir(), filepath.Join(t.TempDir(), "precious")
			if err := os.WriteFile(precious, []byte("precious"), 0o600); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "kagzi.db")
			if err := plant(precious, path+".lock"); err != nil {
				t.Fatal(err)
			}
			s, err := Open(t.Context(), path, engine.OpenOptions{})
			if err == nil {
				s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), path+".lock is not a file") {
				t.Errorf("opened with error %v, want that the lock is no file", err)
			}
			text, err := os.ReadFile(precious)
			if err != nil || string(text) != "precious" {
				t.Errorf("what the link leads to reads %q, %v", text, err)
			}
			if _, err := os.Lstat(precious + ".none"); err == nil {
				t.Error("a file was made where the link leads")
			}
		})
	}
}

func TestPlantedDatabaseLinkIsNotFollowed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may give files away")
	}
	for _, c := range []struct {
		what  string
		mode  os.FileMode
		owner int
		taken bool
	}{
		{"another's, where anybody may write", 0o777, 12345, false},
		{"another's, where anybody may add something", 0o777 | os.ModeSticky, 12345, false},
		{"our own there", 0o777, os.Geteuid(), true},
		{"another's, where nobody else may write", 0o755, 12345, true},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "kagzi.db")
			if err := os.Symlink(filepath.Join(t.TempDir(), "there.db"), path); err != nil {
				t.Fatal(err)
			}
			if err := os.Lchown(path, c.owner, -1); err != nil {
				t.Fatal(err)
			}
			chmod(t, dir, c.mode)
			s, err := Open(t.Context(), path, engine.OpenOptions{})
			if err == nil {
				s.Close()
			}
			if (err == nil) != c.taken || err != nil &&
				(engine.KindOf(err) != engine.KindPrecondition || !strings.Contains(err.Error(), "another user")) {
				t.Errorf("opened with error %v, want it taken: %t", err, c.taken)
			}
		})
	}
}

func TestFilePermissionsOfOthers(t *testing.T) {
	for _, c := range []struct {
		what      string
		file, dir os.FileMode
		refused   bool
		warning   string
	}{
		{"for its owner only", 0o600, 0o755, false, ""},
		{"for a group as well", 0o660, 0o770, false, ""},
		{"for anybody to write", 0o666, 0o700, true, ""},
		{"for anybody to read", 0o644, 0o755, false, "may read the database"},
		{"for anybody to read, where nobody gets at it", 0o644, 0o700, false, ""},
		{"in a directory for anybody", 0o600, 0o777, false, "may replace the database"},
		{"in a directory in which nobody takes away what is another's", 0o600, 0o777 | os.ModeSticky, false, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "kagzi.db")
			openAt(t, path).Close()
			chmod(t, path, c.file)
			chmod(t, dir, c.dir)
			var said bytes.Buffer
			s, err := Open(t.Context(), path, engine.OpenOptions{Log: slog.New(slog.NewTextHandler(&said, nil))})
			if err == nil {
				s.Close()
			}
			if (err != nil) != c.refused || err != nil &&
				(engine.KindOf(err) != engine.KindPrecondition || !strings.Contains(err.Error(), "mode 0666")) {
				t.Errorf("opened with error %v, want it refused: %t", err, c.refused)
			}
			if c.warning == "" && strings.Contains(said.String(), "level=WARN") ||
				!strings.Contains(said.String(), c.warning) {
				t.Errorf("the log says %q, want %q", said.String(), c.warning)
			}
		})
	}
}
