package world

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// scheduleRequest is a request about one schedule, by its id or its name.
type scheduleRequest interface {
	GetNamespace() string
	GetScheduleId() string
}

func (w *World) scheduleOf(r scheduleRequest) (*schedule, error) {
	namespace, err := namespaceOf(r.GetNamespace())
	ref := r.GetScheduleId()
	if err := first(err, checkName("schedule_id", ref)); err != nil {
		return nil, err
	}
	for _, s := range w.schedules {
		if s.Namespace == namespace && (s.ScheduleId == ref || s.Name == ref) {
			return s, nil
		}
	}
	return nil, notFound("schedule", ref, "no schedule "+ref+" in this namespace")
}

// CreateWorkflowSchedule makes a schedule. Its first tick is the first one after now, also when it begins disabled.
func (w *World) CreateWorkflowSchedule(ctx context.Context, request *kagziv1.CreateWorkflowScheduleRequest, _ ...grpc.CallOption) (*kagziv1.CreateWorkflowScheduleResponse, error) {
	return call(w, ctx, "WorkflowScheduleService/CreateWorkflowSchedule", func() (*kagziv1.CreateWorkflowScheduleResponse, error) {
		r := proto.CloneOf(request)
		s := &schedule{requestID: r.RequestId, WorkflowSchedule: &kagziv1.WorkflowSchedule{
			Name: r.Name, CronExpr: r.CronExpr, TimeZone: r.TimeZone, Enabled: r.Enabled == nil || *r.Enabled, TaskQueue: orDefault(r.TaskQueue),
			WorkflowType: r.WorkflowType, Version: r.GetVersion(), Input: r.Input, RetryPolicy: r.RetryPolicy,
			Timeouts: r.Timeouts, OnFailureWorkflow: r.OnFailureWorkflow, OnFailureTaskQueue: r.OnFailureTaskQueue, Tags: r.Tags,
			MaxCatchup: usualCatchup, OverlapPolicy: r.OverlapPolicy,
		}}
		var err error
		if s.Namespace, err = namespaceOf(r.Namespace); err != nil {
			return nil, err
		}
		if r.MaxCatchup != nil {
			s.MaxCatchup = *r.MaxCatchup
		}
		for _, known := range w.schedules {
			if r.RequestId != "" && known.Namespace == s.Namespace && known.requestID == r.RequestId {
				return &kagziv1.CreateWorkflowScheduleResponse{Schedule: proto.CloneOf(known.WorkflowSchedule)}, nil
			}
		}
		if err := first(checkRequestID(r.RequestId), w.checkSchedule(s), w.enabled(s.Namespace)); err != nil {
			return nil, err
		}
		w.useNamespace(s.Namespace)
		s.ScheduleId, s.CreatedAt, s.UpdatedAt = w.ids.id(w.now), stamp(w.now), stamp(w.now)
		w.schedules = append(w.schedules, s)
		w.retime(s, w.now)
		w.audited("CreateWorkflowSchedule", s.Namespace, "schedule", s.ScheduleId, "", "")
		return &kagziv1.CreateWorkflowScheduleResponse{Schedule: proto.CloneOf(s.WorkflowSchedule)}, nil
	})
}

// checkSchedule refuses a schedule that breaks a limit, or takes the name of another.
func (w *World) checkSchedule(s *schedule) error {
	switch _, known := kagziv1.OverlapPolicy_name[int32(s.OverlapPolicy)]; {
	case !known:
		return invalid("overlap_policy", "has the unknown value %d", s.OverlapPolicy)
	case isID(s.Name):
		return invalid("name", "must not look like an id")
	case s.MaxCatchup < 0 || s.MaxCatchup > maxCatchup:
		return invalid("max_catchup", "must be between 0 (none) and %d, got %d", maxCatchup, s.MaxCatchup)
	}
	err := first(checkOptionalName("name", s.Name), checkName("task_queue", s.TaskQueue), checkName("workflow_type", s.WorkflowType),
		checkPayload("input", s.Input), checkLabels("tags", s.Tags), checkRetryPolicy(s.RetryPolicy))
	if err != nil {
		return err
	}
	if ticks, err := parseCron(s.CronExpr, s.TimeZone); err != nil {
		return err
	} else if _, ok := ticks.next(w.now); !ok {
		return invalid("cron_expr", "never fires again: its years are over")
	}
	for _, other := range w.schedules {
		if s.Name != "" && other.Name == s.Name && other.Namespace == s.Namespace && other.ScheduleId != s.ScheduleId {
			return taken("schedule", other.ScheduleId, "the name "+s.Name+" is taken by schedule "+other.ScheduleId)
		}
	}
	return nil
}

