package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// FailureCode says what kind of failure was recorded. The numbers are those of ErrorCode on the
// wire.
type FailureCode int32

const (
	FailureUnspecified FailureCode = 0
	FailureTimeout     FailureCode = 8   // start_to_close or the run's deadline passed
	FailureCancelled   FailureCode = 100 // the run was cancelled or terminated
	FailureExhausted   FailureCode = 101 // a size or a count would exceed its limit
	FailureLeaseLost   FailureCode = 102 // reported by code only; Kagzi does not record it
	FailureCrashed     FailureCode = 103 // the worker was lost; recorded by Kagzi only
)

// String returns the code's name on the wire.
func (c FailureCode) String() string {
	names := [...]string{
		"UNSPECIFIED", "NOT_FOUND", "INVALID_ARGUMENT", "PRECONDITION_FAILED", "CONFLICT", "UNAUTHORIZED",
		"UNAVAILABLE", "INTERNAL", "TIMEOUT",
	}
	switch {
	case c >= 0 && int(c) < len(names):
		return "ERROR_CODE_" + names[c]
	case c == FailureCancelled:
		return "ERROR_CODE_CANCELLED"
	case c == FailureExhausted:
		return "ERROR_CODE_RESOURCE_EXHAUSTED"
	case c == FailureLeaseLost:
		return "ERROR_CODE_LEASE_LOST"
	case c == FailureCrashed:
		return "ERROR_CODE_CRASHED"
	}
	return "ERROR_CODE_UNSPECIFIED"
}

// Failure says why a step or a run failed, as its code reported it.
type Failure struct {
	Code FailureCode `json:"code,omitempty"`
	// set by the application, matched against RetryPolicy.NonRetryable
	Type         string `json:"type,omitempty"`
	Message      string `json:"message,omitempty"`
	Stack        string `json:"stack,omitempty"`
	NonRetryable bool   `json:"non_retryable,omitempty"`
	// delay asked for by the code; 0: the policy decides
	RetryAfterMS int64             `json:"retry_after_ms,omitempty"`
	Subject      string            `json:"subject,omitempty"` // what the failure is about, set by the code
	SubjectID    string            `json:"subject_id,omitempty"`
	Metadata     map[string]string `json:"metadata,omitempty"`
}

// Equal says whether both report the same failure.
func (f Failure) Equal(g Failure) bool {
	return f.Code == g.Code && f.Type == g.Type && f.Message == g.Message && f.Stack == g.Stack &&
		f.NonRetryable == g.NonRetryable && f.RetryAfterMS == g.RetryAfterMS &&
		f.Subject == g.Subject && f.SubjectID == g.SubjectID &&
		Payload{Metadata: f.Metadata}.Equal(Payload{Metadata: g.Metadata})
}

// Size returns how many bytes the failure counts against MaxRunBytes.
func (f Failure) Size() int {
	return len(f.Type) + len(f.Message) + len(f.Stack) + len(f.Subject) + len(f.SubjectID) +
		Payload{Metadata: f.Metadata}.Size()
}

// Clean prepares a failure for storage: text becomes valid UTF-8 without NUL and is cut to MaxError
// with CutMark, and FailureCrashed, which only Kagzi may record, becomes FailureUnspecified.
func (f Failure) Clean() Failure {
	f.Type = cutText(f.Type, MaxName)
	f.Message = cutText(f.Message, MaxError)
	f.Stack = cutText(f.Stack, MaxError)
	f.Subject = cutText(f.Subject, MaxName)
	f.SubjectID = cutText(f.SubjectID, MaxName)
	f.RetryAfterMS = min(max(f.RetryAfterMS, 0), MaxDelay.Milliseconds())
	if f.Code == FailureCrashed {
		f.Code = FailureUnspecified
	}
	f.Metadata = cutLabels(f.Metadata)
	return f
}

// cutLabels keeps the first MaxLabels entries by key, so that a repeated call keeps the same ones.
func cutLabels(labels map[string]string) map[string]string {
	if len(labels) == 0 {
		return nil
	}
	keys := slices.Sorted(maps.Keys(labels))
	cut := make(map[string]string, min(len(keys), MaxLabels))
	for _, key := range keys[:min(len(keys), MaxLabels)] {
		cut[cutText(key, MaxLabelKey)] = cutText(labels[key], MaxLabelValue)
	}
	return cut
}

// cutText returns text as valid UTF-8 without NUL, at most limit bytes long including the mark.
func cutText(text string, limit int) string {
	if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
		text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	}
	if len(text) <= limit {
		return text
	}
	cut := limit - len(CutMark)
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + CutMark
}

// The failures that Kagzi itself records follow.

// CrashedFailure is the error of a run that lost MaxLeaseLosses workers in a row.
func CrashedFailure() Failure { return CrashedAfter(MaxLeaseLosses) }

// CrashedAfter is the error of a run that lost so many workers in a row, the LossLimit of its type.
func CrashedAfter(losses int) Failure {
	return Failure{Code: FailureCrashed, Type: "crashed", NonRetryable: true,
		Message: fmt.Sprintf(
			"Workflow crashed and exhausted all retry attempts (%d workers in a row were lost while they held this run, "+
				"without a step recorded in between)", losses)}
}

