package kagzi

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
)

// Status is where a run stands.
type Status string

// The statuses of runs. The last five are final.
const (
	StatusPending    Status = "PENDING"  // waits for a worker, or for its retry or start time
	StatusRunning    Status = "RUNNING"  // a worker holds its lease
	StatusSleeping   Status = "SLEEPING" // parked
	StatusCompleted  Status = "COMPLETED"
	StatusFailed     Status = "FAILED"
	StatusCancelled  Status = "CANCELLED"
	StatusTimedOut   Status = "TIMED_OUT"
	StatusTerminated Status = "TERMINATED"
)

// Ended reports whether the status is final.
func (s Status) Ended() bool {
	switch s {
	case StatusCompleted, StatusFailed, StatusCancelled, StatusTimedOut, StatusTerminated:
		return true
	}
	return false
}

const statusPrefix = "WORKFLOW_STATUS_"

func (s Status) wire() kagziv1.WorkflowStatus {
	return kagziv1.WorkflowStatus(kagziv1.WorkflowStatus_value[statusPrefix+string(s)])
}

func statusOf(w interface {
	GetStatus() kagziv1.WorkflowStatus
}) Status {
	return statusFrom(w.GetStatus())
}

func statusFrom(s kagziv1.WorkflowStatus) Status {
	return Status(strings.TrimPrefix(s.String(), statusPrefix))
}

// RunDetails is a run as it stood when the server was asked. Zero times mean that it has not come to that.
type RunDetails struct {
	RunID        string
	ExternalID   string
	WorkflowType string
	Namespace    string
	Queue        string
	Version      string
	Status       Status
	Error        *RunError // set when the run ended without a result, or failed and will be retried
	Attempts     int       // 1 plus the failures that were retried; sleeps and lost workers count nothing
	Priority     int
	Steps        int64
	Tags         map[string]string
	Requirements map[string]string
	Note         string // the line about its progress that its code has set
	WaitingFor   string // while SLEEPING: "timer:NAME", "signal:NAME", "child:RUN_ID"
	WorkerID     string
	LeaseLosses  int  // how often in a row a worker was lost while it held the run
	Paused       bool // by Run.Pause
	Pinned       bool // by Run.Pin

	ParentRunID        string
	ParentStep         string // the parent's step that started it, by its id
	ScheduleID         string
	FailedRunID        string // of a failure handler's run: the run that it handles
	RetriedFromRunID   string // of a retry: the run that it retries
	ContinuedAsRunID   string // of a run that continued as new: the run that it continued as
	ContinuedFromRunID string // and back
	ConcurrencyKey     string
	ConcurrencyLimit   int // of the key
	OnFailure          string
	OnFailureQueue     string

	CreatedAt         time.Time
	StartedAt         time.Time
	FinishedAt        time.Time
	WakeUpAt          time.Time
	Deadline          time.Time
	ScheduledAt       time.Time // the schedule's tick that fired it
	CancelRequestedAt time.Time // when its code was told to stop
	CancelGraceUntil  time.Time // when it ends in any case then

	input, output *kagziv1.Payload
	codec         Codec
}

func newRunDetails(c *Client, w *kagziv1.Workflow) *RunDetails {
	d := &RunDetails{
		RunID: w.GetRunId(), ExternalID: w.GetExternalId(), WorkflowType: w.GetWorkflowType(),
		Namespace: w.GetNamespace(),
		Queue:     w.GetTaskQueue(), Version: w.GetVersion(), Status: statusOf(w),
		Attempts: int(w.GetAttempts()), Priority: int(w.GetPriority()), Steps: w.GetStepCount(),
		Tags: w.GetTags(), Requirements: w.GetRequirements(), Note: w.GetNote(), WaitingFor: w.GetWaitingFor(),
		WorkerID: w.GetWorkerId(), LeaseLosses: int(w.GetLeaseLosses()), Paused: w.GetPaused(), Pinned: w.GetPinned(),
		ParentRunID: w.GetParentRunId(), ParentStep: w.GetParentStepId(), ScheduleID: w.GetScheduleId(),
		FailedRunID:      w.GetFailedRunId(),
		RetriedFromRunID: w.GetRetriedFromRunId(), ContinuedAsRunID: w.GetContinuedAsRunId(),
		ContinuedFromRunID: w.GetContinuedFromRunId(),
		ConcurrencyKey:     w.GetConcurrencyKey(), ConcurrencyLimit: int(w.GetConcurrencyLimit()),
		OnFailure: w.GetOnFailureWorkflow(), OnFailureQueue: w.GetOnFailureTaskQueue(),
		CreatedAt: convert.When(w.GetCreatedAt()), StartedAt: convert.When(w.GetStartedAt()),
		FinishedAt: convert.When(w.GetFinishedAt()),
		WakeUpAt:   convert.When(w.GetWakeUpAt()), Deadline: convert.When(w.GetDeadlineAt()),
		ScheduledAt:       convert.When(w.GetScheduledAt()),
		CancelRequestedAt: convert.When(w.GetCancelRequestedAt()),
		CancelGraceUntil:  convert.When(w.GetCancelGraceUntil()),
		input:             w.GetInput(), output: w.GetOutput(), codec: c.options.Codec,
	}
	if e := w.GetError(); e != nil || d.Status.Ended() && d.Status != StatusCompleted {
		d.Error = newRunError(d.RunID, d.Status, e)
	}
	return d
}

