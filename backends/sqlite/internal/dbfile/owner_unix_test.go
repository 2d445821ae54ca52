//go:build linux || darwin || freebsd

package dbfile

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestWhatHasAnotherNameTooIsNotGivenAway(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may give files away")
	}
	dir := t.TempDir()
	path, secret := filepath.Join(dir, "kagzi.db"), filepath.Join(t.TempDir(), "secret")
	for _, name := range []string{path, secret} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, put := range map[string]func(string, string) error{"link": os.Link, "symlink": os.Symlink} {
		file := filepath.Join(dir, name)
		if err := errors.Join(put(secret, file), os.Chown(path, 12345, 12346)); err != nil {
			t.Fatal(err)
		}
		GiveToOwnerOf(file, path)
		info, err := os.Stat(secret)
		if err != nil {
			t.Fatal(err)
		}
		if owner := info.Sys().(*syscall.Stat_t); owner.Uid != 0 {
			t.Errorf("by a %s the file of root was given to %d", name, owner.Uid)
		}
	}
}
