package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/kagzi/kagzi/engine"
)

// FatalError is why nothing may be acknowledged any more: a write or a sync failed in a way that leaves it open what is on
// the disk, or the file is damaged. Recovery is SQLite's, at the next start.
type FatalError struct {
	Corrupt bool // the file is damaged; otherwise the disk failed
	cause   error
}

func (e *FatalError) Error() string {
	if e.Corrupt {
		return "the database file is damaged (" + e.cause.Error() + "); `kagzi db check` tells more, `kagzi db restore` puts a backup in its place"
	}
	return "the disk failed a write: " + e.cause.Error()
}

func (e *FatalError) Unwrap() error { return e.cause }

// ExitCode is what the process is to end with: 71 for a damaged file, 70 for a disk that failed.
func (e *FatalError) ExitCode() int {
	if e.Corrupt {
		return 71
	}
	return 70
}

func code(err error) int {
	if e, ok := errors.AsType[*libError](err); ok {
		return e.code & 0xff
	}
	return 0
}

// failedWrite says that the disk failed a write or a sync.
func failedWrite(err error) bool {
	if e, ok := errors.AsType[*libError](err); ok {
		switch e.code {
		case sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC, sqlite3.SQLITE_IOERR_TRUNCATE:
			return true
		}
	}
	return false
}

func isFull(err error) bool { return code(err) == sqlite3.SQLITE_FULL || noIndex(err) }

// noIndex says that the index of the log, the -shm file, could not grow, as when no room at all is left. The commit is in the log then and not in
// its index: nobody sees it, and the next one is written over it. Only a crash before that would bring it back.
func noIndex(err error) bool {
	e, ok := errors.AsType[*libError](err)
	return ok && e.code == sqlite3.SQLITE_IOERR_SHMSIZE
}

// fatal is err as a FatalError when it is one, for a write or, with reading, for a read: a read that failed has lost nothing.
func fatal(err error, reading bool) *FatalError {
	if failure, ok := errors.AsType[*FatalError](err); ok {
		return failure
	}
	if noIndex(err) {
		return nil
	}
	switch code(err) {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return &FatalError{Corrupt: true, cause: err}
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL:
		if !reading {
			return &FatalError{cause: err}
		}
	}
	return nil
}

var (
	errExhausted   = &engine.Error{Kind: engine.KindExhausted, Message: "no room is left on the disk of the database; it passes when there is room again"}
	errNoIndex     = &engine.Error{Kind: engine.KindUnavailable, Message: "no room is left on the disk for the index of the database's log; it passes when there is room again, and the call may or may not have counted"}
	errUnavailable = &engine.Error{Kind: engine.KindUnavailable, Message: "the database cannot write"}
	errBusy        = &engine.Error{Kind: engine.KindUnavailable, Message: "another process keeps the database locked"}
	errUnreadable  = &engine.Error{Kind: engine.KindUnavailable, Message: "the database cannot be read"}
	errGone        = &engine.Error{Kind: engine.KindUnavailable, Message: "the database file is not there any more"}
	errMoving      = &engine.Error{Kind: engine.KindUnavailable, Message: "another process keeps changing what lies beside the database"}
	errClosed      = &engine.Error{Kind: engine.KindUnavailable, Message: "the database is closed"}
	errGaveUp      = &engine.Error{Kind: engine.KindUnavailable, Message: "the caller stopped waiting; the call may or may not have counted"}
)

// isRefusal says that err is an answer of ours and no trouble of the database.
func isRefusal(err error) bool {
	_, ok := errors.AsType[*engine.Error](err)
	return ok
}

// translate turns a driver's error into what callers may act on. Errors of the engine pass as they are.
func translate(verb string, err error) error {
	if err == nil || isRefusal(err) {
		return err
	}
	if noIndex(err) {
		return errNoIndex
	}
	switch code(err) {
	case sqlite3.SQLITE_FULL:
		return errExhausted
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return errBusy
	}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", errGaveUp, err)
	case fatal(err, false) != nil:
		return errUnavailable
	}
	return fmt.Errorf("%s: %w", verb, err)
}

// translateLook is translate for who only looks. A damaged file is no reason to end then: what is whole may still be looked at.
func translateLook(verb string, err error) error {
	failure := fatal(err, false)
	switch {
	case isRefusal(err):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return errGone
	case failure != nil && failure.Corrupt:
		return &engine.Error{Kind: engine.KindInternal, Message: failure.Error()}
	case failure != nil:
		return errUnreadable
	}
	return translate(verb, err)
}
