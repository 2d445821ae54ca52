package theme

import (
	"strings"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

// OfRun returns the sign of a run; a pending run is retrying if its code or a step of it failed before.
func OfRun(r *kagziv1.Workflow) Sign {
	switch {
	case render.Ended(r.GetStatus()):
	case r.GetPaused():
		return Sign{Paused, "paused", render.Paused}
	case r.GetPausing():
		return Sign{Paused, "pausing", render.Paused}
	}
	if r.GetStatus() == kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING && r.GetAttempts()+r.GetStepRetries() > 1 {
		return Sign{Retrying, "retrying", render.Waiting}
	}
	return OfStatus(r.GetStatus())
}

// OfStatus returns the sign of a run's status.
func OfStatus(s kagziv1.WorkflowStatus) Sign {
	switch s {
	case kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING:
		return Sign{Pending, "pending", render.Dim}
	case kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING:
		return Sign{Running, "running", render.Busy}
	case kagziv1.WorkflowStatus_WORKFLOW_STATUS_SLEEPING:
		return Sign{Sleeping, "sleeping", render.Asleep}
	case kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED:
		return Sign{Completed, "completed", render.Good}
	case kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED:
		return Sign{Failed, "failed", render.Bad}
	case kagziv1.WorkflowStatus_WORKFLOW_STATUS_TIMED_OUT:
		return Sign{TimedOut, "timed out", render.Bad}
	case kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED:
		return Sign{Cancelled, "cancelled", render.Stopped}
	case kagziv1.WorkflowStatus_WORKFLOW_STATUS_TERMINATED:
		return Sign{Terminated, "terminated", render.Stopped}
	}
	return Sign{Pending, "unknown", render.Dim}
}

// OfStep returns the sign of an attempt of a step.
func OfStep(s *kagziv1.Step) Sign {
	switch s.GetStatus() {
	case kagziv1.StepStatus_STEP_STATUS_PENDING:
		return Sign{Retrying, "retrying", render.Waiting}
	case kagziv1.StepStatus_STEP_STATUS_RUNNING:
		if s.GetKind() != kagziv1.StepKind_STEP_KIND_FUNCTION {
			return Sign{Sleeping, "waiting", render.Asleep}
		}
		return Sign{Running, "running", render.Busy}
	case kagziv1.StepStatus_STEP_STATUS_COMPLETED:
		return Sign{Completed, "completed", render.Good}
	case kagziv1.StepStatus_STEP_STATUS_FAILED:
		return Sign{Failed, "failed", render.Bad}
	}
	return Sign{Pending, "unknown", render.Dim}
}

// stopped is the sign of a step that was open when its run ended.
var stopped = Sign{Cancelled, "stopped", render.Stopped}

// OfAttempt returns the sign of an attempt of a step whose run has ended or not. An attempt that was
// open when its run ended is stopped.
func OfAttempt(s *kagziv1.Step, ended bool) Sign {
	if ended && (s.GetStatus() == kagziv1.StepStatus_STEP_STATUS_RUNNING ||
		s.GetStatus() == kagziv1.StepStatus_STEP_STATUS_PENDING) || render.CutShort(s) {
		return stopped
	}
	return OfStep(s)
}

// OfWorker returns the sign of a worker's status.
func OfWorker(s kagziv1.WorkerStatus) Sign {
	switch s {
	case kagziv1.WorkerStatus_WORKER_STATUS_ONLINE:
		return Sign{Online, "online", render.Good}
	case kagziv1.WorkerStatus_WORKER_STATUS_DRAINING:
		return Sign{Draining, "draining", render.Waiting}
	}
	return Sign{Offline, "offline", render.Dim}
}

// OfKey returns the sign of an API key's state at a time.
func OfKey(k *kagziv1.Key, now time.Time) Sign {
	state := render.KeyState(k, now)
	glyphs := map[render.Style]Glyph{render.Good: Online, render.Bad: TimedOut, render.Stopped: Terminated}
	return Sign{glyphs[state.Style],
		strings.ToLower(state.Text), state.Style}
}

// OfSchedule returns the sign of a schedule: one that cannot fire is broken, paused or not.
func OfSchedule(s *kagziv1.WorkflowSchedule) Sign {
	switch {
	case s.GetBroken() != "":
		return Sign{Failed, "broken", render.Bad}
	case !s.GetEnabled():
		return Sign{Paused, "paused", render.Paused}
	}
	return Sign{Scheduled, "on", render.Good}
}
