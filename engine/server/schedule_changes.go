package server

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// This file holds the changes of existing schedules.

// UpdateWorkflowSchedule changes the fields that the request sets.
func (s *Server) UpdateWorkflowSchedule(ctx context.Context,
	request *kagziv1.UpdateWorkflowScheduleRequest) (*kagziv1.UpdateWorkflowScheduleResponse, error) {
	fireAt, err := wire.TimeOf("next_fire_at", request.NextFireAt)
	if err != nil {
		return nil, err
	}
	schedule, err := s.changeSchedule(ctx, "UpdateWorkflowSchedule", request, request.Reason, fireAt,
		func(schedule *engine.Schedule) error {
			return update(schedule, request)
		})
	if err != nil {
		return nil, err
	}
	return &kagziv1.UpdateWorkflowScheduleResponse{Schedule: schedule}, nil
}

// update sets the fields of s that the request sets.
func update(s *engine.Schedule, r *kagziv1.UpdateWorkflowScheduleRequest) error {
	for _, text := range []struct {
		to   *string
		from *string
	}{
		{&s.Name, r.Name}, {&s.CronExpr, r.CronExpr}, {&s.TimeZone, r.TimeZone}, {&s.Queue, r.TaskQueue},
		{&s.Type, r.WorkflowType},
		{&s.Version, r.Version}, {&s.OnFailureWorkflow, r.OnFailureWorkflow}, {&s.OnFailureQueue, r.OnFailureTaskQueue},
	} {
		if text.from != nil {
			*text.to = *text.from
		}
	}
	s.Queue = wire.OrDefault(s.Queue)
	if r.Input != nil {
		s.Input = wire.PayloadOf(r.Input)
	}
	if r.Enabled != nil {
		s.Enabled = *r.Enabled
	}
	if r.MaxCatchup != nil {
		s.MaxCatchup = int(*r.MaxCatchup)
	}
	if r.JitterMs != nil {
		s.Jitter = wire.Milliseconds(*r.JitterMs)
	}
	if !s.Enabled && r.Reason != "" && r.Enabled != nil {
		s.PauseReason = r.Reason
	}
	if r.RetryPolicy != nil { // alone it is for both
		s.RetryPolicy, s.RunRetryPolicy = wire.RetryPolicyOf(r.RetryPolicy), nil
	}
	if r.RunRetryPolicy != nil {
		s.RunRetryPolicy = wire.RetryPolicyOf(r.RunRetryPolicy)
	}
	if r.Timeouts != nil {
		s.Timeouts = wire.TimeoutsOf(r.Timeouts)
	}
	if r.Tags != nil {
		s.Tags = r.Tags.Tags
	}
	var err error
	if r.OverlapPolicy != nil {
		s.Overlap, err = overlapOf(*r.OverlapPolicy)
	}
	return cmp.Or(err, updateKey(s, r))
}

// updateKey sets the concurrency key of the runs. Without a key there is no limit and no scope.
func updateKey(s *engine.Schedule, r *kagziv1.UpdateWorkflowScheduleRequest) (err error) {
	if r.ConcurrencyKey != nil {
		if s.ConcurrencyKey = *r.ConcurrencyKey; s.ConcurrencyKey == "" {
			s.ConcurrencyLimit, s.ConcurrencyScope = 0, engine.ScopeSlot
		}
	}
	if r.ConcurrencyLimit != nil {
		s.ConcurrencyLimit = int(*r.ConcurrencyLimit)
	}
	if r.ConcurrencyScope != nil {
		s.ConcurrencyScope, err = wire.ScopeOf(*r.ConcurrencyScope)
	}
	return err
}

// PauseWorkflowSchedule stops a schedule from firing.
func (s *Server) PauseWorkflowSchedule(ctx context.Context,
	request *kagziv1.PauseWorkflowScheduleRequest) (*kagziv1.PauseWorkflowScheduleResponse, error) {
	schedule, err := s.changeSchedule(ctx, "PauseWorkflowSchedule", request, request.Reason, time.Time{},
		func(schedule *engine.Schedule) error {
			schedule.Enabled = false
			if request.Reason != "" { // a repeated call without one keeps it
				schedule.PauseReason = request.Reason
			}
			return nil
		})
	if err != nil {
		return nil, err
	}
	return &kagziv1.PauseWorkflowScheduleResponse{Schedule: schedule}, nil
}

