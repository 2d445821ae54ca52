package cli

import (
	"context"
	"strings"
	"time"
	_ "time/tzdata" // the same zones on every machine

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const scheduleID = "01936b2e-0000-7000-8000-0000000000a1"

func (f *fake) findSchedule(method, id string, request proto.Message) (*kagziv1.WorkflowSchedule, error) {
	if err := f.note(method, proto.Clone(request)); err != nil {
		return nil, err
	}
	return f.scheduleOf(id, method == "GetWorkflowSchedule") // only Get accepts a name
}

func (f *fake) scheduleOf(id string, orName bool) (*kagziv1.WorkflowSchedule, error) {
	for _, s := range f.schedules {
		if s.ScheduleId == id || orName && s.Name == id {
			return s, nil
		}
	}
	st, err := status.New(codes.NotFound, "not found").WithDetails(
		&kagziv1.ErrorDetail{Subject: "schedule", SubjectId: strings.ToValidUTF8(id, "?")})
	if err != nil {
		return nil, err
	}
	return nil, st.Err()
}

func (f *fake) CreateWorkflowSchedule(_ context.Context, r *kagziv1.CreateWorkflowScheduleRequest,
	_ ...grpc.CallOption) (*kagziv1.CreateWorkflowScheduleResponse, error) {
	if err := f.note("CreateWorkflowSchedule", r); err != nil {
		return nil, err
	}
	s := &kagziv1.WorkflowSchedule{
		Namespace: r.Namespace, ScheduleId: scheduleID, TaskQueue: r.TaskQueue, WorkflowType: r.WorkflowType,
		CronExpr: r.CronExpr, Version: r.GetVersion(), Enabled: r.Enabled == nil || *r.Enabled,
		Input: r.Input, MaxCatchup: 100, CreatedAt: at(0), UpdatedAt: at(0), TimeZone: r.TimeZone,
		OverlapPolicy: r.OverlapPolicy, Name: r.Name,
		RetryPolicy: r.RetryPolicy, Timeouts: r.Timeouts, OnFailureWorkflow: r.OnFailureWorkflow,
		OnFailureTaskQueue: r.OnFailureTaskQueue, Tags: r.Tags, JitterMs: r.JitterMs,
	}
	if r.MaxCatchup != nil {
		s.MaxCatchup = *r.MaxCatchup
	}
	f.schedules = append(f.schedules, s)
	return &kagziv1.CreateWorkflowScheduleResponse{Schedule: s, Existed: r.OrUpdate}, nil
}

func (f *fake) GetWorkflowSchedule(_ context.Context, r *kagziv1.GetWorkflowScheduleRequest,
	_ ...grpc.CallOption) (*kagziv1.GetWorkflowScheduleResponse, error) {
	s, err := f.findSchedule("GetWorkflowSchedule", r.ScheduleId, r)
	return &kagziv1.GetWorkflowScheduleResponse{Schedule: s}, err
}

func (f *fake) ListWorkflowSchedules(_ context.Context, r *kagziv1.ListWorkflowSchedulesRequest,
	_ ...grpc.CallOption) (*kagziv1.ListWorkflowSchedulesResponse, error) {
	if err := f.note("ListWorkflowSchedules", proto.CloneOf(r)); err != nil {
		return nil, err
	}
	var chosen []*kagziv1.WorkflowSchedule
	for _, s := range f.schedules {
		if r.TaskQueue == nil || s.TaskQueue == *r.TaskQueue {
			chosen = append(chosen, s)
		}
	}
	schedules, page, err := pageOf(chosen, r.Page)
	return &kagziv1.ListWorkflowSchedulesResponse{Schedules: schedules, Page: page}, err
}

// UpdateWorkflowSchedule changes the fields that are set; messages are replaced as a whole.
func (f *fake) UpdateWorkflowSchedule(_ context.Context, r *kagziv1.UpdateWorkflowScheduleRequest,
	_ ...grpc.CallOption) (*kagziv1.UpdateWorkflowScheduleResponse, error) {
	s, err := f.findSchedule("UpdateWorkflowSchedule", r.ScheduleId, r)
	if err != nil {
		return nil, err
	}
	from, to := r.ProtoReflect(), s.ProtoReflect()
	fields := from.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		target := to.Descriptor().Fields().ByName(field.Name())
		if target != nil && field.Name() != "tags" && field.HasPresence() && from.Has(field) {
			to.Set(target, from.Get(field))
		}
	}
	if r.Tags != nil {
		s.Tags = r.Tags.Tags
	}
	return &kagziv1.UpdateWorkflowScheduleResponse{Schedule: s}, nil
}