// GetWorkflowSchedule is one schedule with its input.
func (w *World) GetWorkflowSchedule(ctx context.Context, request *kagziv1.GetWorkflowScheduleRequest, _ ...grpc.CallOption) (*kagziv1.GetWorkflowScheduleResponse, error) {
	return call(w, ctx, "WorkflowScheduleService/GetWorkflowSchedule", func() (*kagziv1.GetWorkflowScheduleResponse, error) {
		s, err := w.scheduleOf(request)
		if err != nil {
			return nil, err
		}
		return &kagziv1.GetWorkflowScheduleResponse{Schedule: proto.CloneOf(s.WorkflowSchedule)}, nil
	})
}

// ListWorkflowSchedules is newest first, without inputs.
func (w *World) ListWorkflowSchedules(ctx context.Context, request *kagziv1.ListWorkflowSchedulesRequest, _ ...grpc.CallOption) (*kagziv1.ListWorkflowSchedulesResponse, error) {
	return call(w, ctx, "WorkflowScheduleService/ListWorkflowSchedules", func() (*kagziv1.ListWorkflowSchedulesResponse, error) {
		namespace, err := namespaceOf(request.Namespace)
		if err := first(err, checkOptionalName("task_queue", request.GetTaskQueue())); err != nil {
			return nil, err
		}
		list := slices.Clone(w.schedules)
		slices.SortFunc(list, func(a, b *schedule) int { return strings.Compare(b.ScheduleId, a.ScheduleId) })
		schedules, page, err := pageOf(request, request.Page, listing[*kagziv1.WorkflowSchedule]{
			n: len(list), key: func(i int) string { return list[i].ScheduleId }, falls: true,
			keep: func(i int) bool {
				return list[i].Namespace == namespace && (request.GetTaskQueue() == "" || list[i].TaskQueue == request.GetTaskQueue())
			},
			show: func(i int) *kagziv1.WorkflowSchedule { return list[i].summary() },
		})
		return &kagziv1.ListWorkflowSchedulesResponse{Schedules: schedules, Page: page}, err
	})
}

// ListScheduleRuns is the runs that a schedule has fired, newest first, without their payloads.
func (w *World) ListScheduleRuns(ctx context.Context, request *kagziv1.ListScheduleRunsRequest, _ ...grpc.CallOption) (*kagziv1.ListScheduleRunsResponse, error) {
	return call(w, ctx, "WorkflowScheduleService/ListScheduleRuns", func() (*kagziv1.ListScheduleRunsResponse, error) {
		s, err := w.scheduleOf(request)
		if err != nil {
			return nil, err
		}
		runs, page, err := pageOf(request, request.Page, w.runListing(&runFilter{namespace: s.Namespace, scheduleID: s.ScheduleId}))
		return &kagziv1.ListScheduleRunsResponse{Runs: runs, Page: page}, err
	})
}

// PreviewSchedule is the next ticks of an expression.
func (w *World) PreviewSchedule(ctx context.Context, request *kagziv1.PreviewScheduleRequest, _ ...grpc.CallOption) (*kagziv1.PreviewScheduleResponse, error) {
	return call(w, ctx, "WorkflowScheduleService/PreviewSchedule", func() (*kagziv1.PreviewScheduleResponse, error) {
		const usual, most = 5, 100
		count := int(request.Count)
		if count < 0 || count > most {
			return nil, invalid("count", "must be between 0 (which means %d) and %d, got %d", usual, most, count)
		}
		if count == 0 {
			count = usual
		}
		after, err := timeOf("after", request.After)
		if err != nil {
			return nil, err
		}
		ticks, err := parseCron(request.CronExpr, request.TimeZone)
		if err != nil {
			return nil, err
		}
		if after.IsZero() {
			after = w.now
		}
		response := &kagziv1.PreviewScheduleResponse{}
		for next, ok := ticks.next(after); ok && len(response.Ticks) < count; next, ok = ticks.next(next) {
			response.Ticks = append(response.Ticks, timestamppb.New(next))
		}
		return response, nil
	})
}

