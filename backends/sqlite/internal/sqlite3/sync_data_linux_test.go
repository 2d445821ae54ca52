package sqlite3

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"unsafe"

	lib "modernc.org/sqlite/lib"
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
	c, err := Open(DSN(filepath.Join(t.TempDir(), "any.db"), "journal_mode(wal)", "synchronous(full)"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Script(t.Context(), "create table any (n)"); err != nil {
		t.Fatal(err)
	}
	if err := c.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	at, err := c.logPlace()
	if err != nil {
		t.Fatal(err)
	}
	if fileAt(at).nameSynced != 1 {
		t.Error("after a commit the name of the log counts as not durable")
	}
	if err := c.Script(t.Context(), "insert into any values (1)"); err != nil {
		t.Fatal(err)
	}
	owed, err := c.CommitUnsynced(t.Context())
	if err != nil || owed == 0 {
		t.Fatalf("the sync that the next commit owes = %d (%v), want one", owed, err)
	}
	if err := owed.Sync(); err != nil {
		t.Error(err)
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
		// a real sync fails
		p := &placed{file{nameSynced: 1, headerUnsynced: test.begun, deferSync: test.later}, lib.TunixFile{Fh: -1}}
		code := syncFile(nil, uintptr(unsafe.Pointer(p)), lib.SQLITE_SYNC_NORMAL)
		if code != test.code || p.file.syncOwed != test.owed || p.file.headerUnsynced != 0 {
			t.Errorf("sync %s = %d, owed %d, header to be synced %d; want %d, %d, 0", test.name, code, p.file.syncOwed,
				p.file.headerUnsynced, test.code, test.owed)
		}
		runtime.KeepAlive(p)
	}
}
