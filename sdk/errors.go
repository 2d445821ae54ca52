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

// Typed is what an error of the application implements to have a type of its own, which retry policies
// and readers can match: "card_declined".
type Typed interface {
	error
	ErrorType() string
}

// ErrCancelled is the cause (context.Cause) of a Context, and of a step's context, that ended
// because the run is being cancelled. Calls that are cut short by it, or made after it, return an
// error for which errors.Is(err, ErrCancelled) holds.
var ErrCancelled = errors.New("kagzi: run cancelled")

// ErrTimeout is what the error of a wait whose limit has passed, and of a step or a run that timed
// out, is in the sense of errors.Is.
var ErrTimeout = errors.New("kagzi: timed out")

// StepError is what workflow code gets from a step that failed for good. It holds what is recorded, and
// nothing else, so that the code sees the same in every replay: the error that the step's code returned is
// not wrapped in it. Tell failures apart by Type.
type StepError struct {
	Step         string // name
	Type         string // from WithType or Typed; "panic" for a panic; "" when the error has none
	Message      string
	Code         ErrorCode // TIMEOUT, CANCELLED, a server's refusal, or "" for the code's own errors
	Attempts     int
	NonRetryable bool
}

func (e *StepError) Error() string {
	if named := "step " + e.Step; !strings.HasPrefix(e.Message, named+" ") {
		return named + ": " + e.Message
	}
	return e.Message
}

// ErrorType makes the run fail with the step's error type when the code returns the error as it is.
func (e *StepError) ErrorType() string { return e.Type }

// Is makes a step that timed out match ErrTimeout and context.DeadlineExceeded, and a cancelled one
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

// RunError is how a run ended that has no result: what Result returns for one, and Child.Wait for a child.
type RunError struct {
	RunID   string
	Status  Status // FAILED, CANCELLED, TIMED_OUT or TERMINATED
	Type    string // as StepError.Type
	Message string
	// of the step whose error the code returned, or of what else ended the run; "" for the code's own errors
	Code  ErrorCode
	Stack string // of a panic
}

func (e *RunError) Error() string {
	text := fmt.Sprintf("run %s %s", e.RunID, strings.ToLower(strings.ReplaceAll(string(e.Status), "_", " ")))
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// ErrorType makes a run fail with its child's error type when the code returns the error as it is.
func (e *RunError) ErrorType() string { return e.Type }

// Is makes a run that timed out, or failed by a step that did, match ErrTimeout. One that was
// cancelled does not match ErrCancelled, which speaks of the run whose code is running, nor does
// one match the errors of package context, which speak of the caller's own: see Status.
func (e *RunError) Is(target error) bool { return target == ErrTimeout && e.Code == CodeTimeout }

// Error is a refusal by the server, or a failure to reach it.
type Error struct {
	Code      ErrorCode
	Message   string
	Subject   string // what it is about: "run", "worker", "namespace", ..
	SubjectID string
	// "status": where the run stands, when that is why; "continued_as_run_id": the run that goes on for it
	Metadata map[string]string
	status   *status.Status
}

func (e *Error) Error() string {
	if e.Code == "" {
		return "kagzi: " + e.Message
	}
	return fmt.Sprintf("kagzi: %s: %s", e.Code, e.Message)
}

// GRPCStatus lets status.Code and status.Convert see the gRPC status behind the error.
func (e *Error) GRPCStatus() *status.Status { return e.status }

// callError translates the error of a gRPC call. The end of the caller's context stays what it is.
func callError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return statusError(status.Convert(err))
}

// statusError is a server's refusal.
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

// detailError is the error of an answer that carries one in its body.
func detailError(d *kagziv1.ErrorDetail) *Error {
	return &Error{Code: errorCode(d.GetCode()), Message: d.GetMessage(), Subject: d.GetSubject(),
		SubjectID: d.GetSubjectId(),
		Metadata:  d.GetMetadata(), status: status.New(convert.StatusOfCode(d.GetCode()), d.GetMessage())}
}

type nonRetryable struct{ error }

func (e nonRetryable) Unwrap() error { return e.error }

// NonRetryable marks an error as one that another attempt would only meet again: the step, or the run,
// fails for good at once. NonRetryable(nil) is nil.
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

// RetryAfter asks for the next attempt after d, in whole milliseconds and in place of the policy's delay.
// It grants no attempt that the policy does not. RetryAfter(nil, d) is nil.
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

// WithType gives an error a type, which Retry.NonRetryable and StepError.Type know it by.
// WithType(nil, name) is nil.
func WithType(err error, name string) error {
	if err == nil {
		return nil
	}
	return withType{err, name}
}

// ErrorCode says what sort of failure an error is; "" is a failure of the application's own code.
type ErrorCode string

// The codes that a server gives.
const (
	CodeNotFound           ErrorCode = "NOT_FOUND"
	CodeInvalidArgument    ErrorCode = "INVALID_ARGUMENT"
	CodePreconditionFailed ErrorCode = "PRECONDITION_FAILED"
	CodeConflict           ErrorCode = "CONFLICT"
	CodeUnauthorized       ErrorCode = "UNAUTHORIZED"
	CodeUnavailable        ErrorCode = "UNAVAILABLE"
	CodeInternal           ErrorCode = "INTERNAL"
	CodeTimeout            ErrorCode = "TIMEOUT"
	CodeCancelled          ErrorCode = "CANCELLED"
	CodeResourceExhausted  ErrorCode = "RESOURCE_EXHAUSTED"
	CodeLeaseLost          ErrorCode = "LEASE_LOST"
	CodeCrashed            ErrorCode = "CRASHED"
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