// ResumeWorkflowSchedule lets a schedule fire again. Without Catchup, NextFireAt does not change, so that
// up to MaxCatchup missed ticks are caught up; with it, NextFireAt becomes the first of those to catch up.
func (s *Server) ResumeWorkflowSchedule(ctx context.Context,
	request *kagziv1.ResumeWorkflowScheduleRequest) (*kagziv1.ResumeWorkflowScheduleResponse, error) {
	if n := request.GetCatchup(); n < 0 || n > engine.MaxCatchup {
		return nil, engine.Invalid("catchup", "must be between 0 (none) and %d, got %d", engine.MaxCatchup, n)
	}
	schedule, err := s.changeSchedule(ctx, "ResumeWorkflowSchedule", request, request.Reason, time.Time{},
		func(schedule *engine.Schedule) error {
			if request.Catchup != nil && !schedule.Enabled {
				skipMissed(schedule, int(*request.Catchup), s.now())
			}
			schedule.Enabled, schedule.PauseReason = true, ""
			return nil
		})
	if err != nil {
		return nil, err
	}
	return &kagziv1.ResumeWorkflowScheduleResponse{Schedule: schedule}, nil
}

// skipMissed moves the next tick of a schedule behind the ticks that were missed, but for the latest
// keep of them. As in the coordinator, the newest tick is missed if it is more than engine.OnTime old.
func skipMissed(s *engine.Schedule, keep int, now time.Time) {
	ticks, err := parseCron(s.CronExpr, s.TimeZone)
	if err != nil || s.Broken != "" || s.NextFireAt.IsZero() || s.NextFireAt.After(now) {
		return
	}
	kept, _ := ticks.Missed(s.NextFireAt.Add(-time.Second), now, keep+1)
	if n := len(kept); n > keep {
		newest := kept[n-1]
		if now.Sub(newest.Add(ticks.Delay(s.ID, newest, s.Jitter))) > engine.OnTime {
			kept = kept[1:]
		}
	}
	next, _ := ticks.Next(now)
	if len(kept) > 0 {
		next = kept[0]
	}
	if s.NextFireAt.Equal(next) {
		return
	}
	s.NextFireAt, s.Delay = next, 0
	if !next.IsZero() {
		s.Delay = ticks.Delay(s.ID, next, s.Jitter)
	}
}

// changeTries is how often a change is tried if another one comes between.
const changeTries = 5

// changeSchedule reads a schedule, changes it, sets its next tick and writes it back. With fireAt,
// the next tick is the first one not before it.
func (s *Server) changeSchedule(
	ctx context.Context, method string, r scheduleRef, reason string, fireAt time.Time,
	change func(*engine.Schedule) error,
) (*kagziv1.WorkflowSchedule, error) {
	namespace, ref, err := scheduleOf(r)
	if err != nil {
		return nil, err
	}
	if err := engine.CheckReason(reason); err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		before, err := s.store.GetSchedule(ctx, namespace, ref)
		if err != nil {
			return nil, err
		}
		p := s.scheduleParams(ctx, method, reason)
		p.Schedule, p.Read = before, before.NextFireAt
		if err := change(&p.Schedule); err != nil {
			return nil, err
		}
		if err := p.Schedule.Validate(); err != nil {
			return nil, err
		}
		if err := retime(&before, &p.Schedule, fireAt, p.Now); err != nil {
			return nil, err
		}
		p.Schedule.UpdatedAt, p.Skipped = p.Now, givenUp(&before, &p.Schedule, p.Now)
		schedule, err := s.store.UpdateSchedule(ctx, p)
		if err == nil {
			return wire.ScheduleTo(&schedule), nil
		}
		if !errors.Is(err, engine.ErrConflict) || try == changeTries {
			return nil, err
		}
	}
}

// retime sets the next tick of a changed schedule: the first after now if its expression or zone
// changed or it was broken; the first from fireAt on if that is set; otherwise it does not change.
// Its delay follows.
// A broken schedule that is not repaired stays broken, but its other fields may change.
func retime(before, after *engine.Schedule, fireAt, now time.Time) error {
	other := after.CronExpr != before.CronExpr || after.TimeZone != before.TimeZone
	if !other && fireAt.IsZero() && before.Broken == "" {
		if after.Jitter != before.Jitter {
			after.Delay = 0 // the coordinator computes that of a tick that is near
			if ticks, err := parseCron(after.CronExpr, after.TimeZone); err == nil && !after.NextFireAt.IsZero() {
				after.Delay = ticks.Delay(after.ID, after.NextFireAt, after.Jitter)
			}
		}
		return nil
	}
	from := now
	if notBefore := fireAt.Add(-time.Nanosecond); !fireAt.IsZero() && notBefore.After(now) {
		from = notBefore
	}
	ticks, err := parseCron(after.CronExpr, after.TimeZone)
	next := time.Time{}
	if err == nil {
		next, err = nextTick(ticks, from)
	}
	if err != nil && !other && fireAt.IsZero() {
		return nil
	}
	if err != nil {
		return err
	}
	after.Broken, after.NextFireAt = "", next
	after.Delay = ticks.Delay(after.ID, next, after.Jitter)
	return nil
}

