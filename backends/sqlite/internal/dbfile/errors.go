package dbfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"
	"github.com/kagzi/kagzi/engine"
)

// FatalError is why nothing may be acknowledged any more: a write or a sync failed in a way that
// leaves open what is on the disk, or the file is damaged. SQLite recovers the file at the next
// start.
type FatalError struct {
	Corrupt bool // the file is damaged; otherwise the disk failed
	cause   error
}

func (e *FatalError) Error() string {
	if e.Corrupt {
		return "the database file is damaged (" + e.cause.Error() +
			"); `kagzi db check` tells more, `kagzi db restore` puts a backup in its place"
	}
	return "the disk failed a write: " + e.cause.Error()
}

func (e *FatalError) Unwrap() error { return e.cause }

// DiskFailed returns the failure of a disk, or of files that somebody took away.
func DiskFailed(cause error) *FatalError { return &FatalError{cause: cause} }

// Damaged returns the failure of a damaged file.
func Damaged(cause error) *FatalError { return &FatalError{Corrupt: true, cause: cause} }

// ExitCode returns the exit code of the process: 71 for a damaged file, 70 for a disk that failed.
func (e *FatalError) ExitCode() int {
	if e.Corrupt {
		return 71
	}
	return 70
}

// AsFatal returns err as a FatalError if it is one, of a write or, with reading, of a read: a
// failed read has lost nothing.
func AsFatal(err error, reading bool) *FatalError {
	if failure, ok := errors.AsType[*FatalError](err); ok {
		return failure
	}
	if sqlite3.NoIndex(err) {
		return nil
	}
	switch sqlite3.Code(err) {
	case sqlite3.CodeCorrupt, sqlite3.CodeNotADB:
		return &FatalError{Corrupt: true, cause: err}
	case sqlite3.CodeIO, sqlite3.CodeReadOnly, sqlite3.CodeCantOpen, sqlite3.CodeProtocol:
		if !reading {
			return &FatalError{cause: err}
		}
	}
	return nil
}

// OpenError gives damage, and a disk that fails writes, their exit codes and the advice that goes
// with them.
func OpenError(path string, err error) error {
	if failure := AsFatal(err, !sqlite3.FailedWrite(err)); failure != nil {
		err = failure
	}
	return fmt.Errorf("open the database %s: %w", path, err)
}

var (
	ErrExhausted = &engine.Error{Kind: engine.KindExhausted,
		Message: "no room is left on the disk of the database; it passes when there is room again"}
	errNoIndex = &engine.Error{Kind: engine.KindUnavailable,
		Message: "no room is left on the disk for the index of the database's log; it passes when there is room again, and the call may or may not have counted"}
	ErrUnavailable = &engine.Error{Kind: engine.KindUnavailable, Message: "the database cannot write"}
	errBusy        = &engine.Error{Kind: engine.KindUnavailable, Message: "another process keeps the database locked"}
	errUnreadable  = &engine.Error{Kind: engine.KindUnavailable, Message: "the database cannot be read"}
	errGone        = &engine.Error{Kind: engine.KindUnavailable, Message: "the database file is not there any more"}
	ErrMoving      = &engine.Error{Kind: engine.KindUnavailable,
		Message: "another process keeps changing what lies beside the database"}
	ErrClosed = &engine.Error{Kind: engine.KindUnavailable, Message: "the database is closed"}
	errGaveUp = &engine.Error{Kind: engine.KindUnavailable,
		Message: "the caller stopped waiting; the call may or may not have counted"}
)

// IsRefusal reports whether err is an answer of the engine and not a failure of the database.
func IsRefusal(err error) bool {
	_, ok := errors.AsType[*engine.Error](err)
	return ok
}

// OfData turns an error that belongs to what a call holds into a refusal: it would fail in the same
// way each time. Other errors pass unchanged.
func OfData(verb string, err error) error {
	switch sqlite3.Code(err) {
	case sqlite3.CodeTooBig:
		return &engine.Error{Kind: engine.KindTooLarge,
			Message: verb + ": the database cannot hold a value that large; make it smaller"}
	case sqlite3.CodeMismatch:
		return &engine.Error{Kind: engine.KindInvalid, Message: verb + ": the database cannot hold a value of this call: it has the wrong type"}
	}
	return err
}

// Translate turns a driver's error into one that callers can act on. Errors of the engine pass
// unchanged.
func Translate(verb string, err error) error {
	if err == nil || IsRefusal(err) {
		return err
	}
	if sqlite3.NoIndex(err) {
		return errNoIndex
	}
	switch sqlite3.Code(err) {
	case sqlite3.CodeFull:
		return ErrExhausted
	case sqlite3.CodeBusy, sqlite3.CodeLocked:
		return errBusy
	case sqlite3.CodeTooBig, sqlite3.CodeMismatch:
		return OfData(verb, err)
	}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", errGaveUp, err)
	case AsFatal(err, false) != nil:
		return ErrUnavailable
	}
	return fmt.Errorf("%s: %w", verb, err)
}

// TranslateReadOnly is Translate for read-only access. A damaged file ends nothing then: what is
// whole may still be read.
func TranslateReadOnly(verb string, err error) error {
	failure := AsFatal(err, false)
	switch {
	case IsRefusal(err):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return errGone
	case failure != nil && failure.Corrupt:
		return &engine.Error{Kind: engine.KindInternal, Message: failure.Error()}
	case failure != nil:
		return errUnreadable
	}
	return Translate(verb, err)
}
