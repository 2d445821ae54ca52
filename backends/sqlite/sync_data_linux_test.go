package sqlite

import (
	"os"
	"runtime"
	"testing"
	"time"
	"unsafe"

	lib "modernc.org/sqlite/lib"

	"github.com/kagzi/kagzi/engine"
)

func TestALogThatCannotBeMadeDurableSaysSo(t *testing.T) {
	for name, descriptor := range map[string]int32{"no file": -1, "a file that cannot be synced": pipe(t)} {
		system := &lib.TunixFile{Fh: descriptor}
		if code := syncData(uintptr(unsafe.Pointer(system))); code != lib.SQLITE_IOERR_FSYNC {
			t.Errorf("%s: syncData = %d, want %d", name, code, lib.SQLITE_IOERR_FSYNC)
		}
		runtime.KeepAlive(system)
	}
}

func TestALogIsSyncedByItsDataOnceItsNameIsDurable(t *testing.T) {
	s := fresh(t)
	named := func() (named int32) {
		_, err := write(t.Context(), s, "insert", 0, func(tx *tx) (none struct{}, err error) {
			named = logOf(tx.conn.handle).named
			return none, insertNamespace(tx, engine.NewID(time.Now()).String())
		})
		if err != nil {
			t.Fatal(err)
		}
		return named
	}
	named()
	settle(t, s)
	if named() != 1 {
		t.Error("after a commit the name of the log counts as not durable")
	}
}

// logOf is the log of a connection's database.
func logOf(h *handle) *file {
	place := h.tls.Alloc(8)
	defer h.tls.Free(8)
	lib.Xsqlite3_file_control(h.tls, h.db, 0, lib.SQLITE_FCNTL_JOURNAL_POINTER, place)
	return fileAt(*(*uintptr)(memory(place)))
}

// pipe is a file descriptor that cannot be synced.
func pipe(t *testing.T) int32 {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return int32(w.Fd())
}
