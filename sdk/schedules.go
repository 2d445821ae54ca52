package kagzi

import (
	"cmp"
	"context"
	"fmt"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
	"go.opentelemetry.io/otel/attribute"
)

// OverlapPolicy selects what happens at a tick while an earlier run of the schedule is active.
type OverlapPolicy int

// Overlap policies.
const (
	OverlapAllow     OverlapPolicy = iota // start the run anyway
	OverlapSkip                           // skip the tick and count it
	OverlapBufferOne                      // one tick waits until the active run ends; more are skipped
)

func (p OverlapPolicy) wire() kagziv1.OverlapPolicy {
	if p < OverlapAllow { // 0 would be no policy; the server rejects unknown values
		return kagziv1.OverlapPolicy(p)
	}
	return kagziv1.OverlapPolicy(p + 1)
}

func overlapOf(p kagziv1.OverlapPolicy) OverlapPolicy { return OverlapPolicy(max(p, 1) - 1) }

// ScheduleOptions configures a schedule and its runs. A field that is zero has the default in
// brackets.
type ScheduleOptions struct {
	Name       string        // unique within the namespace (none)
	Queue      string        // ("default")
	Version    string        // version of the runs, as in StartOptions (none)
	TimeZone   string        // IANA time zone of the cron expression ("UTC")
	Overlap    OverlapPolicy // (OverlapAllow)
	MaxCatchup int           // most missed ticks to fire after downtime; -1 for none (100)
	Paused     bool          // create it paused (false)

	// Jitter is how much later than a tick its run may start, always before the next tick; the time
	// is fixed for each tick. At most 24 h (none).
	Jitter time.Duration
	// OrUpdate makes CreateSchedule replace the settings of the schedule that has the Name, if there
	// is one. Paused pauses it too; without, it stays paused or enabled (false).
	OrUpdate bool

	// The remaining fields apply to the runs, as in StartOptions.
	StepRetry        *Retry            // for steps without their own policy (3 attempts)
	RunRetry         *Retry            // for a run itself (not retried)
	Retry            *Retry            // Deprecated: use StepRetry and RunRetry, as in StartOptions.
	StepTimeout      time.Duration     // of one attempt of a step (600 s)
	HeartbeatTimeout time.Duration     // lease between heartbeats, if longer than the server's (the server's)
	ExecutionTimeout time.Duration     // of the whole run (none)
	OnFailure        string            // workflow type started when a run fails or times out (none)
	OnFailureQueue   string            // (the run's own queue)
	Tags             map[string]string // searchable (none)
	ConcurrencyKey   string            // at most ConcurrencyLimit runs of the type and key at a time (none)
	ConcurrencyLimit int               // (1)
	ConcurrencyScope ConcurrencyScope  // (ScopeSlot)

	// RequestID identifies the call: repeating it returns the same schedule (a new UUIDv7).
	RequestID string
}

// Schedule is a handle to one schedule. Making a handle does not call the server.
type Schedule struct {
	c  *Client
	id string
}

// Schedule returns a handle to the schedule with an id.
func (c *Client) Schedule(scheduleID string) *Schedule { return &Schedule{c: c, id: scheduleID} }

// ID returns the schedule's id.
func (s *Schedule) ID() string { return s.id }

// CreateSchedule creates a schedule that starts a run of a workflow type at each tick of a cron
// expression. The expression has five fields (minute first), six or seven (seconds first, the year
// last), is a name such as @hourly, or an interval such as "@every 90s", which counts from 1970 in
// UTC. Each tick fires once. If the name is taken, the error is CONFLICT, unless OrUpdate is set.
func CreateSchedule[In any](ctx context.Context, c *Client, workflowType, cron string, in In,
	opts ScheduleOptions) (*Schedule, error) {
	input, err := encode(c.options.Codec, in, inputInfo(workflowType, ""))
	if err != nil {
		return nil, fmt.Errorf("kagzi: input of workflow type %s: %w", workflowType, err)
	}
	warnLarge(c.options.Logger, "input", input, "type", workflowType)
	id, err := requestID(opts.RequestID)
	if err != nil {
		return nil, err
	}
	req := &kagziv1.CreateWorkflowScheduleRequest{
		Namespace:          c.options.Namespace,
		TaskQueue:          cmp.Or(opts.Queue, "default"),
		WorkflowType:       workflowType,
		CronExpr:           cron,
		Input:              input,
		Enabled:            enabledOf(opts),
		Version:            named(opts.Version),
		TimeZone:           opts.TimeZone,
		OverlapPolicy:      opts.Overlap.wire(),
		Name:               opts.Name,
		Timeouts:           timeouts(opts.StepTimeout, opts.HeartbeatTimeout, opts.ExecutionTimeout),
		OnFailureWorkflow:  opts.OnFailure,
		OnFailureTaskQueue: opts.OnFailureQueue,
		Tags:               opts.Tags,
		RequestId:          id,
		JitterMs:           convert.WholeMs(opts.Jitter),
		OrUpdate:           opts.OrUpdate,
		ConcurrencyKey:     opts.ConcurrencyKey,
		ConcurrencyLimit:   convert.Narrow(opts.ConcurrencyLimit),
		ConcurrencyScope:   opts.ConcurrencyScope.wire(),
	}
	switch opts.MaxCatchup {
	case 0:
	case -1:
		req.MaxCatchup = new(int32(0))
	default: // the server rejects values below -1
		req.MaxCatchup = new(convert.Narrow(opts.MaxCatchup))
	}
	req.RetryPolicy, req.RunRetryPolicy = policies(opts.StepRetry, opts.RunRetry, opts.Retry)
	resp, err := c.schedules.CreateWorkflowSchedule(ctx, req)
	if err != nil {
		return c.scheduledBefore(ctx, req, opts.RequestID, callError(ctx, err))
	}
	return c.Schedule(resp.GetSchedule().GetScheduleId()), nil
}

