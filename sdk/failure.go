package kagzi

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
	"google.golang.org/protobuf/encoding/protojson"
)

// This file converts errors and panics to what is recorded.

// coded is an error made by the SDK.
type coded struct {
	code  kagziv1.ErrorCode
	kind  string
	text  string
	stack string
}

func (e *coded) Error() string     { return e.text }
func (e *coded) ErrorType() string { return e.kind }

func panicError(value any) *coded {
	return &coded{kind: "panic", text: panicText(value), stack: panicStack(string(debug.Stack()))}
}

// panicText formats the value of a panic. Package fmt survives a method that panics, but not one
// whose panic value panics when printed: that would end the process and every run on it.
func panicText(value any) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("panic: a %T, whose methods panic", value)
		}
	}()
	return fmt.Sprintf("panic: %v", value)
}

// panicStack starts the stack at the code that panicked, without the frames that recovered.
func panicStack(stack string) string {
	title, frames, _ := strings.Cut(stack, "\n")
	if _, panicking, found := strings.Cut(frames, "\npanic("); found {
		if lines := strings.SplitN(panicking, "\n", 3); len(lines) == 3 {
			return title + "\n" + lines[2]
		}
	}
	return stack
}

// panicked returns the error of a panic in a step or workflow, and logs it at once: it is most
// likely a bug that nobody would see otherwise. The stack is recorded with the run.
func (w *Worker) panicked(value any, where ...any) *coded {
	err := panicError(value)
	w.log.Error("panic in workflow or step code",
		append(where, "error", convert.CleanText(err.text, convert.MaxErrorText))...)
	return err
}

// panicked is Worker.panicked for workflow code. Replays report panics themselves.
func (e *execution) panicked(value any) *coded {
	if e.replay != nil {
		return panicError(value)
	}
	return e.w.panicked(value, "run", e.info.RunID, "type", e.info.WorkflowType)
}

// errorDetail converts an error to the form in which it is recorded.
func errorDetail(err error) *kagziv1.ErrorDetail {
	d := &kagziv1.ErrorDetail{Message: convert.CleanText(err.Error(), convert.MaxErrorText)}
	var (
		final nonRetryable
		after retryAfter
		typed Typed
		own   *coded
		step  *StepError
		next  *continuation
	)
	if errors.As(err, &final) || errors.As(err, &next) {
		d.NonRetryable = true
	}
	if errors.As(err, &after) && after.delay > 0 {
		d.RetryAfterMs = max(1, after.delay.Milliseconds())
	}
	if errors.As(err, &typed) {
		d.Type = convert.CleanText(typed.ErrorType(), convert.MaxErrorType)
	}
	if errors.As(err, &own) {
		d.Code, d.Stack = own.code, convert.CleanText(own.stack, convert.MaxErrorText)
	}
	if errors.As(err, &step) {
		d.NonRetryable = d.NonRetryable || step.NonRetryable
		if d.Code == kagziv1.ErrorCode_ERROR_CODE_UNSPECIFIED && step.Code != CodeCrashed {
			// only the server reports lost workers
			d.Code = step.Code.wire()
		}
	}
	if errors.Is(err, ErrCancelled) {
		d.Code, d.NonRetryable = kagziv1.ErrorCode_ERROR_CODE_CANCELLED, true
	}
	return d
}

// askError calls the methods of a user's error while its code is still on the stack, so that a
// panic in them counts as a panic of that code. Methods on a nil pointer often panic.
func askError(err error) {
	if err != nil {
		errorDetail(err)
	}
}

// GlobalFailureHandler is the workflow type that the server starts for every run of the namespace
// that fails or times out, if a worker serves it or the namespace names a queue for it. Failures of
// handlers start no handler.
const GlobalFailureHandler = "__kagzi_failure_handler"

