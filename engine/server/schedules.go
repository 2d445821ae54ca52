package server

import (
	"cmp"
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/cron"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
)

// CreateWorkflowSchedule makes a schedule. Its first tick is the first one after now, even if it is
// created disabled.
func (s *Server) CreateWorkflowSchedule(ctx context.Context,
	request *kagziv1.CreateWorkflowScheduleRequest) (*kagziv1.CreateWorkflowScheduleResponse, error) {
	p, err := s.createOf(ctx, request)
	if err != nil {
		return nil, err
	}
	if request.OrUpdate {
		return s.createOrUpdate(ctx, request, p)
	}
	schedule, err := s.store.CreateSchedule(ctx, p)
	if err != nil {
		return nil, err
	}
	return &kagziv1.CreateWorkflowScheduleResponse{Schedule: wire.ScheduleTo(&schedule)}, nil
}

// createOrUpdate makes a schedule, or makes the one that has its name equal to p.Schedule. Another
// call may create or delete that one in between, so it tries again.
func (s *Server) createOrUpdate(ctx context.Context, request *kagziv1.CreateWorkflowScheduleRequest,
	p engine.ScheduleParams) (*kagziv1.CreateWorkflowScheduleResponse, error) {
	wanted := p.Schedule
	if wanted.Name == "" {
		return nil, engine.Invalid("or_update", "needs a name")
	}
	ref := &kagziv1.UpdateWorkflowScheduleRequest{Namespace: wanted.Namespace, ScheduleId: wanted.Name}
	for try := 1; ; try++ {
		updated, err := s.changeSchedule(ctx, "UpdateWorkflowSchedule", ref, "", time.Time{},
			func(schedule *engine.Schedule) error {
				replace(schedule, &wanted, request.Enabled)
				return nil
			})
		if err == nil {
			return &kagziv1.CreateWorkflowScheduleResponse{Schedule: updated, Existed: true}, nil
		}
		if engine.KindOf(err) != engine.KindNotFound {
			return nil, err
		}
		made, err := s.store.CreateSchedule(ctx, p)
		if err == nil {
			return &kagziv1.CreateWorkflowScheduleResponse{Schedule: wire.ScheduleTo(&made)}, nil
		}
		if engine.KindOf(err) != engine.KindExists || try == changeTries {
			return nil, err
		}
	}
}

// replace sets all fields of s that a create sets, except the name and the request. Enabled changes
// only if it is given.
func replace(s, wanted *engine.Schedule, enabled *bool) {
	s.CronExpr, s.TimeZone, s.Queue, s.Type, s.Version = wanted.CronExpr, wanted.TimeZone, wanted.Queue, wanted.Type,
		wanted.Version
	s.Input, s.Timeouts, s.Tags = wanted.Input, wanted.Timeouts, wanted.Tags
	s.RetryPolicy, s.RunRetryPolicy = wanted.RetryPolicy, wanted.RunRetryPolicy
	s.OnFailureWorkflow, s.OnFailureQueue = wanted.OnFailureWorkflow, wanted.OnFailureQueue
	s.ConcurrencyKey, s.ConcurrencyLimit, s.ConcurrencyScope = wanted.ConcurrencyKey, wanted.ConcurrencyLimit,
		wanted.ConcurrencyScope
	s.MaxCatchup, s.Overlap, s.Jitter = wanted.MaxCatchup, wanted.Overlap, wanted.Jitter
	if enabled != nil {
		s.Enabled = *enabled
	}
}

func (s *Server) createOf(ctx context.Context,
	r *kagziv1.CreateWorkflowScheduleRequest) (engine.ScheduleParams, error) {
	p := s.scheduleParams(ctx, "CreateWorkflowSchedule", "")
	overlap, err := overlapOf(r.OverlapPolicy)
	if err != nil {
		return p, err
	}
	scope, err := wire.ScopeOf(r.ConcurrencyScope)
	if err != nil {
		return p, err
	}
	p.Schedule = engine.Schedule{
		ID: engine.NewID(p.Now), Name: r.Name, RequestID: r.RequestId, CronExpr: r.CronExpr, TimeZone: r.TimeZone,
		Enabled: r.Enabled == nil || *r.Enabled, Queue: wire.OrDefault(r.TaskQueue), Type: r.WorkflowType,
		Version: r.GetVersion(),
		Input:   wire.PayloadOf(r.Input), RetryPolicy: wire.RetryPolicyOf(r.RetryPolicy),
		RunRetryPolicy:    wire.RetryPolicyOf(r.RunRetryPolicy),
		Timeouts:          wire.TimeoutsOf(r.Timeouts),
		OnFailureWorkflow: r.OnFailureWorkflow, OnFailureQueue: r.OnFailureTaskQueue, Tags: r.Tags,
		ConcurrencyKey: r.ConcurrencyKey, ConcurrencyLimit: int(r.ConcurrencyLimit), ConcurrencyScope: scope,
		MaxCatchup: engine.DefaultCatchup, Overlap: overlap, Jitter: wire.Milliseconds(r.JitterMs), CreatedAt: p.Now,
		UpdatedAt: p.Now, Revision: 1,
	}
	if p.Schedule.Namespace, err = wire.NamespaceOf(r.Namespace); err != nil {
		return p, err
	}
	if r.MaxCatchup != nil {
		p.Schedule.MaxCatchup = int(*r.MaxCatchup)
	}
	if err := p.Schedule.Validate(); err != nil {
		return p, err
	}
	ticks, err := parseCron(p.Schedule.CronExpr, p.Schedule.TimeZone)
	if err != nil {
		return p, err
	}
	p.Schedule.NextFireAt, err = nextTick(ticks, p.Now)
	p.Schedule.Delay = ticks.Delay(p.Schedule.ID, p.Schedule.NextFireAt, p.Schedule.Jitter)
	return p, err
}

