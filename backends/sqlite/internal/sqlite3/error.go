package sqlite3

import (
	"errors"
	"fmt"

	lib "modernc.org/sqlite/lib"
)

// Error is an error that SQLite reports.
type Error struct {
	Code int // extended
	Text string
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Text, e.Code) }

// The primary result codes that callers tell apart.
const (
	CodeBusy     = lib.SQLITE_BUSY
	CodeLocked   = lib.SQLITE_LOCKED
	CodeReadOnly = lib.SQLITE_READONLY
	CodeIO       = lib.SQLITE_IOERR
	CodeCorrupt  = lib.SQLITE_CORRUPT
	CodeFull     = lib.SQLITE_FULL
	CodeCantOpen = lib.SQLITE_CANTOPEN
	CodeProtocol = lib.SQLITE_PROTOCOL
	CodeNotADB   = lib.SQLITE_NOTADB
	CodeTooBig   = lib.SQLITE_TOOBIG
	CodeMismatch = lib.SQLITE_MISMATCH
)

// Code returns the primary result code of err; 0 when it is none of SQLite's.
func Code(err error) int {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code & 0xff
	}
	return 0
}

// FailedWrite reports whether the disk failed a write or a sync.
func FailedWrite(err error) bool {
	if e, ok := errors.AsType[*Error](err); ok {
		switch e.Code {
		case lib.SQLITE_IOERR_WRITE, lib.SQLITE_IOERR_FSYNC, lib.SQLITE_IOERR_DIR_FSYNC, lib.SQLITE_IOERR_TRUNCATE:
			return true
		}
	}
	return false
}

// IsFull reports whether the disk is full.
func IsFull(err error) bool { return Code(err) == lib.SQLITE_FULL || NoIndex(err) }

// NoIndex reports whether the index of the log, the -shm file, could not grow, as when the disk is
// completely full. The commit is in the log then and not in its index: nobody sees it, and the next
// one overwrites it. Only a crash before that would bring it back.
func NoIndex(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == lib.SQLITE_IOERR_SHMSIZE
}
