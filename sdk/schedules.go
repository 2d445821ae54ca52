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

// OverlapPolicy says what a tick does while the run of an earlier one is active.
type OverlapPolicy int

// The overlap policies.
const (
	OverlapAllow     OverlapPolicy = iota // the tick starts its run beside it
	OverlapSkip                           // the tick is skipped, and counted
	OverlapBufferOne                      // one tick waits for the active run to end; further ones are skipped
)

func (p OverlapPolicy) wire() kagziv1.OverlapPolicy {
	if p < OverlapAllow { // not 0, which would be no policy at all: the server refuses what it does not know
		return kagziv1.OverlapPolicy(p)
	}
	return kagziv1.OverlapPolicy(p + 1)
}

func overlapOf(p kagziv1.OverlapPolicy) OverlapPolicy { return OverlapPolicy(max(p, 1) - 1) }

// ScheduleOptions say how the runs of a schedule are started and run. Every zero field means the default in brackets.
type ScheduleOptions struct {
	Name       string        // unique within the namespace (none)
	Queue      string        // ("default")
	Version    string        // of the runs, as in StartOptions (none)
	TimeZone   string        // IANA name, in which the expression is read ("UTC")
	Overlap    OverlapPolicy // (OverlapAllow)
	MaxCatchup int           // missed ticks that are replayed after downtime; -1 none (100)
	Paused     bool          // created without firing

	// What follows is of the runs, as in StartOptions.
	Retry            *Retry            // (3 attempts for steps, no retry of the run)
	StepTimeout      time.Duration     // of one attempt of one step (600 s)
	HeartbeatTimeout time.Duration     // lease without contact (the server's)
	ExecutionTimeout time.Duration     // of the whole run (none)
	OnFailure        string            // workflow type that is started when a run fails or times out (none)
	OnFailureQueue   string            // (the run's own queue)
	Tags             map[string]string // searchable (none)

	// RequestID names this one call: repeated with the same id it returns the same schedule (a fresh UUIDv7).
	RequestID string
}

// Schedule is a handle on one schedule. Making one asks nothing of the server.
type Schedule struct {
	c  *Client
	id string
}

// Schedule returns a handle on a schedule by its id.
func (c *Client) Schedule(scheduleID string) *Schedule { return &Schedule{c: c, id: scheduleID} }

// ID is the schedule's id.
func (s *Schedule) ID() string { return s.id }

// CreateSchedule creates a schedule that starts a run of a workflow type with the input at each
// tick of a cron expression: five fields (minute first), or six or seven with seconds first and the
// year last, or @hourly and the like. Each tick fires once.
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
		Enabled:            new(!opts.Paused),
		Version:            named(opts.Version),
		TimeZone:           opts.TimeZone,
		OverlapPolicy:      opts.Overlap.wire(),
		Name:               opts.Name,
		Timeouts:           timeouts(opts.StepTimeout, opts.HeartbeatTimeout, opts.ExecutionTimeout),
		OnFailureWorkflow:  opts.OnFailure,
		OnFailureTaskQueue: opts.OnFailureQueue,
		Tags:               opts.Tags,
		RequestId:          id,
	}
	switch opts.MaxCatchup {
	case 0:
	case -1:
		req.MaxCatchup = new(int32(0))
	default: // the server refuses what is less
		req.MaxCatchup = new(convert.Narrow(opts.MaxCatchup))
	}
	if opts.Retry != nil {
		req.RetryPolicy = opts.Retry.policy()
	}
	resp, err := c.schedules.CreateWorkflowSchedule(ctx, req)
	if err != nil {
		return c.scheduledBefore(ctx, req, opts.RequestID, callError(ctx, err))
	}
	return c.Schedule(resp.GetSchedule().GetScheduleId()), nil
}

// ScheduleUpdate names what is to change about a schedule: what is nil, or zero, stays as it is. With new(v) a value is
// named on the spot: ScheduleUpdate{Cron: new("0 6 * * *")}.
type ScheduleUpdate struct {
	Name           *string // "" takes it away
	WorkflowType   *string
	Cron           *string
	TimeZone       *string
	Queue          *string
	Version        *string
	Overlap        *OverlapPolicy
	MaxCatchup     *int // missed ticks that are replayed; 0 none
	NextFireAt     *time.Time
	Input          InputValue // from InputOf
	Retry          *Retry
	Timeouts       *ScheduleTimeouts
	OnFailure      *string
	OnFailureQueue *string
	Tags           *map[string]string // replaces all tags
	Reason         string             // for the audit log
}

// ScheduleTimeouts are the timeouts of a schedule's runs, as in StartOptions.
type ScheduleTimeouts struct {
	Step, Heartbeat, Execution time.Duration
}

// newInput is what the schedule's input is to become, nil when it stays as it is stored. A codec
// binds the input to the workflow type, so that one of the two cannot change without the other.
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

// Update changes what u names, in one commit. Runs that have been fired stay as they are.
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
	if u.NextFireAt != nil {
		req.NextFireAt = convert.Timestamp(*u.NextFireAt)
	}
	if u.Retry != nil {
		req.RetryPolicy = u.Retry.policy()
	}
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

// Pause stops the schedule from firing. It is no error to pause it again.
func (s *Schedule) Pause(ctx context.Context, reason string) error {
	_, err := s.c.schedules.PauseWorkflowSchedule(ctx, &kagziv1.PauseWorkflowScheduleRequest{
		Namespace: s.c.options.Namespace, ScheduleId: s.id, Reason: reason,
	})
	return callError(ctx, err)
}

// Resume lets a paused schedule fire again, the ticks that it has missed first, up to its MaxCatchup.
func (s *Schedule) Resume(ctx context.Context, reason string) error {
	_, err := s.c.schedules.ResumeWorkflowSchedule(ctx, &kagziv1.ResumeWorkflowScheduleRequest{
		Namespace: s.c.options.Namespace, ScheduleId: s.id, Reason: reason,
	})
	return callError(ctx, err)
}

// TriggerOptions say how a schedule is fired by hand. Every zero field means the default in brackets.
type TriggerOptions struct {
	RequestID string // names this one call, as in StartOptions (a fresh UUIDv7)
}

// Trigger fires the schedule once now, beside its ticks, and returns the run.
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

// Delete deletes the schedule; the runs that it fired stay.
func (s *Schedule) Delete(ctx context.Context, reason string) error {
	_, err := s.c.schedules.DeleteWorkflowSchedule(ctx, &kagziv1.DeleteWorkflowScheduleRequest{
		Namespace: s.c.options.Namespace, ScheduleId: s.id, Reason: reason,
	})
	return callError(ctx, err)
}
