package postgres

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kagzi/kagzi/engine"
)

// SQLSTATEs that the store acts on.
const (
	codeSerialization = "40001"
	codeDeadlock      = "40P01"
	codeLockTimeout   = "55P03"
	codeUnique        = "23505"
	codeReference     = "23503"
	codeNull          = "23502" // the lane of a run, see insert_run.sql
	codeOvertaken     = "22012" // a division by zero, see check_started.sql
	codeDiskFull      = "53100"
	codeReadOnly      = "25006"
	codeTooMany       = "53300"
	codeCanceled      = "57014" // statement_timeout
	codeIdleInTx      = "25P03"
	codeTxTimeout     = "25P04" // transaction_timeout, from PostgreSQL 17 on
	codeStalePlan     = "0A000" // a prepared statement outlived a migration
	codeBadValue      = "22023" // a parameter of the address has a bad value, when a session begins
	codeUndefined     = "42704" // a parameter of the address does not exist
	codeFixed         = "55P02" // a parameter of the address cannot be changed
	codeForbidden     = "42501" // a parameter of the address, or the connection itself, is not permitted
	codeFenced        = "KZ001" // our own: a copy has the database, see copy.go

	// Errors about a call's own data, which a retry cannot solve. Not whole classes: 22012 is used
	// above.
	codeNoEquivalent = "22P05" // a character that the database's encoding does not have
	codeNoCharacter  = "22021" // bytes that are not a character
	codeTooLong      = "22001"
	codeOutOfRange   = "22003"
	codeCheck        = "23514"
	codeLimit        = "54000" // for example an index entry that is too large
)

var errClosed error = &engine.Error{Kind: engine.KindUnavailable, Message: "the store is closed"}

var errReadOnly = unavailable(
	"the database accepts no writes: it is a read-only standby, or its transactions are read-only by default")

func unavailable(format string, args ...any) error {
	return &engine.Error{Kind: engine.KindUnavailable, Message: fmt.Sprintf(format, args...)}
}

func sqlState(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// retryable says whether the transaction did not happen and may be retried.
func retryable(err error) bool {
	if _, ok := errors.AsType[*locksFirst](err); ok {
		return true
	}
	switch sqlState(err) {
	case codeSerialization, codeDeadlock, codeLockTimeout, codeStalePlan:
		return true
	case codeNull: // the cached lanes are dropped
		return true
	case codeUnique, codeReference, codeOvertaken:
		// another transaction was first, or deleted what was found; a retry sees the present state
		return true
	}
	return pgconn.SafeToRetry(err)
}

// unsettled says whether a commit that failed with err may have taken effect.
func unsettled(err error) bool {
	return engine.KindOf(translate("commit", err)) == engine.KindUnavailable
}

// ofData says whether the error is about a call's own data, so that a retry would fail in the same
// way.
func ofData(err error) bool {
	switch sqlState(err) {
	case codeNoEquivalent, codeNoCharacter, codeTooLong, codeOutOfRange, codeCheck, codeLimit:
		return true
	}
	return false
}

var untranslatable = regexp.MustCompile(
	`byte sequence ((?:0x[0-9a-f]{2} ?)+) in encoding "UTF8" has no equivalent in encoding "(\w+)"`)

var invalidBytes = regexp.MustCompile(`invalid byte sequence for encoding "(\w+)"`)

const moveAdvice = "leave it out, or have the operator move to a database with the encoding UTF8 (kagzi db copy)"

// refuseData returns the refusal of such a call.
func refuseData(doing string, e *pgconn.PgError) error {
	refusal := &engine.Error{Kind: engine.KindInvalid}
	switch e.Code {
	case codeNoEquivalent:
		character, encoding := "a character", "its encoding"
		if m := untranslatable.FindStringSubmatch(e.Message); m != nil {
			bytes, _ := hex.DecodeString(strings.NewReplacer("0x", "", " ", "").Replace(m[1]))
			r, _ := utf8.DecodeRune(bytes)
			character, encoding = fmt.Sprintf("the character %U", r), m[2]
		}
		refusal.Message = fmt.Sprintf(
			"%s: the database, whose encoding is %s, cannot hold %s of a text of this call: %s",
			doing, encoding, character, moveAdvice)
	case codeNoCharacter:
		refusal.Message = doing + ": a text of this call is not valid UTF-8, or holds a NUL character: leave it out"
		if m := invalidBytes.FindStringSubmatch(e.Message); m != nil && m[1] != encodingUTF8 {
			refusal.Message = fmt.Sprintf("%s: the database, whose encoding is %s, cannot hold a text of this call: %s",
				doing, m[1], moveAdvice)
		}
	case codeTooLong, codeLimit:
		refusal.Kind = engine.KindTooLarge
		refusal.Message = fmt.Sprintf(
			"%s: the database cannot hold a value of this call: it is too large (SQLSTATE %s)", doing, e.Code)
	case codeOutOfRange:
		refusal.Message = fmt.Sprintf(
			"%s: the database cannot hold a number of this call: it is out of range (SQLSTATE %s)", doing, e.Code)
	default:
		refusal.Message = fmt.Sprintf("%s: the database refuses a value of this call (SQLSTATE %s, constraint %s)",
			doing, e.Code, e.ConstraintName)
	}
	return refusal
}

// translate turns an error of the driver into one of the engine. It drops the driver's text if that
// could contain the address, and wraps unexpected errors with what was being done.
func translate(doing string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*engine.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return translateState(doing, e)
	}
	if _, ok := errors.AsType[*locksFirst](err); ok {
		return busy()
	}
	if lostConnection(err) {
		return unavailable("the database does not answer; the call may or may not have taken effect")
	}
	return fmt.Errorf("%s: %w", doing, err)
}