func (f *fake) DeleteWorkflowSchedule(_ context.Context, r *kagziv1.DeleteWorkflowScheduleRequest,
	_ ...grpc.CallOption) (*kagziv1.DeleteWorkflowScheduleResponse, error) {
	_, err := f.findSchedule("DeleteWorkflowSchedule", r.ScheduleId, r)
	return &kagziv1.DeleteWorkflowScheduleResponse{Deleted: true, Message: "the schedule is deleted"}, err
}

func (f *fake) PauseWorkflowSchedule(_ context.Context, r *kagziv1.PauseWorkflowScheduleRequest,
	_ ...grpc.CallOption) (*kagziv1.PauseWorkflowScheduleResponse, error) {
	s, err := f.findSchedule("PauseWorkflowSchedule", r.ScheduleId, r)
	if err == nil {
		s.Enabled, s.NextFireAt, s.PauseReason = false, nil, r.Reason
	}
	return &kagziv1.PauseWorkflowScheduleResponse{Schedule: s}, err
}

func (f *fake) ResumeWorkflowSchedule(_ context.Context, r *kagziv1.ResumeWorkflowScheduleRequest,
	_ ...grpc.CallOption) (*kagziv1.ResumeWorkflowScheduleResponse, error) {
	s, err := f.findSchedule("ResumeWorkflowSchedule", r.ScheduleId, r)
	if err == nil {
		s.Enabled, s.NextFireAt = true, at(f.resumed)
	}
	return &kagziv1.ResumeWorkflowScheduleResponse{Schedule: s}, err
}

func (f *fake) BackfillWorkflowSchedule(_ context.Context, r *kagziv1.BackfillWorkflowScheduleRequest,
	_ ...grpc.CallOption) (*kagziv1.BackfillWorkflowScheduleResponse, error) {
	_, err := f.findSchedule("BackfillWorkflowSchedule", r.ScheduleId, r)
	return &kagziv1.BackfillWorkflowScheduleResponse{Ticks: []*kagziv1.BackfilledTick{
		{Tick: at(-120 * time.Minute), RunId: "01936b2e-0000-7000-8000-0000000000b1", Existed: true},
		{Tick: at(-60 * time.Minute), RunId: "01936b2e-0000-7000-8000-0000000000b2"},
	}}, err
}

func (f *fake) TriggerWorkflowSchedule(_ context.Context, r *kagziv1.TriggerWorkflowScheduleRequest,
	_ ...grpc.CallOption) (*kagziv1.TriggerWorkflowScheduleResponse, error) {
	_, err := f.findSchedule("TriggerWorkflowSchedule", r.ScheduleId, r)
	return &kagziv1.TriggerWorkflowScheduleResponse{RunId: "run-1"}, err
}

func (f *fake) ListScheduleRuns(_ context.Context, r *kagziv1.ListScheduleRunsRequest,
	_ ...grpc.CallOption) (*kagziv1.ListScheduleRunsResponse, error) {
	if _, err := f.findSchedule("ListScheduleRuns", r.ScheduleId, r); err != nil {
		return nil, err
	}
	runs, page, err := pageOf(f.runs, r.Page)
	return &kagziv1.ListScheduleRunsResponse{Runs: runs, Page: page}, err
}

// PreviewSchedule treats every expression as hourly, except invalid ones.
func (f *fake) PreviewSchedule(_ context.Context, r *kagziv1.PreviewScheduleRequest,
	_ ...grpc.CallOption) (*kagziv1.PreviewScheduleResponse, error) {
	if err := f.note("PreviewSchedule", r); err != nil {
		return nil, err
	}
	answer := &kagziv1.PreviewScheduleResponse{}
	after := noon
	if r.After != nil {
		after = r.After.AsTime()
	}
	for i := range r.Count {
		answer.Ticks = append(answer.Ticks, timestamppb.New(
			after.Truncate(time.Hour).Add(time.Duration(i+1)*time.Hour)))
	}
	return answer, nil
}

