//go:build unix

package certs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestModesAreTheSameUnderEveryUmask(t *testing.T) {
	for _, mask := range []int{0, 0o022, 0o027, 0o077, 0o177} {
		for _, renew := range []bool{false, true} {
			t.Run(fmt.Sprintf("%03o, renew %v", mask, renew), func(t *testing.T) {
				parent := t.TempDir()
				before := syscall.Umask(mask)
				_, err := Team{Dir: filepath.Join(parent, "tls"), Days: 1, Clients: []string{"ci"}, Renew: renew,
					Now: today}.Make()
				syscall.Umask(before)
				if err != nil {
					t.Fatal(err)
				}
				err = filepath.WalkDir(filepath.Join(parent, "tls"), func(path string, d fs.DirEntry, err error) error {
					if err != nil {
						return err
					}
					info, err := d.Info()
					want := fs.FileMode(0o644)
					switch {
					case d.IsDir():
						want = 0o700
					case strings.HasSuffix(path, ".key"):
						want = 0o600
					}
					if info.Mode().Perm() != want {
						t.Errorf("mode of %s = %04o, want %04o", path, info.Mode().Perm(), want)
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestADirectoryThatOthersMayWriteToIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o770); err != nil {
		t.Fatal(err)
	}
	_, err := Team{Dir: dir, Days: 1, Now: today}.Make()
	if unsafe := (*UnsafeError)(nil); !errors.As(err, &unsafe) || !mentions(err, dir, "chmod 700") {
		t.Errorf("error %v, want one that says chmod 700", err)
	}
	if os.Geteuid() != 0 {
		return
	}
	if err := errors.Join(os.Chmod(dir, 0o700), os.Chown(dir, 12345, -1)); err != nil {
		t.Fatal(err)
	}
	if _, err := (Team{Dir: dir, Days: 1, Now: today}).Make(); !mentions(err, "another user") {
		t.Errorf("error %v, want that it is another user's", err)
	}
}