func translateState(doing string, e *pgconn.PgError) error {
	switch {
	case e.Code == codeDiskFull:
		return &engine.Error{Kind: engine.KindExhausted, Message: "the disk of the database is full"}
	case e.Code == codeFenced:
		return unavailable("%s", e.Message) // written by the copy
	case e.Code == codeTooMany:
		return unavailable(
			"the database accepts no more connections; raise the limit of its server, database or role to at least %d,"+
				" or set pool_max_conns in the database URL", leastConnections)
	case e.Code == codeReadOnly:
		return errReadOnly
	case e.Code == codeSerialization, e.Code == codeDeadlock, e.Code == codeLockTimeout:
		return busy()
	case e.Code == codeCanceled, e.Code == codeIdleInTx, e.Code == codeTxTimeout:
		return unavailable("the database took too long to answer")
	case e.Code == codeForbidden: // its message names database objects, no values
		return fmt.Errorf(
			"%s: the database's user may not do that (%s); have it own the database, or a schema that the database URL names with ?schema=", doing, e.Message)
	case strings.HasPrefix(e.Code, "57P"):
		return unavailable("the database is shutting down or starting up")
	case strings.HasPrefix(e.Code, "08"), strings.HasPrefix(e.Code, "53"):
		return unavailable("the database answered with an unexpected error (SQLSTATE %s)", e.Code)
	}
	if ofData(e) {
		return refuseData(doing, e)
	}
	// Message and detail may quote values of users; the code is enough.
	if e.ConstraintName != "" {
		return fmt.Errorf("%s: the database refused (SQLSTATE %s, constraint %s)", doing, e.Code, e.ConstraintName)
	}
	return fmt.Errorf("%s: the database refused (SQLSTATE %s)", doing, e.Code)
}

func busy() error { return unavailable("the database is busy: a lock was not free in time") }

func lostConnection(err error) bool {
	_, network := errors.AsType[net.Error](err)
	_, connect := errors.AsType[*pgconn.ConnectError](err)
	return network || connect || pgconn.SafeToRetry(err) || pgconn.Timeout(err) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, pgx.ErrTxCommitRollback) || strings.Contains(err.Error(), "conn closed") ||
		strings.Contains(err.Error(), "closed pool")
}