// givenUp returns how many due ticks a change of NextFireAt skips: those missed while the schedule
// was paused or no server ran, and one that is due now, up to the new next tick. For a broken schedule
// it returns 0, because its ticks are unknown.
func givenUp(before, after *engine.Schedule, now time.Time) int64 {
	from := before.NextFireAt
	if before.Broken != "" || from.IsZero() || from.After(now) || after.NextFireAt.Equal(from) {
		return 0
	}
	ticks, err := parseCron(before.CronExpr, before.TimeZone)
	if err != nil {
		return 0
	}
	until := now
	if next := after.NextFireAt; !next.IsZero() && !next.After(now) {
		until = next.Add(-time.Second)
	}
	_, skipped := ticks.Missed(from.Add(-time.Second), until, 0)
	return skipped
}

// DeleteWorkflowSchedule deletes a schedule. Its runs stay.
func (s *Server) DeleteWorkflowSchedule(ctx context.Context,
	request *kagziv1.DeleteWorkflowScheduleRequest) (*kagziv1.DeleteWorkflowScheduleResponse, error) {
	namespace, ref, err := scheduleOf(request)
	if err != nil {
		return nil, err
	}
	if err := engine.CheckReason(request.Reason); err != nil {
		return nil, err
	}
	now := s.now()
	err = s.store.DeleteSchedule(ctx, engine.DeleteScheduleParams{
		Namespace: namespace, Ref: ref, Reason: request.Reason, By: auth.ActorOf(ctx),
		AuditID: engine.NewID(now), Now: now,
	})
	if engine.KindOf(err) == engine.KindNotFound {
		err = s.unlessDeleted(ctx, namespace, ref, err)
	}
	if err != nil {
		return nil, err
	}
	return &kagziv1.DeleteWorkflowScheduleResponse{
		Deleted: true, Message: "the schedule is deleted; its runs stay"}, nil
}

// unlessDeleted returns nil if ref is the id of a deleted schedule, so that a delete can be
// repeated, otherwise notFound. Names do not count, because another schedule may have the name by
// then.
func (s *Server) unlessDeleted(ctx context.Context, namespace, ref string, notFound error) error {
	id, err := engine.ParseID(ref)
	if err != nil {
		return notFound
	}
	deletion, err := s.lastChange(ctx, namespace, id, func(e *engine.AuditEvent) bool {
		return e.Method == "DeleteWorkflowSchedule" && e.Outcome == "ok"
	})
	if err == nil && deletion == nil {
		err = notFound
	}
	return err
}

// TriggerWorkflowSchedule starts one run now, independent of the ticks.
func (s *Server) TriggerWorkflowSchedule(ctx context.Context,
	request *kagziv1.TriggerWorkflowScheduleRequest) (*kagziv1.TriggerWorkflowScheduleResponse, error) {
	namespace, ref, err := scheduleOf(request)
	if err != nil {
		return nil, err
	}
	if err := engine.CheckRequestID(request.RequestId); err != nil {
		return nil, err
	}
	now := s.now()
	started, err := s.store.TriggerSchedule(ctx, engine.TriggerScheduleParams{
		Namespace: namespace, Ref: ref, RunID: engine.NewID(now), RequestID: request.RequestId,
		By: auth.ActorOf(ctx), AuditID: engine.NewID(now), Now: now,
	})
	if err != nil {
		return nil, err
	}
	return &kagziv1.TriggerWorkflowScheduleResponse{RunId: s.startedTo(started).RunId}, nil
}

// ListScheduleRuns returns a page of a schedule's runs, newest first, without payloads.
func (s *Server) ListScheduleRuns(ctx context.Context,
	request *kagziv1.ListScheduleRunsRequest) (*kagziv1.ListScheduleRunsResponse, error) {
	namespace, ref, err := scheduleOf(request)
	if err != nil {
		return nil, err
	}
	page, err := wire.PageOf(request, request.Page, wire.BelowIDs)
	if err != nil {
		return nil, err
	}
	schedule, err := s.store.GetSchedule(ctx, namespace, ref)
	if err != nil {
		return nil, err
	}
	runs := s.runs(engine.RunFilter{Namespace: namespace, ScheduleID: schedule.ID.String()})
	list, info, err := runs.page(ctx, request, page, nil)
	if err != nil {
		return nil, err
	}
	return &kagziv1.ListScheduleRunsResponse{Runs: list, Page: info}, nil
}
