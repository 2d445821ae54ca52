//go:build unix

package daemon

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestWhatAServerWritesIsForItsOwnerOnlyUnderEveryUmask(t *testing.T) {
	for _, mask := range []int{0, 0o022, 0o027, 0o077} {
		func() {
			before := syscall.Umask(mask)
			defer syscall.Umask(before)
			c := testConfig(t)
			s := serve(t, c, embedded(nil))
			seen := map[string]bool{}
			look := func() {
				err := filepath.WalkDir(c.DataDir, func(path string, d fs.DirEntry, err error) error {
					if err != nil {
						return err
					}
					info, err := d.Info()
					if err != nil {
						return err
					}
					seen[d.Name()] = true
					want := fs.FileMode(0o600)
					if d.IsDir() {
						want = 0o700
					}
					if info.Mode().Perm() != want {
						t.Errorf("under umask %03o the mode of %s is %04o, want %04o", mask, path,
							info.Mode().Perm(), want)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
			look()
			for _, name := range []string{"kagzi.db", "kagzi.db-wal", "kagzi.db.lock"} {
				if !seen[name] {
					t.Errorf("%s was not looked at, but %v", name, seen)
				}
			}
			s.stop()
			if err := <-s.done; err != nil {
				t.Error(err)
			}
			look()
		}()
	}
}

func TestADataDirectoryOfAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory away")
	}
	c := testConfig(t)
	if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(c.DataDir, 12345, -1); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), c, embedded(nil), unreached(t)); codeOf(err) != 78 ||
		!mentions(err, c.DataDir, "another user") {
		t.Errorf("error %v with code %d, want that it is another user's, with 78", err, codeOf(err))
	}
}
