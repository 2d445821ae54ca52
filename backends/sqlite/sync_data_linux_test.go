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
			at, err := tx.conn.logPlace()
			if err != nil {
				return none, err
			}
			named = fileAt(at).named
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

// pipe is a file descriptor that cannot be synced.
func pipe(t *testing.T) int32 {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return int32(w.Fd())
}

func TestASyncIsLeftToTheWriterButForThatOfALogsHeader(t *testing.T) {
	type placed struct {
		file   file
		system lib.TunixFile
	}
	for _, test := range []struct {
		name         string
		begun, later int32
		code, owed   int32
	}{
		{"at a commit", 0, 1, lib.SQLITE_OK, 1},
		{"of the header, before the frames of that commit", 1, 1, lib.SQLITE_IOERR_FSYNC, 0},
		{"at a checkpoint", 0, 0, lib.SQLITE_IOERR_FSYNC, 0},
	} {
		p := &placed{file{named: 1, begun: test.begun, later: test.later}, lib.TunixFile{Fh: -1}} // a real sync fails
		code := syncFile(nil, uintptr(unsafe.Pointer(p)), lib.SQLITE_SYNC_NORMAL)
		if code != test.code || p.file.owed != test.owed || p.file.begun != 0 {
			t.Errorf("sync %s = %d, owed %d, header to be synced %d; want %d, %d, 0", test.name, code, p.file.owed, p.file.begun, test.code, test.owed)
		}
		runtime.KeepAlive(p)
	}
}
