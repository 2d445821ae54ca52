package engine

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind says what a caller can do about an error. The server (gRPC) has one table from Kind to
// status code.
type Kind uint8

const (
	KindInternal     Kind = iota // a defect: the caller can do nothing
	KindInvalid                  // the argument that Field names is wrong
	KindNotFound                 // there is no such thing in this namespace
	KindExists                   // the name is taken
	KindConflict                 // an earlier call with the same key had other content
	KindPrecondition             // its state does not allow this; Status is that of the run
	KindLeaseLost                // the token is not the run's current one; Status is that of the run
	KindTooLarge                 // a size or a count exceeds its limit
	KindExhausted                // the disk is full; retry when it has room again
	KindUnsupported              // in the API, but not implemented by this server
	KindUnavailable              // the database does not answer; the call may have taken effect: repeat it
	KindNoKey                    // the call needs a valid API key, and has none
	KindDenied                   // the caller's key does not allow it
)

// Error is returned by every method of Store that refuses a call. Message is for people and holds
// no SQL, no path and no secret.
type Error struct {
	Kind      Kind
	Message   string
	Subject   string    // "run", "step", "worker", "namespace"; empty if it is about the call itself
	SubjectID string    // the subject's id or name
	Field     string    // the request's field, with KindInvalid and KindTooLarge
	Status    RunStatus // of the run, where that explains the refusal; 0 otherwise

	ContinuedAs ID // the run that the subject continued as, where that explains the refusal

	RetryAfter time.Duration // when to try again; 0: unknown
}

func (e *Error) Error() string { return e.Message }

// Is makes errors.Is(err, ErrNotFound) true for every error of that kind.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Message == "" && t.Kind == e.Kind
}

// Errors of each kind, for errors.Is.
var (
	ErrInvalid      = &Error{Kind: KindInvalid}
	ErrNotFound     = &Error{Kind: KindNotFound}
	ErrExists       = &Error{Kind: KindExists}
	ErrConflict     = &Error{Kind: KindConflict}
	ErrPrecondition = &Error{Kind: KindPrecondition}
	ErrLeaseLost    = &Error{Kind: KindLeaseLost}
	ErrTooLarge     = &Error{Kind: KindTooLarge}
	ErrExhausted    = &Error{Kind: KindExhausted}
	ErrUnavailable  = &Error{Kind: KindUnavailable}
)

// RetryWouldKeep refuses a retry that would keep steps which were probably taken because of the
// failure, such as compensations.
func RetryWouldKeep(run ID, status RunStatus, steps []string) error {
	const most = 10
	names := strings.Join(steps[:min(len(steps), most)], ", ")
	if more := len(steps) - most; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return &Error{Kind: KindPrecondition, Subject: "run", SubjectID: run.String(), Status: status,
		Message: "a retry would keep " + names + ", begun after the run's first failure: if these undid other " +
			"steps, retry from the first that was undone (from_step) or from the start (restart); otherwise keep " +
			"them (keep_all)"}
}

// ErrReadOnly refuses to change a database that was opened with OpenOptions.ReadOnly.
var ErrReadOnly = &Error{Kind: KindPrecondition,
	Message: "the database was opened read-only; to change it, start `kagzi server` on it"}

// KindOf returns the kind of err; KindInternal if err is not an *Error.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return KindInternal
}

// Invalid returns the error for an invalid argument.
func Invalid(field, format string, args ...any) error {
	return &Error{Kind: KindInvalid, Field: field, Message: field + ": " + fmt.Sprintf(format, args...)}
}

// TooLarge returns the error for a size that exceeds its limit; the text should state the limit.
func TooLarge(field, format string, args ...any) error {
	return &Error{Kind: KindTooLarge, Field: field, Message: field + ": " + fmt.Sprintf(format, args...)}
}

// RunNotFound returns the error for a run that does not exist or is in another namespace. The
// caller cannot tell which.
func RunNotFound(id ID) error {
	return &Error{Kind: KindNotFound, Subject: "run", SubjectID: id.String(),
		Message: "no run " + id.String() + " in this namespace"}
}

