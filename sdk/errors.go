package kagzi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Typed is implemented by application errors that have a type, such as "card_declined". Retry
// policies and callers match errors by it. See WithType.
type Typed interface {
	error
	ErrorType() string
}

// ErrCancelled is the cause (context.Cause) of a Context, or a step's context, that ended because
// the run is being cancelled. Calls that the cancellation interrupts or prevents return an error
// for which errors.Is(err, ErrCancelled) is true.
var ErrCancelled = errors.New("kagzi: run cancelled")

// ErrTimeout matches, by errors.Is, the error of a wait whose limit has passed, and of a step or
// run that timed out.
var ErrTimeout = errors.New("kagzi: timed out")

// StepError is the error of a step that failed for good. It contains only what is recorded, so that
// every replay returns the same; it does not wrap the error of the step's code. Tell failures apart
// by Type and Code.
type StepError struct {
	Step         string // name of the step
	Type         string // from WithType or Typed; "panic" for a panic; "" if the error has no type
	Message      string
	Code         ErrorCode // TIMEOUT, CANCELLED, the code of a server refusal, or "" for errors of the step's code
	Attempts     int
	NonRetryable bool
}

func (e *StepError) Error() string {
	if named := "step " + e.Step; !strings.HasPrefix(e.Message, named+" ") {
		return named + ": " + e.Message
	}
	return e.Message
}

// ErrorType returns Type, so that a run whose code returns the error fails with the same type.
func (e *StepError) ErrorType() string { return e.Type }

// Is makes a timeout match ErrTimeout and context.DeadlineExceeded, and a cancelled step match
// ErrCancelled and context.Canceled.
func (e *StepError) Is(target error) bool {
	switch target {
	case context.DeadlineExceeded, ErrTimeout:
		return e.Code == CodeTimeout
	case context.Canceled, ErrCancelled:
		return e.Code == CodeCancelled
	}
	return false
}

func newStepError(step string, d *kagziv1.ErrorDetail, attempts int) *StepError {
	return &StepError{
		Step: step, Type: d.GetType(), Message: d.GetMessage(), Code: errorCode(d.GetCode()),
		Attempts: attempts, NonRetryable: d.GetNonRetryable(),
	}
}

// RunError describes a run that ended without a result. Result and Child.Wait return it;
// RunDetails.Error has it.
type RunError struct {
	RunID   string
	Status  Status // FAILED, CANCELLED, TIMED_OUT or TERMINATED
	Type    string // as in StepError
	Message string
	// Code says what ended the run, such as TIMEOUT; if its function returned a *StepError, it is
	// the code of that; "" for other errors.
	Code  ErrorCode
	Stack string // of a panic

	// These are set in the error of a child run: the step under which the parent started it, its
	// workflow type, and its external id if it has one. They are "" in other errors.
	Step, WorkflowType, ExternalID string

	// WithParent says that this child was cancelled because its parent is being cancelled.
	WithParent bool
}

// Error names a child run by its step, type, external id and run id, and any other run by its id.
func (e *RunError) Error() string {
	text := "run " + e.RunID
	if e.Step != "" {
		external := ""
		if e.ExternalID != "" {
			external = "external id " + e.ExternalID + ", "
		}
		text = fmt.Sprintf("child %s of type %s (%srun %s)", e.Step, e.WorkflowType, external, e.RunID)
	}
	text += " " + strings.ToLower(strings.ReplaceAll(string(e.Status), "_", " "))
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// ErrorType returns Type, so that a parent whose code returns the error fails with the same type.
func (e *RunError) ErrorType() string { return e.Type }

// Is makes a run that timed out, or failed because a step did, match ErrTimeout. A cancelled child
// does not match ErrCancelled, which is about the calling run, unless it was cancelled together with
// that run; nor does it match context.Canceled, which is about the caller's context: use Status.
func (e *RunError) Is(target error) bool {
	return target == ErrTimeout && e.Code == CodeTimeout || target == ErrCancelled && e.WithParent
}

// Error is a refusal by the server, or a failure to reach it. Client calls return it.
type Error struct {
	Code      ErrorCode
	Message   string
	Subject   string // "run", "worker", "namespace", ...
	SubjectID string
	// Metadata has further facts, such as "status" (of the run, if that is the reason) and
	// "continued_as_run_id" (the next run of one that continued as new).
	Metadata map[string]string
	status   *status.Status
}

func (e *Error) Error() string {
	if e.Code == "" {
		return "kagzi: " + e.Message
	}
	return fmt.Sprintf("kagzi: %s: %s", e.Code, e.Message)
}

// GRPCStatus returns the gRPC status, for status.Code and status.Convert.
func (e *Error) GRPCStatus() *status.Status { return e.status }

// callError converts the error of a gRPC call. If the caller's context ended, it returns its cause. It
// keeps errors of interceptors.
func callError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if _, done := errors.AsType[*Error](err); done {
		return err
	}
	if st, ok := status.FromError(err); ok {
		return statusError(st)
	}
	return err
}

