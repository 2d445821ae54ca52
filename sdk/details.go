package kagzi

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
)

// Status is the state of a run.
type Status string

// The statuses of runs. The last five are final.
const (
	StatusPending    Status = "PENDING"  // waits for a worker, a retry or its start time
	StatusRunning    Status = "RUNNING"  // a worker holds its lease
	StatusSleeping   Status = "SLEEPING" // parked: waits for a timer, a signal or a child
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

// RunDetails is a snapshot of a run. A time is zero if the event has not happened.
type RunDetails struct {
	RunID        string
	ExternalID   string
	WorkflowType string
	Namespace    string
	Queue        string
	Version      string
	Status       Status
	Error        *RunError // set when the run ended without a result, or failed and will be retried
	Attempts     int       // runs of the workflow function: 1 plus its failures that were retried
	StepRetries  int       // failures of its steps that were retried
	Priority     int
	Steps        int64
	Tags         map[string]string
	Requirements map[string]string
	Note         string // progress text set by Note
	WaitingFor   string // while SLEEPING: "timer:NAME", "signal:NAME", "child:RUN_ID"
	WorkerID     string
	LeaseLosses  int  // workers lost in a row while they held the run
	Paused       bool // by Run.Pause
	Pausing      bool // by Run.Pause; it is Paused when its running steps are recorded
	Pinned       bool // by Run.Pin

	ParentRunID        string
	ParentStep         string // id of the parent's step that started it
	ScheduleID         string
	FailedRunID        string // of a failure handler: the run that failed
	RetriedFromRunID   string // of a retry: the run that it retries
	ContinuedAsRunID   string // of a run that continued as new: its next run
	ContinuedFromRunID string // of a next run: the run before it
	ConcurrencyKey     string
	ConcurrencyLimit   int              // for ConcurrencyKey
	ConcurrencyScope   ConcurrencyScope // for ConcurrencyKey
	OnFailure          string
	OnFailureQueue     string

	CreatedAt         time.Time
	StartedAt         time.Time
	FinishedAt        time.Time
	WakeUpAt          time.Time
	Deadline          time.Time
	ScheduledAt       time.Time // the tick of the schedule that started it
	CancelRequestedAt time.Time // when its code was asked to stop
	CancelGraceUntil  time.Time // end of the grace period
	PausedAt          time.Time // while Paused: since when; its deadline does not run

	input, output *kagziv1.Payload
	codec         Codec
}

func newRunDetails(c *Client, w *kagziv1.Workflow) *RunDetails {
	d := &RunDetails{
		RunID: w.GetRunId(), ExternalID: w.GetExternalId(), WorkflowType: w.GetWorkflowType(),
		Namespace: w.GetNamespace(),
		Queue:     w.GetTaskQueue(), Version: w.GetVersion(), Status: statusOf(w),
		Attempts: int(w.GetAttempts()), StepRetries: int(w.GetStepRetries()), Priority: int(w.GetPriority()),
		Steps: w.GetStepCount(),
		Tags:  w.GetTags(), Requirements: w.GetRequirements(), Note: w.GetNote(), WaitingFor: w.GetWaitingFor(),
		WorkerID: w.GetWorkerId(), LeaseLosses: int(w.GetLeaseLosses()), Paused: w.GetPaused(),
		Pausing: w.GetPausing(), PausedAt: convert.When(w.GetPausedAt()), Pinned: w.GetPinned(),
		ParentRunID: w.GetParentRunId(), ParentStep: w.GetParentStepId(), ScheduleID: w.GetScheduleId(),
		FailedRunID:      w.GetFailedRunId(),
		RetriedFromRunID: w.GetRetriedFromRunId(), ContinuedAsRunID: w.GetContinuedAsRunId(),
		ContinuedFromRunID: w.GetContinuedFromRunId(),
		ConcurrencyKey:     w.GetConcurrencyKey(), ConcurrencyLimit: int(w.GetConcurrencyLimit()),
		ConcurrencyScope: scopeOf(w.GetConcurrencyScope()),
		OnFailure:        w.GetOnFailureWorkflow(), OnFailureQueue: w.GetOnFailureTaskQueue(),
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

// Input decodes the input of a run. Details from List carry no input and give the zero In.
func Input[In any](d *RunDetails) (In, error) {
	return readPayload[In](d.codec, d.input, inputInfo(d.WorkflowType, d.ExternalID), "input of run "+d.RunID)
}

// Output decodes the output of a COMPLETED run. Details from List carry no output and give the zero
// Out.
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

// Get returns a run by its id. The error is an *Error with NOT_FOUND if there is none.
func (c *Client) Get(ctx context.Context, runID string) (*RunDetails, error) {
	resp, err := c.workflows.GetWorkflow(ctx, &kagziv1.GetWorkflowRequest{Namespace: c.options.Namespace, RunId: runID})
	if err != nil {
		return nil, callError(ctx, err)
	}
	return newRunDetails(c, resp.GetWorkflow()), nil
}

// GetByExternalID returns the newest run with an external id. The error is an *Error with NOT_FOUND
// if there is none.
func (c *Client) GetByExternalID(ctx context.Context, externalID string) (*RunDetails, error) {
	resp, err := c.workflows.GetWorkflowByExternalId(ctx,
		&kagziv1.GetWorkflowByExternalIdRequest{Namespace: c.options.Namespace, ExternalId: externalID})
	if err != nil {
		return nil, callError(ctx, err)
	}
	return newRunDetails(c, resp.GetWorkflow()), nil
}

// ListOptions filters runs. Fields are combined with AND; a zero field does not filter.
type ListOptions struct {
	Statuses      []Status          // any of them
	WorkflowTypes []string          // any of them
	Queues        []string          // any of them
	Tags          map[string]string // all of them
	CreatedAfter  time.Time         // exclusive
	CreatedBefore time.Time         // exclusive
	ParentRunID   string
	ScheduleID    string // id or name
	WorkerID      string
	Search        string // prefix of the run id or the external id
	// In the language of `kagzi help query`, such as `type = "order*" and (error = timeout or tag.team = x)`.
	// A server that would ignore it, and list all runs, is refused with PRECONDITION_FAILED.
	Query    string
	PageSize int // runs per request, at most 1000 (50)
}

// List iterates over the matching runs, newest first, and fetches them page by page. An error ends
// the iteration.
func (c *Client) List(ctx context.Context, opts ListOptions) iter.Seq2[*RunDetails, error] {
	return func(yield func(*RunDetails, error) bool) {
		req := &kagziv1.ListWorkflowsRequest{
			Namespace: c.options.Namespace, WorkflowTypes: opts.WorkflowTypes, TaskQueues: opts.Queues, Tags: opts.Tags,
			CreatedAfter: convert.Timestamp(opts.CreatedAfter), CreatedBefore: convert.Timestamp(opts.CreatedBefore),
			ParentRunId: named(opts.ParentRunID),
			ScheduleId:  named(opts.ScheduleID), WorkerId: named(opts.WorkerID), Search: named(opts.Search),
			Query: opts.Query,
		}
		for _, s := range opts.Statuses {
			if s.wire() == kagziv1.WorkflowStatus_WORKFLOW_STATUS_UNSPECIFIED {
				yield(nil, fmt.Errorf("kagzi: option Statuses has %q, want StatusPending and its like", s))
				return
			}
			req.Statuses = append(req.Statuses, s.wire())
		}
		if err := c.knowsQuery(ctx, opts.Query); err != nil {
			yield(nil, callError(ctx, err))
			return
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

// knowsQuery returns an error if the server would ignore the query of a list.
func (c *Client) knowsQuery(ctx context.Context, query string) error {
	if query == "" {
		return nil
	}
	info, err := c.admin.GetServerInfo(ctx, &kagziv1.GetServerInfoRequest{})
	if err != nil || slices.Contains(info.GetSupportedFeatures(), featureQuery) {
		return err
	}
	return &Error{Code: CodePreconditionFailed, Subject: "server", Message: "the server (version " +
		cmp.Or(info.GetVersion(), "unknown") + ") does not know the option Query and would list all runs: " +
		"upgrade it, or use the other options"}
}

// featureQuery is what servers call it that lists of runs have queries.
const featureQuery = "query-runs"

func yieldRun(yield func(*RunDetails, error) bool, c *Client, w *kagziv1.Workflow, err error) bool {
	if err != nil {
		return yield(nil, err)
	}
	return yield(newRunDetails(c, w), nil)
}

// pages iterates over a list of the server page by page. An error ends it.
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

// named returns a filter's value, nil if it is empty.
func named(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