// InterruptedFailure is the error of an attempt whose lease ended before its result.
func InterruptedFailure() Failure {
	return Failure{Code: FailureCrashed, Type: "interrupted",
		Message: "the worker lost the run before the step had a result"}
}

// StepTimedOutFailure is the error of an attempt whose start-to-close timeout passed. The retry
// policy applies to it.
func StepTimedOutFailure() Failure {
	return Failure{Code: FailureTimeout, Type: "timeout",
		Message: "Step execution timed out (start_to_close_timeout exceeded)"}
}

// RunEndedFailure is the error of an attempt that was RUNNING when its run ended.
func RunEndedFailure() Failure {
	return Failure{Code: FailureCancelled, Type: "run_ended", Message: "the run ended before the step had a result",
		NonRetryable: true}
}

// DeadlineFailure is the error of a run that its deadline ended.
func DeadlineFailure(deadline time.Time) Failure {
	return Failure{Code: FailureTimeout, Type: "deadline", NonRetryable: true,
		Message: "Workflow execution timeout exceeded (the run's deadline passed at " +
			deadline.UTC().Format(time.RFC3339Nano) + ")"}
}

// EndedByFailure is the error of a run that was cancelled or terminated, with the reason given or a
// default text.
func EndedByFailure(status RunStatus, reason string) Failure {
	word := "cancelled"
	if status == RunTerminated {
		word = "terminated"
	}
	return Failure{Code: FailureCancelled, Type: word, Message: cmp.Or(reason, "the run was "+word), NonRetryable: true}
}

// ChildFailure is the error of a CHILD step whose run did not complete.
func ChildFailure(child *Run) Failure {
	f := Failure{Type: "child", Message: "the child run ended as " + child.Status.String(), NonRetryable: true}
	if child.Error != nil {
		f = *child.Error
	}
	if f.Code == FailureCrashed { // the child crashed; the parent's step was not interrupted
		f.Code = FailureUnspecified
	}
	f.RetryAfterMS = 0
	f.NonRetryable = true
	f.Metadata = maps.Clone(f.Metadata)
	if f.Metadata == nil {
		f.Metadata = map[string]string{}
	}
	f.Metadata[MetaChildRunID], f.Metadata["child_status"] = child.ID.String(), child.Status.String()
	return f
}

// ChildTooLarge is the error of a CHILD step whose run's output would take the parent past
// MaxRunBytes.
func ChildTooLarge(child *Run) Failure {
	return Failure{Code: FailureExhausted, Type: "too_large", NonRetryable: true,
		Message:  fmt.Sprintf("the output of child run %s would take this run past %d bytes", child.ID, MaxRunBytes),
		Metadata: map[string]string{MetaChildRunID: child.ID.String(), "child_status": child.Status.String()}}
}

// OverriddenFailure is the error of an open attempt that OverrideStep replaced.
func OverriddenFailure() Failure {
	return Failure{Code: FailureCancelled, Type: "overridden", Message: "a person recorded another result for the step",
		NonRetryable: true}
}

// GlobalHandler is the workflow type of the handler for all failed runs of a namespace.
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

// failedError is ErrorDetail of the wire, whose names differ for some fields.
type failedError struct {
	Code         string `json:"code"`
	Message      string `json:"message"`
	NonRetryable bool   `json:"non_retryable,omitempty"`
	// as the wire's JSON writes numbers of 64 bits
	RetryAfterMS int64             `json:"retry_after_ms,omitempty,string"`
	Subject      string            `json:"subject,omitempty"`
	SubjectID    string            `json:"subject_id,omitempty"`
	Metadata     map[string]string `json:"metadata,omitempty"`
	Type         string            `json:"type,omitempty"`
	Stack        string            `json:"stack,omitempty"`
}

// HandlerOf returns the run that handles the failure of run, with that type and queue. Its input is
// a failedEvent. global says which of the two handlers it is; a failed run has each at most once.
func HandlerOf(run *Run, workflowType, queue string, global bool, now time.Time) StartRun {
	prefix := "failure-"
	if global {
		prefix = "system-failure-"
	}
	event := failedEventOf(run)
	return StartRun{Run: Run{
		ID: DerivedID(now, run.ID, prefix), Namespace: run.Namespace, ExternalID: prefix + run.ID.String(),
		Queue: queue, Type: workflowType,
		Status: RunPending, Attempts: 1, Input: event, Bytes: int64(event.Size()), CreatedAt: now, AvailableAt: now,
		Traceparent: run.Traceparent, Origin: OriginHandler, FailedRunID: run.ID,
	}}
}

// IsHandler says whether the run handles a failure. Its own failure then has no handler.
func (r *Run) IsHandler() bool { return !r.FailedRunID.IsZero() }

func failedEventOf(run *Run) Payload {
	e := failedEvent{
		Event: "kagzi/workflow.failed", FailedRunID: run.ID.String(), Namespace: run.Namespace, Type: run.Type,
		Queue:      run.Queue,
		ExternalID: run.ExternalID, Status: run.Status.String(), Input: run.Input.Data,
		InputMetadata: run.Input.Metadata,
		Attempts:      run.Attempt(), FailedAt: run.FinishedAt.UTC().Format(time.RFC3339Nano),
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
