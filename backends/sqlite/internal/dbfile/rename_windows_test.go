package dbfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// openFor opens a file that others may read and write, as SQLite does, and closes it when end is
// called.
func openFor(t *testing.T, path string) (end func()) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return func() { f.Close() }
}

func TestAFileIsMovedOnceNobodyHasItOpen(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	fill(t, from, "new")
	fill(t, to, "old")
	if err := RenameNew(from, to); !errors.Is(err, fs.ErrExist) {
		t.Errorf("err = %v, want that the name is taken", err)
	}
	if err := Rename(from+".gone", to); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("err = %v, want that there is no such file", err)
	}
	for _, open := range []string{from, to} {
		fill(t, from, "new")
		end := openFor(t, open)
		if others, err := OpenElsewhere(open); err != nil || !others {
			t.Errorf("others have %s = %t (%v), want true", open, others, err)
		}
		if err := Rename(from, to); !InUse(err) {
			t.Errorf("err = %v, want that %s is in use", err, open)
		}
		time.AfterFunc(5*moveRetryInterval, end)
		if err := Rename(from, to); err != nil {
			t.Errorf("a file that was open for a moment is not moved: %v", err)
		}
	}
	if others, err := OpenElsewhere(to); err != nil || others {
		t.Errorf("others have it = %t (%v), want false", others, err)
	}
}