func (s *Server) scheduleParams(ctx context.Context, method, reason string) engine.ScheduleParams {
	now := s.now()
	return engine.ScheduleParams{Method: method, Reason: reason, By: auth.ActorOf(ctx),
		AuditID: engine.NewID(now), Now: now, NamespaceMustExist: !s.known.auto}
}

func overlapOf(p kagziv1.OverlapPolicy) (engine.Overlap, error) {
	if _, known := kagziv1.OverlapPolicy_name[int32(p)]; !known {
		return 0, engine.Invalid("overlap_policy", "has the unknown value %d", p)
	}
	return engine.Overlap(p), nil
}

// parseCron parses an expression and a zone. Its error names the wrong field.
func parseCron(expr, zone string) (*cron.Schedule, error) {
	ticks, err := cron.Parse(expr, zone)
	if refusal, ok := errors.AsType[*cron.Error](err); ok {
		return nil, engine.Invalid(refusal.Field, "%s", refusal.Reason)
	}
	return ticks, err
}

// nextTick returns the first tick after a time. An expression without a further tick is refused.
func nextTick(ticks *cron.Schedule, after time.Time) (time.Time, error) {
	next, ok := ticks.Next(after)
	if !ok {
		return time.Time{}, engine.Invalid("cron_expr", "never fires again: all its years have passed")
	}
	return next, nil
}

// scheduleRef is a request about one schedule.
type scheduleRef interface {
	GetNamespace() string
	GetScheduleId() string
}

// scheduleOf reads the namespace and the id, or name, of a schedule.
func scheduleOf(r scheduleRef) (namespace, ref string, err error) {
	if namespace, err = wire.NamespaceOf(r.GetNamespace()); err != nil {
		return "", "", err
	}
	return namespace, r.GetScheduleId(), engine.CheckName("schedule_id", r.GetScheduleId())
}

// GetWorkflowSchedule returns one schedule with its input.
func (s *Server) GetWorkflowSchedule(ctx context.Context,
	request *kagziv1.GetWorkflowScheduleRequest) (*kagziv1.GetWorkflowScheduleResponse, error) {
	namespace, ref, err := scheduleOf(request)
	if err != nil {
		return nil, err
	}
	schedule, err := s.store.GetSchedule(ctx, namespace, ref)
	if err != nil {
		return nil, err
	}
	return &kagziv1.GetWorkflowScheduleResponse{Schedule: wire.ScheduleTo(&schedule)}, nil
}

// ListWorkflowSchedules returns a page of schedules, newest first, without inputs.
func (s *Server) ListWorkflowSchedules(ctx context.Context,
	request *kagziv1.ListWorkflowSchedulesRequest) (*kagziv1.ListWorkflowSchedulesResponse, error) {
	filter := engine.ScheduleFilter{Queue: request.GetTaskQueue()}
	var err error
	if filter.Namespace, err = wire.NamespaceOf(request.Namespace); err != nil {
		return nil, err
	}
	if err := engine.CheckOptionalName("task_queue", filter.Queue); err != nil {
		return nil, err
	}
	page, err := wire.PageOf(request, request.Page, wire.BelowIDs)
	if err != nil {
		return nil, err
	}
	q, err := queryOf(&query.Schedules, request.Query, s.now())
	if err != nil {
		return nil, err
	}
	schedules := listing[engine.Schedule, *kagziv1.WorkflowSchedule]{
		read: func(ctx context.Context, p engine.Page) ([]engine.Schedule, engine.PageInfo, error) {
			return s.store.ListSchedules(ctx, filter, p)
		},
		message: wire.ScheduleTo, place: func(s *engine.Schedule) engine.Cursor { return engine.Cursor{ID: s.ID} },
	}
	if q != nil {
		schedules.within = spanOf(q.Between("created"))
		filter.Queue = cmp.Or(filter.Queue, q.Only("queue"))
	}
	list, around, err := schedules.page(ctx, request, page, q)
	if err != nil {
		return nil, err
	}
	return &kagziv1.ListWorkflowSchedulesResponse{Schedules: list, Page: around}, nil
}

// PreviewSchedule returns the next ticks of an expression.
func (s *Server) PreviewSchedule(_ context.Context,
	request *kagziv1.PreviewScheduleRequest) (*kagziv1.PreviewScheduleResponse, error) {
	const usual, most = 5, 100
	count := int(request.Count)
	switch {
	case count < 0 || count > most:
		return nil, engine.Invalid("count", "must be between 0 (which means %d) and %d, got %d", usual, most, count)
	case count == 0:
		count = usual
	}
	after, err := wire.TimeOf("after", request.After)
	if err != nil {
		return nil, err
	}
	if after.IsZero() {
		after = s.now()
	}
	ticks, err := parseCron(request.CronExpr, request.TimeZone)
	if err != nil {
		return nil, err
	}
	response := &kagziv1.PreviewScheduleResponse{}
	for _, tick := range ticks.NextN(after, count) {
		response.Ticks = append(response.Ticks, timestamppb.New(tick))
	}
	return response, nil
}