// enabledOf returns nil where an existing schedule stays as it is.
func enabledOf(opts ScheduleOptions) *bool {
	if opts.OrUpdate && !opts.Paused {
		return nil
	}
	return new(!opts.Paused)
}

// ScheduleUpdate changes a schedule; nil and zero fields keep their values. Use new for pointers:
// ScheduleUpdate{Cron: new("0 6 * * *")}.
type ScheduleUpdate struct {
	Name         *string // "" removes the name
	WorkflowType *string
	Cron         *string
	TimeZone     *string
	Queue        *string
	Version      *string
	Overlap      *OverlapPolicy
	MaxCatchup   *int // 0 for none
	Jitter       *time.Duration
	NextFireAt   *time.Time
	Input        InputValue // from InputOf
	// StepRetry without RunRetry ends retries of the run itself. RunRetry without StepRetry keeps the
	// policy of the steps.
	StepRetry      *Retry
	RunRetry       *Retry
	Retry          *Retry // Deprecated: use StepRetry and RunRetry, as in StartOptions.
	Timeouts       *ScheduleTimeouts
	OnFailure      *string
	OnFailureQueue *string
	ConcurrencyKey *string // "" removes the key, with its limit and scope
	// ConcurrencyLimit and ConcurrencyScope are for the key that the schedule has.
	ConcurrencyLimit *int
	ConcurrencyScope *ConcurrencyScope
	Tags             *map[string]string // replaces all tags
	Reason           string             // for the audit log
}

// ScheduleTimeouts are the timeouts of a schedule's runs, as in StartOptions.
type ScheduleTimeouts struct {
	Step, Heartbeat, Execution time.Duration
}

// newInput returns the schedule's new input, nil to keep the stored one. A codec binds the input to
// the workflow type, so the input must be encoded again when the type changes.
func (s *Schedule) newInput(ctx context.Context, u *ScheduleUpdate) (*kagziv1.Payload, error) {
	codec := s.c.options.Codec
	if codec == nil || u.Input.encode == nil && u.WorkflowType == nil {
		return u.Input.payload(nil, PayloadInfo{})
	}
	old, err := s.Describe(ctx)
	if err != nil {
		return nil, err
	}
	info := inputInfo(old.WorkflowType, "")
	if u.WorkflowType != nil {
		info.WorkflowType = *u.WorkflowType
	}
	if u.Input.encode != nil || info.WorkflowType == old.WorkflowType {
		return u.Input.payload(codec, info)
	}
	data, err := unpack(codec, old.input, inputInfo(old.WorkflowType, ""))
	if err != nil {
		return nil, fmt.Errorf("kagzi: input of schedule %s: %w", s.id, err)
	}
	return pack(codec, data, info)
}

// Update applies the changes in one commit. Runs that have been started are not affected.
func (s *Schedule) Update(ctx context.Context, u ScheduleUpdate) (*ScheduleDetails, error) {
	input, err := s.newInput(ctx, &u)
	if err != nil {
		return nil, err
	}
	warnLarge(s.c.options.Logger, "input", input, "schedule", s.id)
	req := &kagziv1.UpdateWorkflowScheduleRequest{
		Namespace: s.c.options.Namespace, ScheduleId: s.id, Name: u.Name, WorkflowType: u.WorkflowType,
		CronExpr: u.Cron,
		TimeZone: u.TimeZone, TaskQueue: u.Queue, Version: u.Version, Input: input,
		OnFailureWorkflow: u.OnFailure, OnFailureTaskQueue: u.OnFailureQueue, Reason: u.Reason,
	}
	if u.Overlap != nil {
		req.OverlapPolicy = u.Overlap.wire().Enum()
	}
	if u.MaxCatchup != nil {
		req.MaxCatchup = new(convert.Narrow(*u.MaxCatchup))
	}
	if u.Jitter != nil {
		req.JitterMs = new(convert.WholeMs(*u.Jitter))
	}
	req.ConcurrencyKey = u.ConcurrencyKey
	if u.ConcurrencyLimit != nil {
		req.ConcurrencyLimit = new(convert.Narrow(*u.ConcurrencyLimit))
	}
	if u.ConcurrencyScope != nil {
		req.ConcurrencyScope = u.ConcurrencyScope.wire().Enum()
	}
	if u.NextFireAt != nil {
		req.NextFireAt = convert.Timestamp(*u.NextFireAt)
	}
	req.RetryPolicy, req.RunRetryPolicy = policies(u.StepRetry, u.RunRetry, u.Retry)
	if t := u.Timeouts; t != nil {
		req.Timeouts = &kagziv1.TimeoutConfig{
			StartToCloseTimeoutMs: convert.WholeMs(t.Step), HeartbeatTimeoutMs: convert.WholeMs(t.Heartbeat),
			ExecutionTimeoutMs: convert.WholeMs(t.Execution),
		}
	}
	if u.Tags != nil {
		req.Tags = &kagziv1.ScheduleTags{Tags: *u.Tags}
	}
	resp, err := s.c.schedules.UpdateWorkflowSchedule(ctx, req)
	if err != nil {
		return nil, callError(ctx, err)
	}
	return newScheduleDetails(s.c, resp.GetSchedule()), nil
}

