package kagzi

import (
	"context"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Context is what a workflow function and its branches get. It is a context.Context whose end means
// that the run is being cancelled (context.Cause is ErrCancelled) or is no longer in this worker's hands; only the SDK makes one.
//
// Every function of this package that takes a Context may end the calling goroutine: see "Suspension"
// in the package documentation.
type Context interface {
	context.Context
	workflow() *branch
	scope() context.Context // what ends the calls that are made with it
}

type workflowContext struct {
	context.Context
	b *branch
}

func (c *workflowContext) workflow() *branch      { return c.b }
func (c *workflowContext) scope() context.Context { return c.Context }

// RunInfo describes the run that a workflow function works for. It is the same over all replays, but
// for Attempt and WorkerID, and for ParentRunID once the parent of a child that is to end with it has continued as new.
type RunInfo struct {
	RunID        string
	WorkflowType string
	Namespace    string
	Queue        string
	Version      string
	ExternalID   string            // "" when the run was started without one
	Attempt      int               // 1 plus the failures that were retried; sleeps and lost workers count nothing
	Tags         map[string]string // not to be changed
	Deadline     time.Time         // zero when the run has none
	ParentRunID  string            // "" when the run is no child; not for names of steps
	ScheduleID   string            // "" when no schedule fired the run
	ScheduledAt  time.Time         // the tick that fired the run; zero without a schedule
	FailedRunID  string            // of a failure handler: the run whose failure it handles
	WorkerID     string            // where the code runs now
}

// Info returns what is known about the run.
func Info(ctx Context) RunInfo { return ctx.workflow().e.info }

func newRunInfo(w *Worker, t *kagziv1.Task) RunInfo {
	info := RunInfo{
		RunID:        t.GetRunId(),
		WorkflowType: t.GetWorkflowType(),
		Namespace:    t.GetNamespace(),
		Queue:        t.GetTaskQueue(),
		Version:      t.GetVersion(),
		ExternalID:   t.GetExternalId(),
		Attempt:      int(t.GetAttempt()),
		Tags:         t.GetTags(),
		ParentRunID:  t.GetParentRunId(),
		ScheduleID:   t.GetScheduleId(),
		FailedRunID:  t.GetFailedRunId(),
		WorkerID:     w.ID(),
	}
	if t.DeadlineAt != nil {
		info.Deadline = t.DeadlineAt.AsTime()
	}
	if t.ScheduledAt != nil {
		info.ScheduledAt = t.ScheduledAt.AsTime()
	}
	return info
}