func (f *fake) findNamespace(method, name string, request proto.Message) (*kagziv1.Namespace, error) {
	if err := f.note(method, proto.Clone(request)); err != nil {
		return nil, err
	}
	for _, n := range f.namespaces {
		if n.Namespace == name {
			return n, nil
		}
	}
	return nil, status.Error(codes.NotFound, "namespace "+strings.ToValidUTF8(name, "?")+" not found")
}

func (f *fake) CreateNamespace(_ context.Context, r *kagziv1.CreateNamespaceRequest,
	_ ...grpc.CallOption) (*kagziv1.CreateNamespaceResponse, error) {
	if _, err := f.findNamespace("CreateNamespace", r.Namespace, r); status.Code(err) != codes.NotFound {
		return nil, status.Error(codes.AlreadyExists, "namespace "+r.Namespace+" exists already")
	}
	n := &kagziv1.Namespace{
		Id: "ns-1", Namespace: r.Namespace, DisplayName: r.DisplayName, Description: r.GetDescription(), Enabled: true,
		CreatedAt: at(0), UpdatedAt: at(0),
		Retention: r.Retention, Keep: r.Keep, FailureTaskQueue: r.FailureTaskQueue,
	}
	f.namespaces = append(f.namespaces, n)
	return &kagziv1.CreateNamespaceResponse{Namespace: n}, nil
}

func (f *fake) GetNamespace(_ context.Context, r *kagziv1.GetNamespaceRequest,
	_ ...grpc.CallOption) (*kagziv1.GetNamespaceResponse, error) {
	n, err := f.findNamespace("GetNamespace", r.Namespace, r)
	return &kagziv1.GetNamespaceResponse{Namespace: n}, err
}

func (f *fake) ListNamespaces(_ context.Context, r *kagziv1.ListNamespacesRequest,
	_ ...grpc.CallOption) (*kagziv1.ListNamespacesResponse, error) {
	if err := f.note("ListNamespaces", r); err != nil {
		return nil, err
	}
	namespaces, page, err := pageOf(f.namespaces, r.Page)
	return &kagziv1.ListNamespacesResponse{Namespaces: namespaces, Page: page}, err
}

func (f *fake) UpdateNamespace(_ context.Context, r *kagziv1.UpdateNamespaceRequest,
	_ ...grpc.CallOption) (*kagziv1.UpdateNamespaceResponse, error) {
	n, err := f.findNamespace("UpdateNamespace", r.Namespace, r)
	if err != nil {
		return nil, err
	}
	if r.DisplayName != nil {
		n.DisplayName = *r.DisplayName
	}
	if r.Description != nil {
		n.Description = *r.Description
	}
	if r.FailureTaskQueue != nil {
		n.FailureTaskQueue = *r.FailureTaskQueue
	}
	if r.Retention != nil {
		n.Retention = r.Retention
	}
	if n.Retention.AsDuration() == 0 {
		n.Retention = nil
	}
	if r.Keep != nil {
		n.Keep = r.Keep.Keep
	}
	return &kagziv1.UpdateNamespaceResponse{Namespace: n}, nil
}

func (f *fake) EnableNamespace(_ context.Context, r *kagziv1.EnableNamespaceRequest,
	_ ...grpc.CallOption) (*kagziv1.EnableNamespaceResponse, error) {
	n, err := f.findNamespace("EnableNamespace", r.Namespace, r)
	if err == nil {
		n.Enabled = true
	}
	return &kagziv1.EnableNamespaceResponse{Namespace: n}, err
}

func (f *fake) DisableNamespace(_ context.Context, r *kagziv1.DisableNamespaceRequest,
	_ ...grpc.CallOption) (*kagziv1.DisableNamespaceResponse, error) {
	n, err := f.findNamespace("DisableNamespace", r.Namespace, r)
	if err == nil {
		n.Enabled = false
	}
	return &kagziv1.DisableNamespaceResponse{Namespace: n}, err
}