func newRunError(runID string, s Status, e *kagziv1.ErrorDetail) *RunError {
	return &RunError{RunID: runID, Status: s, Type: e.GetType(), Message: e.GetMessage(), Code: errorCode(e.GetCode()),
		Stack: e.GetStack()}
}

// Input reads the input of a run. Details from a list have none, which reads as a zero In.
func Input[In any](d *RunDetails) (In, error) {
	return readPayload[In](d.codec, d.input, inputInfo(d.WorkflowType, d.ExternalID), "input of run "+d.RunID)
}

// Output reads the output of a COMPLETED run. Details from a list have none, which reads as a zero Out.
func Output[Out any](d *RunDetails) (Out, error) {
	return readOutput[Out](d.codec, d.output, d.RunID)
}

func readOutput[Out any](c Codec, p *kagziv1.Payload, runID string) (Out, error) {
	return readPayload[Out](c, p, PayloadInfo{Kind: PayloadOutput, RunID: runID}, "output of run "+runID)
}

func readPayload[T any](c Codec, p *kagziv1.Payload, info PayloadInfo, what string) (T, error) {
	var zero T
	if p == nil {
		return zero, nil
	}
	v, err := decode[T](c, p, info)
	if err != nil {
		return zero, fmt.Errorf("kagzi: %s: %w", what, err)
	}
	return *v, nil
}

// Get returns a run by its id; *Error with NOT_FOUND when there is none.
func (c *Client) Get(ctx context.Context, runID string) (*RunDetails, error) {
	resp, err := c.workflows.GetWorkflow(ctx, &kagziv1.GetWorkflowRequest{Namespace: c.options.Namespace, RunId: runID})
	if err != nil {
		return nil, callError(ctx, err)
	}
	return newRunDetails(c, resp.GetWorkflow()), nil
}

// GetByExternalID returns the newest run with an external id; *Error with NOT_FOUND when there is none.
func (c *Client) GetByExternalID(ctx context.Context, externalID string) (*RunDetails, error) {
	resp, err := c.workflows.GetWorkflowByExternalId(ctx,
		&kagziv1.GetWorkflowByExternalIdRequest{Namespace: c.options.Namespace, ExternalId: externalID})
	if err != nil {
		return nil, callError(ctx, err)
	}
	return newRunDetails(c, resp.GetWorkflow()), nil
}

// ListOptions select runs: all that is set must hold.
type ListOptions struct {
	Statuses      []Status          // any of these
	WorkflowTypes []string          // any of these
	Queues        []string          // any of these
	Tags          map[string]string // all of these
	CreatedAfter  time.Time         // not at this time itself
	CreatedBefore time.Time         // likewise
	ParentRunID   string
	ScheduleID    string // or its name
	WorkerID      string
	Search        string // prefix of the run id or of the external id
	PageSize      int    // how many the server is asked for at a time, at most 1000 (50)
}

// List goes over the runs that the options select, newest first, fetching them page by page. An error ends it.
func (c *Client) List(ctx context.Context, opts ListOptions) iter.Seq2[*RunDetails, error] {
	return func(yield func(*RunDetails, error) bool) {
		req := &kagziv1.ListWorkflowsRequest{
			Namespace: c.options.Namespace, WorkflowTypes: opts.WorkflowTypes, TaskQueues: opts.Queues, Tags: opts.Tags,
			CreatedAfter: convert.Timestamp(opts.CreatedAfter), CreatedBefore: convert.Timestamp(opts.CreatedBefore),
			ParentRunId: named(opts.ParentRunID),
			ScheduleId:  named(opts.ScheduleID), WorkerId: named(opts.WorkerID), Search: named(opts.Search),
		}
		for _, s := range opts.Statuses {
			if s.wire() == kagziv1.WorkflowStatus_WORKFLOW_STATUS_UNSPECIFIED {
				yield(nil, fmt.Errorf("kagzi: option Statuses has %q, want StatusPending and its like", s))
				return
			}
			req.Statuses = append(req.Statuses, s.wire())
		}
		for w, err := range pages(ctx, opts.PageSize,
			func(page *kagziv1.PageRequest) ([]*kagziv1.Workflow, *kagziv1.PageInfo, error) {
				req.Page = page
				resp, err := c.workflows.ListWorkflows(ctx, req)
				return resp.GetWorkflows(), resp.GetPage(), err
			}) {
			if !yieldRun(yield, c, w, err) {
				return
			}
		}
	}
}

func yieldRun(yield func(*RunDetails, error) bool, c *Client, w *kagziv1.Workflow, err error) bool {
	if err != nil {
		return yield(nil, err)
	}
	return yield(newRunDetails(c, w), nil)
}

// pages goes over a list of the server's page by page. An error ends it.
func pages[M any](ctx context.Context, size int,
	fetch func(*kagziv1.PageRequest) ([]M, *kagziv1.PageInfo, error)) iter.Seq2[M, error] {
	return func(yield func(M, error) bool) {
		page := &kagziv1.PageRequest{PageSize: convert.Narrow(size)}
		for {
			list, info, err := fetch(page)
			if err != nil {
				var none M
				yield(none, callError(ctx, err))
				return
			}
			for _, m := range list {
				if !yield(m, nil) {
					return
				}
			}
			if page.PageToken = info.GetNextPageToken(); page.PageToken == "" {
				return
			}
		}
	}
}

// named is a filter's value, nil for none.
func named(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
