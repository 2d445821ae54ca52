package kagzi

import (
	"context"
	"iter"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
)

// ScheduleDetails is a schedule as it stood when the server was asked. Zero times mean that it has not come to that.
type ScheduleDetails struct {
	ScheduleID     string
	Name           string
	Namespace      string
	WorkflowType   string
	Cron           string
	TimeZone       string // "" is UTC
	Queue          string
	Version        string
	Paused         bool
	Broken         string // why it cannot fire any more, such as a time zone that is gone; "" when it can
	Overlap        OverlapPolicy
	MaxCatchup     int
	OnFailure      string
	OnFailureQueue string
	Tags           map[string]string

	TotalRuns      int64
	SuccessfulRuns int64
	FailedRuns     int64
	SkippedTicks   int64 // because of MaxCatchup or the overlap policy

	CreatedAt    time.Time
	UpdatedAt    time.Time
	NextFireAt   time.Time
	LastFiredAt  time.Time
	BufferedTick time.Time // with OverlapBufferOne: the tick that waits for the active run to end

	input *kagziv1.Payload
	codec Codec
}

func newScheduleDetails(c *Client, s *kagziv1.WorkflowSchedule) *ScheduleDetails {
	return &ScheduleDetails{
		ScheduleID: s.GetScheduleId(), Name: s.GetName(), Namespace: s.GetNamespace(),
		WorkflowType: s.GetWorkflowType(),
		Cron:         s.GetCronExpr(), TimeZone: s.GetTimeZone(), Queue: s.GetTaskQueue(), Version: s.GetVersion(),
		Paused: !s.GetEnabled(), Broken: s.GetBroken(), Overlap: overlapOf(s.GetOverlapPolicy()),
		MaxCatchup: int(s.GetMaxCatchup()),
		OnFailure:  s.GetOnFailureWorkflow(), OnFailureQueue: s.GetOnFailureTaskQueue(), Tags: s.GetTags(),
		TotalRuns: s.GetTotalRuns(), SuccessfulRuns: s.GetSuccessfulRuns(), FailedRuns: s.GetFailedRuns(),
		SkippedTicks: s.GetSkippedTicks(),
		CreatedAt:    convert.When(s.GetCreatedAt()), UpdatedAt: convert.When(s.GetUpdatedAt()),
		NextFireAt:  convert.When(s.GetNextFireAt()),
		LastFiredAt: convert.When(s.GetLastFiredAt()), BufferedTick: convert.When(s.GetBufferedTick()),
		input: s.GetInput(), codec: c.options.Codec,
	}
}

// ScheduleInput reads the input that the schedule's runs get.
func ScheduleInput[In any](d *ScheduleDetails) (In, error) {
	return readPayload[In](d.codec, d.input, inputInfo(d.WorkflowType, ""), "input of schedule "+d.ScheduleID)
}

// Describe returns the schedule as it stands; *Error with NOT_FOUND when there is none.
func (s *Schedule) Describe(ctx context.Context) (*ScheduleDetails, error) {
	resp, err := s.c.schedules.GetWorkflowSchedule(ctx, &kagziv1.GetWorkflowScheduleRequest{
		Namespace: s.c.options.Namespace, ScheduleId: s.id,
	})
	if err != nil {
		return nil, callError(ctx, err)
	}
	return newScheduleDetails(s.c, resp.GetSchedule()), nil
}

// GetScheduleByName returns the schedule with a name; *Error with NOT_FOUND when there is none.
func (c *Client) GetScheduleByName(ctx context.Context, name string) (*ScheduleDetails, error) {
	return c.Schedule(name).Describe(ctx)
}

// ListSchedulesOptions select schedules. Every zero field means the default in brackets.
type ListSchedulesOptions struct {
	Queue    string // (all)
	PageSize int    // how many the server is asked for at a time, at most 1000 (50)
}

// ListSchedules goes over the schedules that the options select, newest first, fetching them page
// by page. An error ends it.
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

// Runs goes over the runs that the schedule has fired, newest first, fetching them page by page. An error ends it.
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

// PreviewOptions say which ticks are wanted. Every zero field means the default in brackets.
type PreviewOptions struct {
	TimeZone string    // ("UTC")
	Count    int       // at most 100 (5)
	After    time.Time // (now)
}

// PreviewSchedule returns the next ticks of a cron expression, in UTC, without storing anything.
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
