package sqlite

import (
	"strings"
	"testing"

	lib "modernc.org/sqlite/lib"

	"github.com/kagzi/kagzi/engine"
)

func TestAnIndexOfTheLogThatCannotGrowIsNoRoomAndLeavesTheOutcomeOpen(t *testing.T) {
	err := &libError{lib.SQLITE_IOERR_SHMSIZE, "no room"}
	if failure := fatal(err, false); failure != nil {
		t.Errorf("it ends the server: %v", failure)
	}
	if !isFull(err) {
		t.Error("it does not count as a full disk")
	}
	if got := translate("start", err); engine.KindOf(got) != engine.KindUnavailable || !strings.Contains(got.Error(), "may or may not have counted") {
		t.Errorf("a caller is told %v, want that nobody knows", got)
	}
	for _, other := range []int{lib.SQLITE_IOERR_WRITE, lib.SQLITE_IOERR_FSYNC, lib.SQLITE_IOERR_SHMMAP} {
		if err := (&libError{other, "failed"}); fatal(err, false) == nil || isFull(err) {
			t.Errorf("error %d of the disk does not end the server", other)
		}
	}
}
