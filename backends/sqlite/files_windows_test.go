package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// openFor keeps a file open that others may read and write, as SQLite does, until it is called.
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
	write0600(t, from, []byte("new"))
	write0600(t, to, []byte("old"))
	if err := moveAnew(from, to); !errors.Is(err, fs.ErrExist) {
		t.Errorf("err = %v, want that the name is taken", err)
	}
	if err := move(from+".gone", to); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("err = %v, want that there is no such file", err)
	}
	for _, open := range []string{from, to} {
		write0600(t, from, []byte("new"))
		end := openFor(t, open)
		if others, err := othersHave(open); err != nil || !others {
			t.Errorf("others have %s = %t (%v), want true", open, others, err)
		}
		if err := move(from, to); !inUse(err) {
			t.Errorf("err = %v, want that %s is in use", err, open)
		}
		time.AfterFunc(5*moveInterval, end)
		if err := move(from, to); err != nil {
			t.Errorf("a file that was open for a moment is not moved: %v", err)
		}
	}
	if others, err := othersHave(to); err != nil || others {
		t.Errorf("others have it = %t (%v), want false", others, err)
	}
}

func TestADatabaseThatIsLookedAtIsNotReplaced(t *testing.T) {
	path, _ := closedOne(t)
	b := backupOfStore(t, busy(t))
	looker := lookingAt(t, path)
	expectRuns(t, looker, 6)
	before := names(t, filepath.Dir(path))
	if _, err := Restore(t.Context(), path, engine.RestoreParams{File: b.File, Force: true, Now: time.Now()}); !errors.Is(err, errOthersHave) {
		t.Fatalf("err = %v, want %v", err, errOthersHave)
	}
	if _, _, err := Accept(t.Context(), path); !errors.Is(err, errOthersHave) {
		t.Errorf("err = %v, want %v", err, errOthersHave)
	}
	if after := names(t, filepath.Dir(path)); len(after) != len(before) {
		t.Errorf("beside it lies %v, want %v", after, before)
	}
	looker.Close()
	if done := restoreInto(t, path, engine.RestoreParams{File: b.File, Force: true}); done.Kept == "" {
		t.Error("what was replaced is not kept")
	}
}
