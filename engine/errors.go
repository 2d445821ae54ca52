package engine

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind is what a caller can do about an error. The server (gRPC) has one table from Kind to status code.
type Kind uint8

const (
	KindInternal     Kind = iota // a defect: nothing the caller can mend
	KindInvalid                  // the argument named by Field is wrong
	KindNotFound                 // there is no such thing in this namespace
	KindExists                   // the name is taken
	KindConflict                 // an earlier call with the same key had other content
	KindPrecondition             // it is not in a state for that; Status says where a run stands
	KindLeaseLost                // the token is not the run's current one; Status says where the run stands
	KindTooLarge                 // a size or a count passes its limit
	KindExhausted                // no room on the disk; passes when there is room again
	KindUnsupported              // the contract has it, this server does not yet
	KindUnavailable              // the database does not answer; the call may or may not have counted: repeat it
	KindNoKey                    // the call needs a valid API key, and has none
	KindDenied                   // the caller's key does not allow it
)

// Error is what every method of Store returns when it refuses. Message is for people and holds no
// SQL, no path and no secret.
type Error struct {
	Kind      Kind
	Message   string
	Subject   string    // "run", "step", "worker", "namespace"; empty when it is about the call itself
	SubjectID string    // the subject's id or name
	Field     string    // the request's field, with KindInvalid and KindTooLarge
	Status    RunStatus // of the run, where that explains the refusal; 0 otherwise

	ContinuedAs ID // the run that one which has ended continued as, where that explains the refusal

	RetryAfter time.Duration // when it is worth another try; 0: nobody knows
}

func (e *Error) Error() string { return e.Message }

// Is makes errors.Is(err, ErrNotFound) true for every error of that kind.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Message == "" && t.Kind == e.Kind
}

// What callers may act on, for errors.Is.
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
		Message: "a retry would keep steps that were begun after the run's first failure: " + names +
			"; if they undid others, retry from the first step that was undone (from_step) or from the start (restart); " +
			"otherwise keep them (keep_all)"}
}

// ErrReadOnly refuses to change a database that was opened with OpenOptions.ReadOnly.
var ErrReadOnly = &Error{Kind: KindPrecondition,
	Message: "the database was opened for looking only; to change it start `kagzi server` on it"}

// KindOf is the kind of err, KindInternal when it is not one of ours.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return KindInternal
}

// Invalid refuses an argument.
func Invalid(field, format string, args ...any) error {
	return &Error{Kind: KindInvalid, Field: field, Message: field + ": " + fmt.Sprintf(format, args...)}
}

// TooLarge refuses a size; limit says what would have been accepted.
func TooLarge(field, format string, args ...any) error {
	return &Error{Kind: KindTooLarge, Field: field, Message: field + ": " + fmt.Sprintf(format, args...)}
}

// RunNotFound is the answer for a run that is not there, or not in this namespace: the two cannot be told apart.
func RunNotFound(id ID) error {
	return &Error{Kind: KindNotFound, Subject: "run", SubjectID: id.String(),
		Message: "no run " + id.String() + " in this namespace"}
}

// ExternalIDNotFound is the answer when no run of the namespace has, or had, the external id.
func ExternalIDNotFound(externalID string) error {
	return &Error{Kind: KindNotFound, Subject: "run", SubjectID: externalID,
		Message: "no run with external id " + externalID + " in this namespace"}
}

// StartConflict is the answer to a start with the request_id of one that asked for something else, and has started run.
func StartConflict(run ID) error {
	return &Error{Kind: KindConflict, Subject: "run", SubjectID: run.String(),
		Message: "this request was made before with another type, queue, external id or input: it started run " +
			run.String()}
}

// ExternalIDTaken is the answer to a start with the external id of run, which stands at status,
// when that is to be refused.
func ExternalIDTaken(externalID string, run ID, status RunStatus) error {
	return &Error{Kind: KindExists, Subject: "run", SubjectID: run.String(), Status: status,
		Message: fmt.Sprintf("external id %q is in use by run %s, which is %s", externalID, run, status)}
}

// StepNotFound is the answer for a step that the run has not begun.
func StepNotFound(ref StepRef) error {
	return &Error{Kind: KindNotFound, Subject: "step", SubjectID: ref.String(), Message: "no step " + ref.String()}
}

// WorkerNotFound is the answer for a worker that never registered or is OFFLINE.
func WorkerNotFound(id string) error {
	return &Error{Kind: KindNotFound, Subject: "worker", SubjectID: id,
		Message: "Worker not found or offline; register again"}
}

// WorkerUnknown is the answer for a worker that never registered, to those for whom one that is OFFLINE is good enough.
func WorkerUnknown(id string) error {
	return &Error{Kind: KindNotFound, Subject: "worker", SubjectID: id, Message: "no worker " + id}
}

// WorkerTaken is the answer to an instance that registers by the id of another one, or of one that
// its key does not let it be.
func WorkerTaken(id string) error {
	return &Error{Kind: KindExists, Subject: "worker", SubjectID: id,
		Message: fmt.Sprintf("worker id %q is taken by another worker", id)}
}

// LeaseLost is the answer to a write whose token is not the run's current one.
func LeaseLost(run ID, status RunStatus) error {
	return &Error{Kind: KindLeaseLost, Subject: "run", SubjectID: run.String(), Status: status,
		Message: "the lease of run " + run.String() + " is lost: the run is " + status.String()}
}

// RunEnded is the answer to a change of a run that has ended otherwise. It tells which run one that
// continued as new continued as.
func RunEnded(r *Run) error {
	e := &Error{Kind: KindPrecondition, Subject: "run", SubjectID: r.ID.String(), Status: r.Status,
		ContinuedAs: r.ContinuedAs,
		Message:     "run " + r.ID.String() + " has already ended: it is " + r.Status.String()}
	if !r.ContinuedAs.IsZero() {
		e.Message += " and continued as run " + r.ContinuedAs.String()
	}
	return e
}

// StepConflict is the answer to a second, different result for a step.
func StepConflict(name string, status StepStatus) error {
	return &Error{Kind: KindConflict, Subject: "step", SubjectID: name,
		Message: fmt.Sprintf("step %q is already recorded as %s with other content", name, status)}
}