// Pause stops the schedule from firing. The reason is shown with the schedule. Pausing a paused
// schedule is no error.
func (s *Schedule) Pause(ctx context.Context, reason string) error {
	_, err := s.c.schedules.PauseWorkflowSchedule(ctx, &kagziv1.PauseWorkflowScheduleRequest{
		Namespace: s.c.options.Namespace, ScheduleId: s.id, Reason: reason,
	})
	return callError(ctx, err)
}

// Resume lets a paused schedule fire again. Ticks missed while paused are skipped, and counted so;
// ResumeCatchingUp fires some of them. A tick that is at most 10 s old is not missed. A server of before
// 2026-11-28 fires up to MaxCatchup missed ticks.
func (s *Schedule) Resume(ctx context.Context, reason string) error {
	return s.ResumeCatchingUp(ctx, 0, reason)
}

// ResumeCatchingUp is Resume that first fires the latest of the ticks missed while paused: at most this
// many, and at most the schedule's MaxCatchup.
func (s *Schedule) ResumeCatchingUp(ctx context.Context, most int, reason string) error {
	catchup := convert.Narrow(most)
	_, err := s.c.schedules.ResumeWorkflowSchedule(ctx, &kagziv1.ResumeWorkflowScheduleRequest{
		Namespace: s.c.options.Namespace, ScheduleId: s.id, Reason: reason, Catchup: &catchup,
	})
	return callError(ctx, err)
}

// TriggerOptions configures Trigger. A field that is zero has the default in brackets.
type TriggerOptions struct {
	RequestID string // identifies the call, as in StartOptions (a new UUIDv7)
}

// Trigger fires the schedule once now, in addition to its ticks, and returns the run.
func (s *Schedule) Trigger(ctx context.Context, opts TriggerOptions) (*Run, error) {
	id, err := requestID(opts.RequestID)
	if err != nil {
		return nil, err
	}
	ctx, span := s.c.traceCall(ctx, "trigger schedule", attribute.String("kagzi.schedule_id", s.id))
	resp, err := s.c.schedules.TriggerWorkflowSchedule(ctx, &kagziv1.TriggerWorkflowScheduleRequest{
		Namespace: s.c.options.Namespace, ScheduleId: s.id, RequestId: id,
	})
	endCall(ctx, span, err)
	if err != nil {
		return nil, callError(ctx, err)
	}
	return s.c.Run(resp.GetRunId()), nil
}

// BackfillOptions selects past ticks. A field that is zero has the default in brackets.
type BackfillOptions struct {
	From   time.Time // the first tick may be at this time (required)
	To     time.Time // the last tick may be at this time (now)
	Reason string    // for the audit log
}

// BackfilledTick is a tick of a backfill, with its run.
type BackfilledTick struct {
	Tick    time.Time
	Run     *Run
	Existed bool // the tick had fired before
}

// Backfill starts the runs of past ticks that have none yet, at most 1,000 ticks, independent of
// the overlap policy and of a pause. The runs have the ids of their ticks, so it can be repeated.
func (s *Schedule) Backfill(ctx context.Context, opts BackfillOptions) ([]BackfilledTick, error) {
	resp, err := s.c.schedules.BackfillWorkflowSchedule(ctx, &kagziv1.BackfillWorkflowScheduleRequest{
		Namespace: s.c.options.Namespace, ScheduleId: s.id, From: convert.Timestamp(opts.From),
		To: convert.Timestamp(opts.To), Reason: opts.Reason,
	})
	if err != nil {
		return nil, callError(ctx, err)
	}
	ticks := make([]BackfilledTick, len(resp.GetTicks()))
	for i, t := range resp.GetTicks() {
		ticks[i] = BackfilledTick{Tick: convert.When(t.GetTick()), Run: s.c.Run(t.GetRunId()), Existed: t.GetExisted()}
	}
	return ticks, nil
}

// Delete deletes the schedule. Runs that it started remain.
func (s *Schedule) Delete(ctx context.Context, reason string) error {
	_, err := s.c.schedules.DeleteWorkflowSchedule(ctx, &kagziv1.DeleteWorkflowScheduleRequest{
		Namespace: s.c.options.Namespace, ScheduleId: s.id, Reason: reason,
	})
	return callError(ctx, err)
}
