package engine

import (
	"encoding/json"
	"strings"
	"time"
)

// GlobalHandler is the workflow type that handles every failure of a namespace.
const GlobalHandler = "__kagzi_failure_handler"

// failedEvent is the input of a failure handler: WorkflowFailedEvent of the wire, as JSON.
type failedEvent struct {
	Event         string            `json:"event"`
	FailedRunID   string            `json:"failed_run_id"`
	Namespace     string            `json:"namespace_id"`
	Type          string            `json:"workflow_type"`
	Queue         string            `json:"task_queue"`
	ExternalID    string            `json:"external_id,omitempty"`
	Status        string            `json:"status"`
	Error         failedError       `json:"error"`
	Input         []byte            `json:"original_input,omitempty"`
	InputMetadata map[string]string `json:"original_input_metadata,omitempty"`
	InputOmitted  bool              `json:"original_input_omitted,omitempty"`
	Attempts      int               `json:"attempts"`
	StartedAt     string            `json:"started_at,omitempty"`
	FailedAt      string            `json:"failed_at"`
}

// failedError is ErrorDetail of the wire, which has names of its own for some fields.
type failedError struct {
	Code         string            `json:"code"`
	Message      string            `json:"message"`
	NonRetryable bool              `json:"non_retryable,omitempty"`
	RetryAfterMS int64             `json:"retry_after_ms,omitempty,string"` // as the wire's JSON writes numbers of 64 bits
	Subject      string            `json:"subject,omitempty"`
	SubjectID    string            `json:"subject_id,omitempty"`
	Metadata     map[string]string `json:"metadata,omitempty"`
	Type         string            `json:"type,omitempty"`
	Stack        string            `json:"stack,omitempty"`
}

// HandlerOf is the run that handles the failure of run: of the type and in the queue named, with run's input. global says which
// of the two handlers it is; each exists at most once for a failed run.
func HandlerOf(run *Run, workflowType, queue string, global bool, now time.Time) StartRun {
	prefix := "failure-"
	if global {
		prefix = "system-failure-"
	}
	event := failedEventOf(run)
	return StartRun{Run: Run{
		ID: DerivedID(now, run.ID, prefix), Namespace: run.Namespace, ExternalID: prefix + run.ID.String(), Queue: queue, Type: workflowType,
		Status: RunPending, Attempts: 1, Input: event, Bytes: int64(event.Size()), CreatedAt: now, AvailableAt: now,
		Traceparent: run.Traceparent, Origin: OriginHandler, FailedRunID: run.ID,
	}}
}

// IsHandler says that the run handles a failure, so that its own has no handler.
func (r *Run) IsHandler() bool { return !r.FailedRunID.IsZero() }

func failedEventOf(run *Run) Payload {
	e := failedEvent{
		Event: "kagzi/workflow.failed", FailedRunID: run.ID.String(), Namespace: run.Namespace, Type: run.Type, Queue: run.Queue,
		ExternalID: run.ExternalID, Status: run.Status.String(), Input: run.Input.Data, InputMetadata: run.Input.Metadata,
		Attempts: run.Attempts, FailedAt: run.FinishedAt.UTC().Format(time.RFC3339Nano),
	}
	if !run.StartedAt.IsZero() {
		e.StartedAt = run.StartedAt.UTC().Format(time.RFC3339Nano)
	}
	if f := run.Error; f != nil {
		e.Error = failedError{
			Code: f.Code.String(), Message: f.Message, NonRetryable: f.NonRetryable, RetryAfterMS: f.RetryAfterMS,
			Subject: f.Subject, SubjectID: f.SubjectID, Metadata: f.Metadata, Type: f.Type, Stack: f.Stack,
		}
	}
	data := e.json()
	if len(data) > MaxPayload-1024 {
		e.Input, e.InputMetadata, e.InputOmitted = nil, nil, true
		data = e.json()
	}
	return Payload{Data: data, Metadata: map[string]string{"content-type": "application/json"}}
}

func (e *failedEvent) json() []byte {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		panic("engine: " + err.Error()) // strings and numbers always encode
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}
