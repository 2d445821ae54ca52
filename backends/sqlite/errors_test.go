package sqlite

import (
	"strings"
	"sync"
	"testing"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"

	lib "modernc.org/sqlite/lib"

	"github.com/kagzi/kagzi/engine"
)

func TestFullDiskForLogIndexLeavesOutcomeUnknown(t *testing.T) {
	err := &sqlite3.Error{Code: lib.SQLITE_IOERR_SHMSIZE, Text: "no room"}
	if failure := dbfile.AsFatal(err, false); failure != nil {
		t.Errorf("it ends the server: %v", failure)
	}
	if !sqlite3.IsFull(err) {
		t.Error("it does not count as a full disk")
	}
	if got := dbfile.Translate("start", err); engine.KindOf(got) != engine.KindUnavailable ||
		!strings.Contains(got.Error(), "may or may not have taken effect") {
		t.Errorf("a caller is told %v, want that nobody knows", got)
	}
	for _, other := range []int{lib.SQLITE_IOERR_WRITE, lib.SQLITE_IOERR_FSYNC, lib.SQLITE_IOERR_SHMMAP} {
		if err := (&sqlite3.Error{Code: other, Text: "failed"}); dbfile.AsFatal(err, false) == nil ||
			sqlite3.IsFull(err) {
			t.Errorf("error %d of the disk does not end the server", other)
		}
	}
}

// TestAValueThatTheDatabaseCannotHold makes SQLite itself refuse the value of one of many steps.
func TestAValueThatTheDatabaseCannotHold(t *testing.T) {
	s := fresh(t)
	leases := holding(t, s, 8)
	behindItsBack(t, s.path, "create trigger large before insert on steps when new.name = 'large' "+
		"begin select length(zeroblob(2000000000)); end")
	var group sync.WaitGroup
	for i, l := range leases {
		group.Go(func() {
			name, want := "small", engine.Kind(0)
			if i%2 == 0 {
				name, want = "large", engine.KindTooLarge
			}
			now := s.Now()
			_, err := s.CompleteStep(t.Context(), engine.CompleteStepParams{Lease: l, Step: engine.StepRef{Name: name},
				ID: engine.NewID(now), Now: now})
			if err == nil != (want == 0) || err != nil && engine.KindOf(err) != want {
				t.Errorf("CompleteStep of %s: %v, want kind %d", name, err, want)
			}
		})
	}
	group.Wait()
	if err := s.Health(t.Context()); err != nil {
		t.Errorf("Health: %v, want it well", err)
	}
}
