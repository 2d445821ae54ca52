package kagzi

import (
	"context"
	"iter"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
)

// ScheduleDetails is a snapshot of a schedule. A time is zero if the event has not happened.
type ScheduleDetails struct {
	ScheduleID     string
	Name           string
	Namespace      string
	WorkflowType   string
	Cron           string
	TimeZone       string // "" means UTC
	Queue          string
	Version        string
	Paused         bool
	PauseReason    string
	Broken         string // why it can no longer fire, such as an unknown time zone; "" if it can
	Overlap        OverlapPolicy
	MaxCatchup     int
	Jitter         time.Duration
	OnFailure      string
	OnFailureQueue string
	Tags           map[string]string

	ConcurrencyKey   string // of its runs
	ConcurrencyLimit int
	ConcurrencyScope ConcurrencyScope

	TotalRuns      int64
	SuccessfulRuns int64
	FailedRuns     int64
	SkippedTicks   int64 // ticks skipped because of MaxCatchup or the overlap policy

	CreatedAt    time.Time
	UpdatedAt    time.Time
	NextFireAt   time.Time
	NextRunAt    time.Time // with Jitter: when the run of the tick NextFireAt starts
	LastFiredAt  time.Time
	BufferedTick time.Time // with OverlapBufferOne: the tick that waits for the active run

	input *kagziv1.Payload
	codec Codec
}

func newScheduleDetails(c *Client, s *kagziv1.WorkflowSchedule) *ScheduleDetails {
	return &ScheduleDetails{
		ScheduleID: s.GetScheduleId(), Name: s.GetName(), Namespace: s.GetNamespace(),
		WorkflowType: s.GetWorkflowType(),
		Cron:         s.GetCronExpr(), TimeZone: s.GetTimeZone(), Queue: s.GetTaskQueue(), Version: s.GetVersion(),
		Paused: !s.GetEnabled(), Broken: s.GetBroken(), Overlap: overlapOf(s.GetOverlapPolicy()),
		MaxCatchup: int(s.GetMaxCatchup()), PauseReason: s.GetPauseReason(),
		Jitter: time.Duration(s.GetJitterMs()) * time.Millisecond, NextRunAt: convert.When(s.GetNextRunAt()),
		OnFailure: s.GetOnFailureWorkflow(), OnFailureQueue: s.GetOnFailureTaskQueue(), Tags: s.GetTags(),
		ConcurrencyKey: s.GetConcurrencyKey(), ConcurrencyLimit: int(s.GetConcurrencyLimit()),
		ConcurrencyScope: scopeOf(s.GetConcurrencyScope()),
		TotalRuns:        s.GetTotalRuns(), SuccessfulRuns: s.GetSuccessfulRuns(), FailedRuns: s.GetFailedRuns(),
		SkippedTicks: s.GetSkippedTicks(),
		CreatedAt:    convert.When(s.GetCreatedAt()), UpdatedAt: convert.When(s.GetUpdatedAt()),
		NextFireAt:  convert.When(s.GetNextFireAt()),
		LastFiredAt: convert.When(s.GetLastFiredAt()), BufferedTick: convert.When(s.GetBufferedTick()),
		input: s.GetInput(), codec: c.options.Codec,
	}
}

// ScheduleInput decodes the input that the schedule's runs get.
func ScheduleInput[In any](d *ScheduleDetails) (In, error) {
	return readPayload[In](d.codec, d.input, inputInfo(d.WorkflowType, ""), "input of schedule "+d.ScheduleID)
}

// Describe returns the current state of the schedule. The error is an *Error with NOT_FOUND if
// there is none.
func (s *Schedule) Describe(ctx context.Context) (*ScheduleDetails, error) {
	resp, err := s.c.schedules.GetWorkflowSchedule(ctx, &kagziv1.GetWorkflowScheduleRequest{
		Namespace: s.c.options.Namespace, ScheduleId: s.id,
	})
	if err != nil {
		return nil, callError(ctx, err)
	}
	return newScheduleDetails(s.c, resp.GetSchedule()), nil
}

// GetScheduleByName returns the schedule with a name. The error is an *Error with NOT_FOUND if
// there is none.
func (c *Client) GetScheduleByName(ctx context.Context, name string) (*ScheduleDetails, error) {
	return c.Schedule(name).Describe(ctx)
}

// ListSchedulesOptions filters schedules. A field that is zero has the default in brackets.
type ListSchedulesOptions struct {
	Queue    string // (all queues)
	PageSize int    // schedules per request, at most 1000 (50)
}

// ListSchedules iterates over the matching schedules, newest first, and fetches them page by page.
// An error ends the iteration.
func (c *Client) ListSchedules(ctx context.Context, opts ListSchedulesOptions) iter.Seq2[*ScheduleDetails, error] {
	return func(yield func(*ScheduleDetails, error) bool) {
		req := &kagziv1.ListWorkflowSchedulesRequest{Namespace: c.options.Namespace, TaskQueue: named(opts.Queue)}
		for s, err := range pages(ctx, opts.PageSize,
			func(page *kagziv1.PageRequest) ([]*kagziv1.WorkflowSchedule, *kagziv1.PageInfo, error) {
				req.Page = page
				resp, err := c.schedules.ListWorkflowSchedules(ctx, req)
				return resp.GetSchedules(), resp.GetPage(), err
			}) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(newScheduleDetails(c, s), nil) {
				return
			}
		}
	}
}

// Runs iterates over the runs that the schedule started, newest first, and fetches them page by
// page. An error ends the iteration.
func (s *Schedule) Runs(ctx context.Context) iter.Seq2[*RunDetails, error] {
	return func(yield func(*RunDetails, error) bool) {
		req := &kagziv1.ListScheduleRunsRequest{Namespace: s.c.options.Namespace, ScheduleId: s.id}
		for w, err := range pages(ctx, 0, func(page *kagziv1.PageRequest) ([]*kagziv1.Workflow,
			*kagziv1.PageInfo, error) {
			req.Page = page
			resp, err := s.c.schedules.ListScheduleRuns(ctx, req)
			return resp.GetRuns(), resp.GetPage(), err
		}) {
			if !yieldRun(yield, s.c, w, err) {
				return
			}
		}
	}
}

// PreviewOptions selects ticks. A field that is zero has the default in brackets.
type PreviewOptions struct {
	TimeZone string    // ("UTC")
	Count    int       // at most 100 (5)
	After    time.Time // (now)
}

// PreviewSchedule returns the next ticks of a cron expression, in UTC. It stores nothing.
func (c *Client) PreviewSchedule(ctx context.Context, cron string, opts PreviewOptions) ([]time.Time, error) {
	resp, err := c.schedules.PreviewSchedule(ctx, &kagziv1.PreviewScheduleRequest{
		CronExpr: cron, TimeZone: opts.TimeZone, Count: convert.Narrow(opts.Count),
		After: convert.Timestamp(opts.After),
	})
	if err != nil {
		return nil, callError(ctx, err)
	}
	ticks := make([]time.Time, len(resp.GetTicks()))
	for i, t := range resp.GetTicks() {
		ticks[i] = t.AsTime()
	}
	return ticks, nil
}
