package dbfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"
	"github.com/kagzi/kagzi/engine"
)

// FatalError is the reason why nothing may be acknowledged any more: a write or a sync failed, so
// that the content of the disk is unknown, or the file is damaged. SQLite recovers the file at the
// next start.
type FatalError struct {
	Corrupt bool // the file is damaged; otherwise the disk failed
	cause   error
	// diagnosis replaces the text of damage when more is known; nil: it is not.
	diagnosis *Diagnosis
}

func (e *FatalError) Error() string {
	if e.diagnosis != nil {
		return e.diagnosis.String()
	}
	if e.Corrupt {
		return "the database file is damaged (" + e.cause.Error() +
			"); `kagzi db check` shows details, `kagzi db restore` restores a backup"
	}
	return "the disk failed a write: " + e.cause.Error()
}

func (e *FatalError) Unwrap() error { return e.cause }

// DiskFailed returns a FatalError for a failed disk, or for files that somebody moved away.
func DiskFailed(cause error) *FatalError { return &FatalError{cause: cause} }

// Damaged returns a FatalError for a damaged file.
func Damaged(cause error) *FatalError { return &FatalError{Corrupt: true, cause: cause} }

// ExitCode returns the exit code of the process: 71 for a damaged file, 70 for a disk that failed.
func (e *FatalError) ExitCode() int {
	if e.Corrupt {
		return 71
	}
	return 70
}

// AsFatal returns err as a FatalError if it is one for a write or, with reading, for a read: a
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

// diagnosedBytes is up to which size a file is read to tell why it cannot be opened: it takes a
// second or two.
const diagnosedBytes = 512 << 20

// OpenError gives a damaged file, or a disk that fails writes, its exit code and its advice.
func OpenError(path string, err error) error {
	if failure := AsFatal(err, !sqlite3.FailedWrite(err)); failure != nil {
		err = failure
		if failure.Corrupt {
			failure.diagnosis = Diagnose(context.Background(), path, diagnosedBytes)
		}
	}
	return fmt.Errorf("open the database %s: %w", path, err)
}

var (
	ErrExhausted = &engine.Error{Kind: engine.KindExhausted,
		Message: "the disk of the database is full; writes work again once space is free"}
	errNoIndex = &engine.Error{Kind: engine.KindUnavailable,
		Message: "the disk is too full for the index of the database's log; writes work again once space is free, and this call may or may not have taken effect"}
	ErrUnavailable = &engine.Error{Kind: engine.KindUnavailable, Message: "the database cannot write"}
	errBusy        = &engine.Error{Kind: engine.KindUnavailable, Message: "another process keeps the database locked"}
	errUnreadable  = &engine.Error{Kind: engine.KindUnavailable, Message: "the database cannot be read"}
	errGone        = &engine.Error{Kind: engine.KindUnavailable, Message: "the database file does not exist any more"}
	ErrMoving      = &engine.Error{Kind: engine.KindUnavailable,
		Message: "another process keeps changing the files beside the database"}
	ErrClosed = &engine.Error{Kind: engine.KindUnavailable, Message: "the database is closed"}
	errGaveUp = &engine.Error{Kind: engine.KindUnavailable,
		Message: "the caller stopped waiting; the call may or may not have taken effect"}
)

// IsRefusal reports whether err is an answer of the engine rather than a failure of the database.
func IsRefusal(err error) bool {
	_, ok := errors.AsType[*engine.Error](err)
	return ok
}

// OfData turns an error about a call's own data into a refusal, because a retry would fail in the
// same way. Other errors stay unchanged.
func OfData(verb string, err error) error {
	switch sqlite3.Code(err) {
	case sqlite3.CodeTooBig:
		return &engine.Error{Kind: engine.KindTooLarge,
			Message: verb + ": the database cannot hold a value that large; make it smaller"}
	case sqlite3.CodeMismatch:
		return &engine.Error{Kind: engine.KindInvalid,
			Message: verb + ": the database cannot hold a value of this call: it has the wrong type"}
	}
	return err
}

// Translate turns a driver's error into one that callers can act on. Errors of the engine stay
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

// TranslateReadOnly is Translate for read-only access, where a damaged file is not fatal: its
// undamaged part can still be read.
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