// TriggerWorkflowSchedule fires once now, beside the ticks.
func (w *World) TriggerWorkflowSchedule(ctx context.Context, request *kagziv1.TriggerWorkflowScheduleRequest, _ ...grpc.CallOption) (*kagziv1.TriggerWorkflowScheduleResponse, error) {
	return call(w, ctx, "WorkflowScheduleService/TriggerWorkflowSchedule", func() (*kagziv1.TriggerWorkflowScheduleResponse, error) {
		s, err := w.scheduleOf(request)
		if err := first(err, checkRequestID(request.RequestId)); err != nil {
			return nil, err
		}
		answer, known, err := w.repeated(s.Namespace, request.RequestId, "trigger "+s.ScheduleId)
		if err != nil || known {
			return &kagziv1.TriggerWorkflowScheduleResponse{RunId: answer.runID}, err
		}
		if err := w.enabled(s.Namespace); err != nil {
			return nil, err
		}
		m := w.templated(s)
		m.ExternalId = "schedule:" + s.ScheduleId + ":trigger:" + m.RunId
		r := w.begins(m, planOf(s.WorkflowType), w.now)
		s.TotalRuns++
		w.schedulesChanged()
		w.remember(s.Namespace, request.RequestId, answered{runID: r.RunId, content: "trigger " + s.ScheduleId})
		w.audited("TriggerWorkflowSchedule", s.Namespace, "schedule", s.ScheduleId, "", "run "+r.RunId)
		return &kagziv1.TriggerWorkflowScheduleResponse{RunId: r.RunId}, nil
	})
}

// DeleteWorkflowSchedule deletes a schedule. The runs that it fired stay.
func (w *World) DeleteWorkflowSchedule(ctx context.Context, request *kagziv1.DeleteWorkflowScheduleRequest, _ ...grpc.CallOption) (*kagziv1.DeleteWorkflowScheduleResponse, error) {
	return call(w, ctx, "WorkflowScheduleService/DeleteWorkflowSchedule", func() (*kagziv1.DeleteWorkflowScheduleResponse, error) {
		s, err := w.scheduleOf(request)
		if err := first(err, checkReason(request.Reason)); err != nil {
			return nil, err
		}
		s.armed++
		w.schedules = without(w.schedules, s)
		w.schedulesChanged()
		w.audited("DeleteWorkflowSchedule", s.Namespace, "schedule", s.ScheduleId, request.Reason, s.Name)
		return &kagziv1.DeleteWorkflowScheduleResponse{Deleted: true, Message: "the schedule is deleted; the runs that it fired stay"}, nil
	})
}

// PauseWorkflowSchedule keeps a schedule from firing.
func (w *World) PauseWorkflowSchedule(ctx context.Context, request *kagziv1.PauseWorkflowScheduleRequest, _ ...grpc.CallOption) (*kagziv1.PauseWorkflowScheduleResponse, error) {
	return call(w, ctx, "WorkflowScheduleService/PauseWorkflowSchedule", func() (*kagziv1.PauseWorkflowScheduleResponse, error) {
		s, err := w.changeSchedule("PauseWorkflowSchedule", request, request.Reason, time.Time{}, func(s *kagziv1.WorkflowSchedule) { s.Enabled = false })
		return &kagziv1.PauseWorkflowScheduleResponse{Schedule: s}, err
	})
}

// ResumeWorkflowSchedule lets a schedule fire again. The ticks missed meanwhile are caught up.
func (w *World) ResumeWorkflowSchedule(ctx context.Context, request *kagziv1.ResumeWorkflowScheduleRequest, _ ...grpc.CallOption) (*kagziv1.ResumeWorkflowScheduleResponse, error) {
	return call(w, ctx, "WorkflowScheduleService/ResumeWorkflowSchedule", func() (*kagziv1.ResumeWorkflowScheduleResponse, error) {
		s, err := w.changeSchedule("ResumeWorkflowSchedule", request, request.Reason, time.Time{}, func(s *kagziv1.WorkflowSchedule) { s.Enabled = true })
		return &kagziv1.ResumeWorkflowScheduleResponse{Schedule: s}, err
	})
}
