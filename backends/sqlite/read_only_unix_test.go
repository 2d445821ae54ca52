//go:build linux || darwin || freebsd

package sqlite

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/kagzi/kagzi/engine"
)

// otherUser returns a user to whom file permissions apply; nil: the user who runs the tests.
func otherUser(t *testing.T) *syscall.Credential {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Skip("running as root, and there is no user nobody to look at files as")
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// program copies the test binary to where everybody may run it.
func program(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(openToAll(t), "look")
	if err := os.WriteFile(path, text, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// openToAll makes a directory that everybody may enter.
func openToAll(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kagzi-read-only-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		os.Chmod(dir, 0o700)
		os.RemoveAll(dir)
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestWhoMayOnlyReadLooksAllTheSame(t *testing.T) {
	who := otherUser(t)
	program := program(t)
	for name, file := range found(t) {
		t.Run(name, func(t *testing.T) {
			dir := openToAll(t)
			files, err := os.ReadDir(filepath.Dir(file.path))
			if err != nil {
				t.Fatal(err)
			}
			for _, entry := range files {
				text, err := os.ReadFile(filepath.Join(filepath.Dir(file.path), entry.Name()))
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, entry.Name()), text, 0o444); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(dir, 0o555); err != nil {
				t.Fatal(err)
			}
			before := contents(t, dir)
			cmd := exec.Command(program)
			cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: who}
			cmd.Env = append(os.Environ(), "KAGZI_TEST_LOOK="+filepath.Join(dir, "kagzi.db"))
			out, err := cmd.CombinedOutput()
			if want := strconv.FormatInt(file.runs, 10) + " runs (<nil>)"; err != nil ||
				strings.TrimSpace(string(out)) != want {
				t.Errorf("it saw %q (%v), want %s", out, err, want)
			}
			if after := contents(t, dir); after != before {
				t.Errorf("afterwards the directory holds\n%swant\n%s", after, before)
			}
		})
	}
}

func TestWhoMayNotReadIsToldSo(t *testing.T) {
	who := otherUser(t)
	dir := openToAll(t)
	path := filepath.Join(dir, "kagzi.db")
	openAt(t, path).Close()
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program(t))
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: who}
	cmd.Env = append(os.Environ(), "KAGZI_TEST_LOOK="+path)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "no permission to read it") {
		t.Fatalf("it said %q (%v), want that it may not read the file", out, err)
	}
}

func TestADatabaseWithASecondNameIsRefused(t *testing.T) {
	s := fresh(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.db")
	if err := os.Link(s.path, other); err != nil {
		t.Skipf("SKIPPED: no hard links here: %v", err)
	}
	for _, path := range []string{s.path, other} {
		if _, err := Open(t.Context(), path, engine.OpenOptions{}); engine.KindOf(err) != engine.KindPrecondition ||
			!strings.Contains(err.Error(), "has 2 names") {
			t.Errorf("Open(%s) = %v, want a refusal that tells of two names", path, err)
		}
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	openAt(t, s.path)
}