// statusError converts a gRPC status.
func statusError(st *status.Status) *Error {
	e := &Error{Code: codeOfStatus(st.Code()), Message: convert.PlainMessage(st), status: st}
	for _, d := range st.Details() {
		if detail, ok := d.(*kagziv1.ErrorDetail); ok {
			e.Code, e.Message = errorCode(detail.GetCode()), detail.GetMessage()
			e.Subject, e.SubjectID, e.Metadata = detail.GetSubject(), detail.GetSubjectId(), detail.GetMetadata()
		}
	}
	return e
}

// detailError converts an error that an answer carries in its body.
func detailError(d *kagziv1.ErrorDetail) *Error {
	return &Error{Code: errorCode(d.GetCode()), Message: d.GetMessage(), Subject: d.GetSubject(),
		SubjectID: d.GetSubjectId(),
		Metadata:  d.GetMetadata(), status: status.New(convert.StatusOfCode(d.GetCode()), d.GetMessage())}
}

type nonRetryable struct{ error }

func (e nonRetryable) Unwrap() error { return e.error }

// NonRetryable marks an error as final: the step, or the run, fails without another attempt.
// NonRetryable(nil) is nil.
func NonRetryable(err error) error {
	if err == nil {
		return nil
	}
	return nonRetryable{err}
}

type retryAfter struct {
	error
	delay time.Duration
}

func (e retryAfter) Unwrap() error { return e.error }

// RetryAfter sets the delay before the next attempt to d, in whole milliseconds, instead of the
// policy's. It does not allow more attempts than the policy. RetryAfter(nil, d) is nil.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return retryAfter{err, d}
}

type withType struct {
	error
	name string
}

func (e withType) Unwrap() error     { return e.error }
func (e withType) ErrorType() string { return e.name }

// WithType gives an error a type, which Retry.NonRetryable matches and StepError.Type shows.
// WithType(nil, name) is nil.
func WithType(err error, name string) error {
	if err == nil {
		return nil
	}
	return withType{err, name}
}

// ErrorCode classifies an error; "" is an error of the application's own code.
type ErrorCode string

// Codes of the server.
const (
	CodeNotFound        ErrorCode = "NOT_FOUND"
	CodeInvalidArgument ErrorCode = "INVALID_ARGUMENT"
	// the run or schedule is not in a state that allows the call
	CodePreconditionFailed ErrorCode = "PRECONDITION_FAILED"
	// an id or name is taken, or a RequestID was used with other content
	CodeConflict     ErrorCode = "CONFLICT"
	CodeUnauthorized ErrorCode = "UNAUTHORIZED" // the API key is missing, invalid or lacks the permission
	// the server cannot be reached or cannot serve the call now
	CodeUnavailable       ErrorCode = "UNAVAILABLE"
	CodeInternal          ErrorCode = "INTERNAL"
	CodeTimeout           ErrorCode = "TIMEOUT"
	CodeCancelled         ErrorCode = "CANCELLED"
	CodeResourceExhausted ErrorCode = "RESOURCE_EXHAUSTED" // a limit is exceeded
	CodeLeaseLost         ErrorCode = "LEASE_LOST"         // the worker no longer holds the run
	// the worker died or stopped answering while it held the run
	CodeCrashed ErrorCode = "CRASHED"
)

func errorCode(c kagziv1.ErrorCode) ErrorCode {
	if c == kagziv1.ErrorCode_ERROR_CODE_UNSPECIFIED {
		return ""
	}
	return ErrorCode(strings.TrimPrefix(c.String(), "ERROR_CODE_"))
}

func (c ErrorCode) wire() kagziv1.ErrorCode {
	return kagziv1.ErrorCode(kagziv1.ErrorCode_value["ERROR_CODE_"+string(c)])
}

func codeOfStatus(c codes.Code) ErrorCode {
	switch c {
	case codes.NotFound:
		return CodeNotFound
	case codes.InvalidArgument, codes.OutOfRange:
		return CodeInvalidArgument
	case codes.FailedPrecondition:
		return CodePreconditionFailed
	case codes.AlreadyExists:
		return CodeConflict
	case codes.Unauthenticated, codes.PermissionDenied:
		return CodeUnauthorized
	case codes.Unavailable:
		return CodeUnavailable
	case codes.DeadlineExceeded:
		return CodeTimeout
	case codes.Canceled:
		return CodeCancelled
	case codes.ResourceExhausted:
		return CodeResourceExhausted
	}
	return CodeInternal
}
