//go:build linux || darwin || freebsd

package sqlite

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/kagzi/kagzi/engine"
)

func TestWhatRootRestoresBelongsToWhoServesIt(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may give files away")
	}
	const user, group = 12345, 12346
	backup := backupOfStore(t, busy(t)).File
	for name, there := range map[string]bool{"in the place of another": true, "where there is none": false} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "kagzi.db")
			given := []string{dir}
			if there {
				openAt(t, path).Close()
				given = []string{path}
				if err := os.Remove(path + ".lock"); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range given {
				if err := os.Chown(name, user, group); err != nil {
					t.Fatal(err)
				}
			}
			restoreInto(t, path, engine.RestoreParams{File: backup})
			for _, name := range []string{path, path + ".lock"} {
				info, err := os.Stat(name)
				if err != nil {
					t.Fatal(err)
				}
				if owner := info.Sys().(*syscall.Stat_t); owner.Uid != user || owner.Gid != group ||
					info.Mode().Perm() != 0o600 {
					t.Errorf("%s belongs to %d:%d with mode %v, want %d:%d and 0600", name, owner.Uid, owner.Gid,
						info.Mode(), user, group)
				}
			}
		})
	}
}

func TestWhatRootRewritesBelongsToTheServersUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may give files away")
	}
	const user, group = 12345, 12346
	s := busy(t)
	s.Close()
	if err := os.Chown(s.path, user, group); err != nil {
		t.Fatal(err)
	}
	if _, findings, err := Accept(t.Context(), s.path); err != nil || len(findings) > 0 {
		t.Fatalf("%v (%v)", findings, err)
	}
	info, err := os.Stat(s.path)
	if err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t); owner.Uid != user || owner.Gid != group {
		t.Errorf("it belongs to %d:%d, want %d:%d", owner.Uid, owner.Gid, user, group)
	}
}
