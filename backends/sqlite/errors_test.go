package sqlite

import (
	"strings"
	"testing"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"

	lib "modernc.org/sqlite/lib"

	"github.com/kagzi/kagzi/engine"
)

func TestAnIndexOfTheLogThatCannotGrowIsNoRoomAndLeavesTheOutcomeOpen(t *testing.T) {
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
