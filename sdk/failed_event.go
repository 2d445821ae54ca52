package kagzi

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// GlobalFailureHandler is the workflow type that the server starts for every run of the namespace that fails or times out, when a worker
// serves it or the namespace names a queue for it. Handlers themselves have no handler.
const GlobalFailureHandler = "__kagzi_failure_handler"

// WorkflowFailedEvent is the input of a failure handler: of a workflow that StartOptions.OnFailure names, and of GlobalFailureHandler. On
// the wire it is the JSON of the message of the same name.
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
	// Input is the failed run's input as it was stored: see OriginalInput. InputOmitted says that it was too large for the
	// event; Client.Get has it.
	Input        Payload
	InputOmitted bool
}

// ErrInputOmitted is what OriginalInput returns when the event does not hold the failed run's input.
var ErrInputOmitted = errors.New("kagzi: the failed run's input was too large for the event: read it from the run")

// OriginalInput reads the input of the run that failed. It is ErrInputOmitted, in the sense of errors.Is, when the event does not hold it.
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

// inputCodec is the codec of the run's input, nil where the server made it: the event that a failure handler is started with.
func (e *execution) inputCodec() Codec {
	var made struct {
		Event string `json:"event"`
	}
	if e.info.FailedRunID != "" && json.Unmarshal(e.task.GetInput().GetData(), &made) == nil && made.Event == failedEventName {
		return nil
	}
	return e.w.options.Codec
}

// MarshalJSON writes the event in the names of the wire.
func (e WorkflowFailedEvent) MarshalJSON() ([]byte, error) {
	m := &kagziv1.WorkflowFailedEvent{
		Event: failedEventName, FailedRunId: e.FailedRunID, NamespaceId: e.Namespace, WorkflowType: e.WorkflowType, TaskQueue: e.Queue,
		ExternalId: e.ExternalID, Status: string(e.Status), Attempts: int32(e.Attempts), StartedAt: timestamp(e.StartedAt), FailedAt: timestamp(e.FailedAt),
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
		FailedRunID: m.GetFailedRunId(), Namespace: m.GetNamespaceId(), WorkflowType: m.GetWorkflowType(), Queue: m.GetTaskQueue(),
		ExternalID: m.GetExternalId(), Status: Status(m.GetStatus()), Attempts: int(m.GetAttempts()),
		StartedAt: when(m.GetStartedAt()), FailedAt: when(m.GetFailedAt()), InputOmitted: m.GetOriginalInputOmitted(),
		Input: Payload{Data: m.GetOriginalInput(), Metadata: m.GetOriginalInputMetadata()},
		Error: &RunError{RunID: m.GetFailedRunId(), Status: Status(m.GetStatus()), Type: d.GetType(), Message: d.GetMessage(),
			Code: errorCode(d.GetCode()), Stack: d.GetStack()},
	}
	return nil
}
