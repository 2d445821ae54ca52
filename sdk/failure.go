package kagzi

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
	"google.golang.org/protobuf/encoding/protojson"
)

// How an error, or a panic, becomes what is recorded.

// coded is an error of the SDK's own making.
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

// panicText prints what the code panicked with. Package fmt bears a method of it that panics, but
// not one whose panic cannot be printed either: that one would end the whole process, and with it
// every other run of the worker.
func panicText(value any) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("panic: a %T, whose methods panic", value)
		}
	}()
	return fmt.Sprintf("panic: %v", value)
}

// panicStack begins a stack where the code panicked, without the frames of what recovered from it.
func panicStack(stack string) string {
	title, frames, _ := strings.Cut(stack, "\n")
	if _, panicking, found := strings.Cut(frames, "\npanic("); found {
		if lines := strings.SplitN(panicking, "\n", 3); len(lines) == 3 {
			return title + "\n" + lines[2]
		}
	}
	return stack
}

// panicked is the error of a step's or a workflow's code that panics, which the log tells of at
// once: it is most likely a mistake in the code, and else only whoever looks at the run would see
// it. The stack is recorded with the run.
func (w *Worker) panicked(value any, where ...any) *coded {
	err := panicError(value)
	w.log.Error("panic of the code", append(where, "error", convert.CleanText(err.text, convert.MaxErrorText))...)
	return err
}

// panicked is that of the run's workflow code. Replays report theirs themselves.
func (e *execution) panicked(value any) *coded {
	if e.replay != nil {
		return panicError(value)
	}
	return e.w.panicked(value, "run", e.info.RunID, "type", e.info.WorkflowType)
}

// errorDetail is the form in which an error is recorded.
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
			// only the server says that a worker was lost
			d.Code = step.Code.wire()
		}
	}
	if errors.Is(err, ErrCancelled) {
		d.Code, d.NonRetryable = kagziv1.ErrorCode_ERROR_CODE_CANCELLED, true
	}
	return d
}

// askError calls the methods of an error of the author's, whose panic is one of the code as long as
// that is on the stack: those of a nil pointer in an error mostly do.
func askError(err error) {
	if err != nil {
		errorDetail(err)
	}
}

// GlobalFailureHandler is the workflow type that the server starts for every run of the namespace
// that fails or times out, when a worker serves it or the namespace names a queue for it. Handlers
// themselves have no handler.
const GlobalFailureHandler = "__kagzi_failure_handler"

// WorkflowFailedEvent is the input of a failure handler: of a workflow that StartOptions.OnFailure
// names, and of GlobalFailureHandler. On the wire it is the JSON of the message of the same name.
type WorkflowFailedEvent struct {
	FailedRunID  string
	Namespace    string
	WorkflowType string
	Queue        string
	ExternalID   string    // "" when the run was started without one
	Status       Status    // FAILED or TIMED_OUT
	Error        *RunError // why
	Attempts     int
	StartedAt    time.Time // zero when the run never started
	FailedAt     time.Time
	// Input is the failed run's input as it was stored: see OriginalInput. InputOmitted says that
	// it was too large for the event; Client.Get has it.
	Input        Payload
	InputOmitted bool
}

// ErrInputOmitted is what OriginalInput returns when the event does not hold the failed run's input.
var ErrInputOmitted = errors.New("kagzi: the failed run's input was too large for the event: read it from the run")

// OriginalInput reads the input of the run that failed. It is ErrInputOmitted, in the sense of
// errors.Is, when the event does not hold it.
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

// inputCodec is the codec of the run's input, nil where the server made it: the event that a
// failure handler is started with.
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

// MarshalJSON writes the event in the names of the wire.
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

// UnmarshalJSON reads the event in the names of the wire. Fields of later versions are left out.
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

// Retry says how often and when failed code runs again. As an option of a step it is the step's policy; in
// StartOptions it is the policy of the run's steps and of the run itself. A zero field means the default
// in brackets. Only failures of the code count: sleeps, drained and lost workers cost nothing.
//
// After the n-th failure the delay is Initial * Coefficient^(n-1), at most Max, plus a random part
// of up to Jitter of it.
type Retry struct {
	Attempts    int           // the first one included; -1 without end, 1 no retry (3)
	Initial     time.Duration // (1 s)
	Max         time.Duration // (60 s)
	Coefficient float64       // at least 1 (2)
	Jitter      float64       // 0 to 1; negative means none (0.1)
	// NonRetryable names errors that are final: those whose type equals an entry, or whose message
	// starts with one. It has at most 64 entries of up to 255 bytes.
	NonRetryable []string
}

func (r Retry) applyStep(o *stepOptions) {
	o.retry = r.policy()
	if err := r.check(); err != nil {
		o.wrong = err
	}
}

const (
	maxAttempts     = 10_000
	maxDelay        = 10 * 365 * 24 * time.Hour
	maxNonRetryable = 64
)

// check names what a server would refuse: of a step it would do so only once the step has failed.
func (r Retry) check() error {
	switch {
	case r.Attempts < -1 || r.Attempts > maxAttempts:
		return fmt.Errorf("option Retry.Attempts is %d, want 1 to %d, or -1 for no end", r.Attempts, maxAttempts)
	case r.Initial < 0 || r.Initial > maxDelay:
		return fmt.Errorf("option Retry.Initial is %v, want 0 to 10 years", r.Initial)
	case r.Max < 0 || r.Max > maxDelay:
		return fmt.Errorf("option Retry.Max is %v, want 0 to 10 years", r.Max)
	case r.Coefficient != 0 && !(r.Coefficient >= 1 && r.Coefficient <= 1e9):
		return fmt.Errorf("option Retry.Coefficient is %v, want 1 to 1e9", r.Coefficient)
	case !(r.Jitter <= 1):
		return fmt.Errorf("option Retry.Jitter is %v, want 0 to 1, or less than 0 for none", r.Jitter)
	case len(r.NonRetryable) > maxNonRetryable:
		return fmt.Errorf("option Retry.NonRetryable has %d entries, want at most %d", len(r.NonRetryable),
			maxNonRetryable)
	}
	for i, entry := range r.NonRetryable {
		if len(entry) > convert.MaxErrorType || !utf8.ValidString(entry) || strings.ContainsRune(entry, 0) {
			return fmt.Errorf("option Retry.NonRetryable[%d] is %.300q, want UTF-8 without NUL of at most %d bytes", i,
				entry, convert.MaxErrorType)
		}
	}
	return nil
}

func (r Retry) policy() *kagziv1.RetryPolicy {
	return &kagziv1.RetryPolicy{
		MaximumAttempts:    convert.Narrow(r.Attempts),
		InitialIntervalMs:  convert.WholeMs(r.Initial),
		BackoffCoefficient: r.Coefficient,
		MaximumIntervalMs:  convert.WholeMs(r.Max),
		NonRetryableErrors: slices.Clone(r.NonRetryable),
		Jitter:             max(r.Jitter, -1),
	}
}
