package world

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// UpdateWorkflowSchedule changes what the request names.
func (w *World) UpdateWorkflowSchedule(ctx context.Context, request *kagziv1.UpdateWorkflowScheduleRequest, _ ...grpc.CallOption) (*kagziv1.UpdateWorkflowScheduleResponse, error) {
	return call(w, ctx, "WorkflowScheduleService/UpdateWorkflowSchedule", func() (*kagziv1.UpdateWorkflowScheduleResponse, error) {
		fireAt, err := timeOf("next_fire_at", request.NextFireAt)
		if err != nil {
			return nil, err
		}
		s, err := w.changeSchedule("UpdateWorkflowSchedule", request, request.Reason, fireAt, func(s *kagziv1.WorkflowSchedule) { update(s, proto.CloneOf(request)) })
		return &kagziv1.UpdateWorkflowScheduleResponse{Schedule: s}, err
	})
}

// update puts what a request names in the place of what is there.
func update(s *kagziv1.WorkflowSchedule, r *kagziv1.UpdateWorkflowScheduleRequest) {
	for _, text := range []struct{ to, from *string }{
		{&s.Name, r.Name}, {&s.CronExpr, r.CronExpr}, {&s.TimeZone, r.TimeZone}, {&s.TaskQueue, r.TaskQueue}, {&s.WorkflowType, r.WorkflowType},
		{&s.Version, r.Version}, {&s.OnFailureWorkflow, r.OnFailureWorkflow}, {&s.OnFailureTaskQueue, r.OnFailureTaskQueue},
	} {
		if text.from != nil {
			*text.to = *text.from
		}
	}
	s.TaskQueue = orDefault(s.TaskQueue)
	if r.Input != nil {
		s.Input = r.Input
	}
	if r.Enabled != nil {
		s.Enabled = *r.Enabled
	}
	if r.MaxCatchup != nil {
		s.MaxCatchup = *r.MaxCatchup
	}
	if r.OverlapPolicy != nil {
		s.OverlapPolicy = *r.OverlapPolicy
	}
	if s.OverlapPolicy != overlapBufferOne {
		s.BufferedTick = nil
	}
	if r.RetryPolicy != nil {
		s.RetryPolicy = r.RetryPolicy
	}
	if r.Timeouts != nil {
		s.Timeouts = r.Timeouts
	}
	if r.Tags != nil {
		s.Tags = r.Tags.Tags
	}
}

// changeSchedule changes a schedule and, where the change asks for it, its next tick: with fireAt set, that is the first one not before
// it. A broken one that nobody mends stays broken, but may be changed otherwise.
func (w *World) changeSchedule(method string, r scheduleRequest, reason string, fireAt time.Time, change func(*kagziv1.WorkflowSchedule)) (*kagziv1.WorkflowSchedule, error) {
	s, err := w.scheduleOf(r)
	if err := first(err, checkReason(reason)); err != nil {
		return nil, err
	}
	wanted := &schedule{WorkflowSchedule: proto.CloneOf(s.WorkflowSchedule)}
	change(wanted.WorkflowSchedule)
	other := wanted.CronExpr != s.CronExpr || wanted.TimeZone != s.TimeZone
	if s.Broken == "" || other || !fireAt.IsZero() {
		if err := w.checkSchedule(wanted); err != nil {
			return nil, err
		}
	}
	if proto.Equal(wanted.WorkflowSchedule, s.WorkflowSchedule) && fireAt.IsZero() {
		return proto.CloneOf(s.WorkflowSchedule), nil
	}
	wanted.UpdatedAt = stamp(w.now)
	s.WorkflowSchedule = wanted.WorkflowSchedule
	switch notBefore := fireAt.Add(-time.Nanosecond); {
	case !fireAt.IsZero():
		w.retime(s, later(notBefore, w.now))
	case other:
		w.retime(s, w.now)
	default:
		w.schedulesChanged()
		w.arm(s)
	}
	w.audited(method, s.Namespace, "schedule", s.ScheduleId, reason, "")
	return proto.CloneOf(s.WorkflowSchedule), nil
}

func orDefault(name string) string {
	if name == "" {
		return "default"
	}
	return name
}