func (f *fake) GetStats(_ context.Context, r *kagziv1.GetStatsRequest,
	_ ...grpc.CallOption) (*kagziv1.GetStatsResponse, error) {
	_, err := f.findNamespace("GetStats", r.GetNamespace(), r)
	return &kagziv1.GetStatsResponse{TotalWorkflows: 203, TotalSchedules: 1, TotalWorkers: 9, OnlineWorkers: 2,
		WorkflowsByStatus: map[string]int64{"PENDING": 1, "RUNNING": 1, "SLEEPING": 3, "FAILED": 198}}, err
}

// DeleteNamespace refuses one with runs, and takes two calls for it with force.
func (f *fake) DeleteNamespace(_ context.Context, r *kagziv1.DeleteNamespaceRequest,
	_ ...grpc.CallOption) (*kagziv1.DeleteNamespaceResponse, error) {
	n, err := f.findNamespace("DeleteNamespace", r.Namespace, r)
	switch {
	case err != nil:
		return nil, err
	case !r.Force && n.Id == "2":
		return nil, status.Error(codes.FailedPrecondition, "namespace "+r.Namespace+" is not empty: it has 1 run")
	case r.Force && !r.Again:
		return &kagziv1.DeleteNamespaceResponse{Removed: &kagziv1.NamespaceContents{Runs: 200, Schedules: 1}}, nil
	}
	answer := &kagziv1.DeleteNamespaceResponse{Deleted: true, Removed: &kagziv1.NamespaceContents{}}
	if r.Force {
		answer.Removed = &kagziv1.NamespaceContents{Runs: 3, Keys: 1}
	}
	return answer, nil
}

// sampleSchedules returns an enabled, a paused and a broken schedule.
func sampleSchedules() []*kagziv1.WorkflowSchedule {
	return []*kagziv1.WorkflowSchedule{
		{
			Namespace: "default", ScheduleId: scheduleID, Name: "daily", TaskQueue: "reports", WorkflowType: "report",
			CronExpr: "0 9 * * 1-5", TimeZone: "Europe/Berlin", Enabled: true,
			Input: &kagziv1.Payload{Data: []byte(`{"full":true}`)}, MaxCatchup: 100, TotalRuns: 12, SuccessfulRuns: 10,
			FailedRuns: 1, SkippedTicks: 3, CreatedAt: at(-48 * time.Hour), UpdatedAt: at(-time.Hour),
			NextFireAt: at(20 * time.Hour), LastFiredAt: at(-4 * time.Hour),
			OverlapPolicy: kagziv1.OverlapPolicy_OVERLAP_POLICY_BUFFER_ONE, BufferedTick: at(-time.Minute),
			RetryPolicy: &kagziv1.RetryPolicy{
				MaximumAttempts: 5, InitialIntervalMs: 2000, BackoffCoefficient: 1.5},
			Timeouts:          &kagziv1.TimeoutConfig{ExecutionTimeoutMs: 3600000},
			OnFailureWorkflow: "alert", OnFailureTaskQueue: "alerts", Tags: map[string]string{"team": "a", "old": ""},
		},
		{Namespace: "default", ScheduleId: "01936b2e-0000-7000-8000-0000000000a2", TaskQueue: "default",
			WorkflowType: "sync", CronExpr: "@hourly", CreatedAt: at(-time.Hour), MaxCatchup: 0},
		{Namespace: "default", ScheduleId: "01936b2e-0000-7000-8000-0000000000a3", TaskQueue: "default",
			WorkflowType: "sync", CronExpr: "0 * * * *", TimeZone: "Mars/Base", Enabled: true,
			NextFireAt: at(time.Hour), Broken: "time zone Mars/Base is not known", CreatedAt: at(-time.Hour)},
	}
}

func sampleNamespaces() []*kagziv1.Namespace {
	return []*kagziv1.Namespace{
		{
			Id: "2", Namespace: "payments", DisplayName: "Payments", Description: "cards and banks", Enabled: true,
			CreatedAt: at(-time.Hour), UpdatedAt: at(-time.Minute), Retention: durationpb.New(720 * time.Hour),
			Keep: map[string]*durationpb.Duration{
				"completed": durationpb.New(72 * time.Hour), "failed": durationpb.New(2160 * time.Hour)},
			FailureTaskQueue: "failures",
		},
		{Id: "1", Namespace: "default", CreatedAt: at(-48 * time.Hour), UpdatedAt: at(-48 * time.Hour)},
	}
}
