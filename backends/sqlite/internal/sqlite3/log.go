package sqlite3

import (
	"context"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// UnsyncedLog identifies the log that a commit still has to sync: the address of the system's file.
// Zero: none.
type UnsyncedLog uintptr

// Sync makes the commit durable. Any goroutine may call it while the connection is open.
func (s UnsyncedLog) Sync() error {
	if code := syncData(uintptr(s)); code != lib.SQLITE_OK {
		return &Error{Code: int(code), Text: "sync of the log"}
	}
	return nil
}

// CommitUnsynced commits the transaction. If SQLite would sync at its end, and the log's header is
// on disk already, the sync is left to the caller: owed is not zero. Then nothing may be
// acknowledged, and no other commit written, before owed.Sync has returned nil.
func (c *Conn) CommitUnsynced(ctx context.Context) (owed UnsyncedLog, err error) {
	at, err := c.logPlace()
	if err != nil {
		return 0, err
	}
	f := fileAt(at)
	f.deferSync, f.syncOwed = 1, 0
	err = c.Commit(ctx)
	if f.deferSync = 0; f.syncOwed == 0 {
		return 0, err
	}
	return UnsyncedLog(at + behind), err
}

// logPlace returns the address of the write-ahead log's file, which SQLite keeps as long as the
// connection is open.
func (c *Conn) logPlace() (uintptr, error) {
	place := c.tls.Alloc(8)
	defer c.tls.Free(8)
	err := c.check(lib.Xsqlite3_file_control(c.tls, c.db, 0, lib.SQLITE_FCNTL_JOURNAL_POINTER, place))
	return *(*uintptr)(memory(place)), err
}

// LogFrameBytes is the size of a page of 4096 bytes in the log.
const LogFrameBytes = 4096 + FrameHeaderBytes

const zerosBytes = 64 << 10 // in one write; the library accepts at most twice that

// LengthenLog appends that many zero bytes to the log and syncs them, unless the log has the wanted
// length. more reports whether it is still shorter. The caller has begun a write transaction, so
// that zeros do not overwrite what another program has just appended.
func (c *Conn) LengthenLog(want, by int64) (more bool, err error) {
	at, err := c.logPlace()
	if err != nil {
		return false, err
	}
	if fileAt(at).methods == 0 { // it is not open yet
		return false, nil
	}
	under := underlying{c.tls, at}
	size, code := under.size()
	if err := c.check(code); err != nil || size >= want {
		return false, err
	}
	zeros := libc.Xcalloc(c.tls, 1, zerosBytes)
	if zeros == 0 {
		return false, nil // a longer log is not necessary
	}
	defer libc.Xfree(c.tls, zeros)
	for end := size + by; size < end; size += zerosBytes {
		if err := c.check(under.write(zeros, zerosBytes, size)); err != nil {
			return false, err
		}
	}
	return true, c.check(syncFile(c.tls, at, lib.SQLITE_SYNC_NORMAL))
}