// WorkflowFailedEvent is the input of a failure handler: the workflow of StartOptions.OnFailure, or
// of GlobalFailureHandler. Its JSON form is the protobuf message of the same name.
type WorkflowFailedEvent struct {
	FailedRunID  string
	Namespace    string
	WorkflowType string
	Queue        string
	ExternalID   string    // "" if the run has none
	Status       Status    // FAILED or TIMED_OUT
	Error        *RunError // reason of the failure
	Attempts     int
	StartedAt    time.Time // zero if the run never started
	FailedAt     time.Time
	// Input is the stored input of the failed run; decode it with OriginalInput. InputOmitted means
	// that it was too large for the event: Client.Get returns it.
	Input        Payload
	InputOmitted bool
}

// ErrInputOmitted is returned by OriginalInput when the event does not contain the input.
var ErrInputOmitted = errors.New("kagzi: the failed run's input was too large for the event: read it from the run")

// OriginalInput decodes the input of the failed run. If the event does not contain it,
// errors.Is(err, ErrInputOmitted) is true.
func OriginalInput[In any](ctx Context, event WorkflowFailedEvent) (In, error) {
	var none In
	if event.InputOmitted {
		return none, fmt.Errorf("run %s: %w", event.FailedRunID, ErrInputOmitted)
	}
	p := &kagziv1.Payload{Data: event.Input.Data, Metadata: event.Input.Metadata}
	in, err := decode[In](ctx.workflow().e.w.options.Codec, p, inputInfo(event.WorkflowType, event.ExternalID))
	if err != nil {
		return none, fmt.Errorf("input of run %s: %w", event.FailedRunID, err)
	}
	return *in, nil
}

const failedEventName = "kagzi/workflow.failed"

// inputCodec returns the codec of the run's input, nil for the input of a failure handler, which
// the server makes.
func (e *execution) inputCodec() Codec {
	var made struct {
		Event string `json:"event"`
	}
	if e.info.FailedRunID != "" && json.Unmarshal(e.task.GetInput().GetData(), &made) == nil &&
		made.Event == failedEventName {
		return nil
	}
	return e.w.options.Codec
}

// MarshalJSON encodes the event with the field names of the wire.
func (e WorkflowFailedEvent) MarshalJSON() ([]byte, error) {
	m := &kagziv1.WorkflowFailedEvent{
		Event: failedEventName, FailedRunId: e.FailedRunID, NamespaceId: e.Namespace, WorkflowType: e.WorkflowType,
		TaskQueue:  e.Queue,
		ExternalId: e.ExternalID, Status: string(e.Status), Attempts: int32(e.Attempts),
		StartedAt: convert.Timestamp(e.StartedAt), FailedAt: convert.Timestamp(e.FailedAt),
		OriginalInput: e.Input.Data, OriginalInputMetadata: e.Input.Metadata, OriginalInputOmitted: e.InputOmitted,
	}
	if f := e.Error; f != nil {
		m.Error = &kagziv1.ErrorDetail{Code: f.Code.wire(), Message: f.Message, Type: f.Type, Stack: f.Stack}
	}
	return protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
}

// UnmarshalJSON decodes the event with the field names of the wire and ignores unknown fields.
func (e *WorkflowFailedEvent) UnmarshalJSON(data []byte) error {
	var m kagziv1.WorkflowFailedEvent
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, &m); err != nil {
		return fmt.Errorf("failure event: %w", err)
	}
	d := m.GetError()
	*e = WorkflowFailedEvent{
		FailedRunID: m.GetFailedRunId(), Namespace: m.GetNamespaceId(), WorkflowType: m.GetWorkflowType(),
		Queue:      m.GetTaskQueue(),
		ExternalID: m.GetExternalId(), Status: Status(m.GetStatus()), Attempts: int(m.GetAttempts()),
		StartedAt: convert.When(m.GetStartedAt()), FailedAt: convert.When(m.GetFailedAt()),
		InputOmitted: m.GetOriginalInputOmitted(),
		Input:        Payload{Data: m.GetOriginalInput(), Metadata: m.GetOriginalInputMetadata()},
		Error: &RunError{RunID: m.GetFailedRunId(), Status: Status(m.GetStatus()), Type: d.GetType(),
			Message: d.GetMessage(),
			Code:    errorCode(d.GetCode()), Stack: d.GetStack()},
	}
	return nil
}