// ExternalIDNotFound returns the error for an external id that no retained run of the namespace
// has.
func ExternalIDNotFound(externalID string) error {
	return &Error{Kind: KindNotFound, Subject: "run", SubjectID: externalID,
		Message: "no run with external id " + externalID + " in this namespace"}
}

// StartConflict returns the error for a start whose request_id was used before, with other content,
// and started run.
func StartConflict(run ID) error {
	return &Error{Kind: KindConflict, Subject: "run", SubjectID: run.String(),
		Message: "this request was made before with another type, queue, external id or input: it started run " +
			run.String()}
}

// ExternalIDTaken returns the error for a start with ReuseReject if run, with that status, has the
// external id.
func ExternalIDTaken(externalID string, run ID, status RunStatus) error {
	return &Error{Kind: KindExists, Subject: "run", SubjectID: run.String(), Status: status,
		Message: fmt.Sprintf("external id %q is in use by run %s, which is %s", externalID, run, status)}
}

// ExternalIDOfOtherType returns the error for a start if an open run of another type has the external
// id.
func ExternalIDOfOtherType(externalID string, run ID, workflowType string) error {
	return &Error{Kind: KindExists, Subject: "run", SubjectID: run.String(),
		Message: fmt.Sprintf("external id %q is in use by run %s of another type, %s", externalID, run, workflowType)}
}

// PlaceOfAncestor returns the error for a child that needs a place of a concurrency key of which its
// parent, or a parent of that, has one until its end.
func PlaceOfAncestor(child *Run, ancestor ID) error {
	return &Error{Kind: KindPrecondition, Subject: "run", SubjectID: ancestor.String(),
		Message: fmt.Sprintf("run %s has a place of concurrency key %s of type %s until it ends, so a child with this "+
			"key could wait for ever: give the child another key, or abandon it", ancestor, child.ConcurrencyKey, child.Type)}
}

// StepNotFound returns the error for a step that the run has not begun.
func StepNotFound(ref StepRef) error {
	return &Error{Kind: KindNotFound, Subject: "step", SubjectID: ref.String(), Message: "no step " + ref.String()}
}

// WorkerNotFound returns the error for a worker that never registered or is OFFLINE.
func WorkerNotFound(id string) error {
	return &Error{Kind: KindNotFound, Subject: "worker", SubjectID: id,
		Message: "Worker not found or offline; register again"}
}

// WorkerUnknown returns the error for a worker that never registered, for callers that also accept
// an OFFLINE one.
func WorkerUnknown(id string) error {
	return &Error{Kind: KindNotFound, Subject: "worker", SubjectID: id, Message: "no worker " + id}
}

// WorkerTaken returns the error for an instance that registers with the id of another instance, or
// with an id that its key does not allow.
func WorkerTaken(id string) error {
	return &Error{Kind: KindExists, Subject: "worker", SubjectID: id,
		Message: fmt.Sprintf("worker id %q is taken by another worker", id)}
}

// LeaseLost returns the error for a write whose token is not the run's current one.
func LeaseLost(run ID, status RunStatus) error {
	return &Error{Kind: KindLeaseLost, Subject: "run", SubjectID: run.String(), Status: status,
		Message: "the lease of run " + run.String() + " is lost: the run is " + status.String()}
}

// RunEnded returns the error for a change of a run that has ended. It names the run that it
// continued as, if any.
func RunEnded(r *Run) error {
	e := &Error{Kind: KindPrecondition, Subject: "run", SubjectID: r.ID.String(), Status: r.Status,
		ContinuedAs: r.ContinuedAs,
		Message:     "run " + r.ID.String() + " has already ended: it is " + r.Status.String()}
	if !r.ContinuedAs.IsZero() {
		e.Message += " and continued as run " + r.ContinuedAs.String()
	}
	return e
}

// StepConflict returns the error for a second, different result of a step.
func StepConflict(name string, status StepStatus) error {
	return &Error{Kind: KindConflict, Subject: "step", SubjectID: name,
		Message: fmt.Sprintf("step %q is already recorded as %s with other content", name, status)}
}
