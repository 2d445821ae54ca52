package sqlite

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/kagzi/kagzi/backends/sqlite/internal/backup"
	"github.com/kagzi/kagzi/engine"
)

func TestADatabaseThatIsLookedAtIsNotReplaced(t *testing.T) {
	path, _ := closedOne(t)
	b := backupOfStore(t, busy(t))
	reader := readOnlyAt(t, path)
	expectRuns(t, reader, 6)
	before := names(t, filepath.Dir(path))
	if _, err := Restore(t.Context(), path, engine.RestoreParams{
		File: b.File, Force: true, Now: time.Now()}); !errors.Is(err, backup.ErrOthersHave) {
		t.Fatalf("err = %v, want %v", err, backup.ErrOthersHave)
	}
	if _, _, err := Accept(t.Context(), path); !errors.Is(err, backup.ErrOthersHave) {
		t.Errorf("err = %v, want %v", err, backup.ErrOthersHave)
	}
	if after := names(t, filepath.Dir(path)); len(after) != len(before) {
		t.Errorf("beside it lies %v, want %v", after, before)
	}
	reader.Close()
	if done := restoreInto(t, path, engine.RestoreParams{File: b.File, Force: true}); done.Kept == "" {
		t.Error("what was replaced is not kept")
	}
}
