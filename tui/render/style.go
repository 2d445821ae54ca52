package render

import (
	"strings"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Style is the meaning of a cell. The terminal chooses the colours, if it has any.
type Style uint8

const (
	Plain Style = iota
	Dim
	Good
	Bad
	Busy
	Waiting
	Stopped
	Asleep
	Paused
	Strong
)

// sgr maps styles to terminal codes of the sixteen standard colours.
var sgr = [...]string{Plain: "", Dim: "2", Good: "32", Bad: "31", Busy: "36", Waiting: "33", Stopped: "35",
	Asleep: "36", Paused: "35", Strong: "1"}

// Paint wraps safe text in the terminal codes of a style.
func Paint(text string, style Style) string {
	if style == Plain || text == "" {
		return text
	}
	return "\x1b[" + sgr[style] + "m" + text + "\x1b[0m"
}

// RunStatus returns a run's status as a short word: "COMPLETED".
func RunStatus(s kagziv1.WorkflowStatus) string {
	return strings.TrimPrefix(s.String(), "WORKFLOW_STATUS_")
}

// StepStatus returns a step's status as a short word.
func StepStatus(s kagziv1.StepStatus) string { return strings.TrimPrefix(s.String(), "STEP_STATUS_") }

// StepKind returns a step's kind as a short lower-case word.
func StepKind(k kagziv1.StepKind) string {
	return strings.ToLower(strings.TrimPrefix(k.String(), "STEP_KIND_"))
}

// Blocker returns what keeps a run from continuing, in lower case: "no worker", "retry delay".
func Blocker(b kagziv1.ExplainWorkflowResponse_Blocker) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(b.String(), "BLOCKER_")), "_", " ")
}

// Gone says how a worker went offline.
func Gone(w *kagziv1.Worker) string {
	switch w.GetOfflineReason() {
	case kagziv1.WorkerOfflineReason_WORKER_OFFLINE_REASON_DEREGISTERED:
		return "Deregistered"
	case kagziv1.WorkerOfflineReason_WORKER_OFFLINE_REASON_LOST:
		return "Lost"
	case kagziv1.WorkerOfflineReason_WORKER_OFFLINE_REASON_FORCED:
		return "Forced offline"
	}
	return "Gone" // the server does not report reasons
}

// WorkerStatus returns a worker's status as a short word.
func WorkerStatus(s kagziv1.WorkerStatus) string {
	return strings.TrimPrefix(s.String(), "WORKER_STATUS_")
}

// Ended reports whether a status is final.
func Ended(s kagziv1.WorkflowStatus) bool {
	switch s {
	case kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED, kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED,
		kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED, kagziv1.WorkflowStatus_WORKFLOW_STATUS_TIMED_OUT,
		kagziv1.WorkflowStatus_WORKFLOW_STATUS_TERMINATED:
		return true
	}
	return false
}

// RunStyle returns the style of a run's status.
func RunStyle(s kagziv1.WorkflowStatus) Style {
	switch s {
	case kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED:
		return Good
	case kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED, kagziv1.WorkflowStatus_WORKFLOW_STATUS_TIMED_OUT:
		return Bad
	case kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED, kagziv1.WorkflowStatus_WORKFLOW_STATUS_TERMINATED:
		return Stopped
	case kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING:
		return Busy
	}
	return Waiting
}

// StepStyle returns the style of a step's status.
func StepStyle(s kagziv1.StepStatus) Style {
	switch s {
	case kagziv1.StepStatus_STEP_STATUS_COMPLETED:
		return Good
	case kagziv1.StepStatus_STEP_STATUS_FAILED:
		return Bad
	case kagziv1.StepStatus_STEP_STATUS_RUNNING:
		return Busy
	}
	return Waiting
}

// WorkerStyle returns the style of a worker's status.
func WorkerStyle(s kagziv1.WorkerStatus) Style {
	switch s {
	case kagziv1.WorkerStatus_WORKER_STATUS_ONLINE:
		return Good
	case kagziv1.WorkerStatus_WORKER_STATUS_DRAINING:
		return Waiting
	}
	return Dim
}
