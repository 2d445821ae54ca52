package server

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// TestWhatBreaksALimitIsRefusedByName sends each request to a store in which any change, or any
// look, is a panic.
func TestWhatBreaksALimitIsRefusedByName(t *testing.T) {
	long := strings.Repeat("n", engine.MaxName+1)
	reason := strings.Repeat("r", engine.MaxReason+1)
	large := &kagziv1.Payload{Data: make([]byte, engine.MaxPayload+1)}
	over := durationpb.New(engine.MaxDelay + 1)
	child := func(change func(*kagziv1.StartWorkflowRequest)) *kagziv1.StartChildRequest {
		start := &kagziv1.StartWorkflowRequest{ParentRunId: servertest.AnID, WorkflowType: "t"}
		change(start)
		return &kagziv1.StartChildRequest{StepName: "s", LeaseToken: servertest.AToken, Child: start}
	}
	next := func(start *kagziv1.StartWorkflowRequest) *kagziv1.CompleteWorkflowRequest {
		return &kagziv1.CompleteWorkflowRequest{
			RunId: servertest.AnID, LeaseToken: servertest.AToken, ContinueAs: start}
	}
	signal := func(change func(*kagziv1.AwaitSignalRequest)) *kagziv1.AwaitSignalRequest {
		r := &kagziv1.AwaitSignalRequest{RunId: servertest.AnID, LeaseToken: servertest.AToken, StepName: "s",
			SignalName: "go"}
		change(r)
		return r
	}
	type schedule = kagziv1.CreateWorkflowScheduleRequest
	cases := []struct {
		method  string
		request proto.Message
		field   string
	}{
		{"CancelWorkflow", &kagziv1.CancelWorkflowRequest{RunId: servertest.AnID, Reason: reason}, "reason"},
		{"CancelWorkflow", &kagziv1.CancelWorkflowRequest{
			RunId: servertest.AnID, Grace: durationpb.New(time.Millisecond - 1)}, "grace"},
		{"CancelWorkflow", &kagziv1.CancelWorkflowRequest{RunId: servertest.AnID, Grace: over}, "grace"},
		{"CancelWorkflow", &kagziv1.CancelWorkflowRequest{
			RunId: servertest.AnID, Grace: &durationpb.Duration{Seconds: 1, Nanos: -1}}, "grace"},
		{"TerminateWorkflow", &kagziv1.TerminateWorkflowRequest{RunId: servertest.AnID, Reason: reason}, "reason"},
		{"PauseWorkflow", &kagziv1.PauseWorkflowRequest{RunId: "x"}, "run_id"},
		{"PauseWorkflow", &kagziv1.PauseWorkflowRequest{RunId: servertest.AnID, Reason: reason}, "reason"},
		{"ResumeWorkflow", &kagziv1.ResumeWorkflowRequest{RunId: servertest.AnID, Reason: "a\x00"}, "reason"},
		{"PinWorkflow", &kagziv1.PinWorkflowRequest{RunId: servertest.AnID, Reason: reason}, "reason"},
		{"RetryWorkflow", &kagziv1.RetryWorkflowRequest{RunId: servertest.AnID, FromStep: long}, "from_step"},
		{"RetryWorkflow", &kagziv1.RetryWorkflowRequest{RunId: servertest.AnID, FromStep: "s", Restart: true},
			"from_step"},
		{"RetryWorkflow", &kagziv1.RetryWorkflowRequest{RunId: servertest.AnID, Input: &kagziv1.Payload{}}, "input"},
		{"RetryWorkflow", &kagziv1.RetryWorkflowRequest{RunId: servertest.AnID, RequestId: long}, "request_id"},
		{"OverrideStep", &kagziv1.OverrideStepRequest{RunId: servertest.AnID, StepName: "s", Reason: "r"}, "result"},
		{"OverrideStep", &kagziv1.OverrideStepRequest{
			RunId: servertest.AnID, StepName: "s", Result: &kagziv1.OverrideStepRequest_Output{}}, "reason"},
		{"OverrideStep", &kagziv1.OverrideStepRequest{RunId: servertest.AnID, Reason: "r"}, "step_name"},
		{"OverrideStep", &kagziv1.OverrideStepRequest{
			RunId: servertest.AnID, StepName: "s", Reason: "r", Result: &kagziv1.OverrideStepRequest_Error{
				Error: &kagziv1.ErrorDetail{Code: 77}}}, "error.code"},
		{"SignalWorkflow", &kagziv1.SignalWorkflowRequest{RunId: servertest.AnID}, "name"},
		{"SignalWorkflow", &kagziv1.SignalWorkflowRequest{RunId: servertest.AnID, Name: "go", SignalId: long},
			"signal_id"},
		{"ListSignals", &kagziv1.ListSignalsRequest{RunId: servertest.AnID, Page: &kagziv1.PageRequest{PageSize: 1001}},
			"page_size"},
		{"ListSteps", &kagziv1.ListStepsRequest{RunId: servertest.AnID, Statuses: []kagziv1.StepStatus{5}}, "statuses"},
		{"ListSteps", &kagziv1.ListStepsRequest{RunId: servertest.AnID, Statuses: []kagziv1.StepStatus{0}}, "statuses"},
		{"ListSteps", &kagziv1.ListStepsRequest{RunId: servertest.AnID, Statuses: make([]kagziv1.StepStatus, 1001)},
			"statuses"},
		{"BulkWorkflows", &kagziv1.BulkWorkflowsRequest{Action: 1}, "filter"},
		{"BulkWorkflows", &kagziv1.BulkWorkflowsRequest{Filter: &kagziv1.ListWorkflowsRequest{}}, "action"},
		{"BulkWorkflows", &kagziv1.BulkWorkflowsRequest{
			Action: 1, Filter: &kagziv1.ListWorkflowsRequest{Namespace: "A"}}, "filter.namespace"},
		{"BulkWorkflows", &kagziv1.BulkWorkflowsRequest{
			Action: 1, Filter: &kagziv1.ListWorkflowsRequest{}, Limit: -1}, "limit"},
		{"BulkWorkflows", &kagziv1.BulkWorkflowsRequest{
			Action: 1, Filter: &kagziv1.ListWorkflowsRequest{}, Reason: reason}, "reason"},
		{"AwaitSignal", signal(func(r *kagziv1.AwaitSignalRequest) { r.StepName = "" }), "step_name"},
		{"AwaitSignal", signal(func(r *kagziv1.AwaitSignalRequest) { r.SignalName = long }), "signal_name"},
		{"AwaitSignal", signal(func(r *kagziv1.AwaitSignalRequest) { r.Timeout = &durationpb.Duration{} }), "timeout"},
		{"AwaitSignal", signal(func(r *kagziv1.AwaitSignalRequest) { r.LeaseToken = "" }), "lease_token"},
		{"StartChild", &kagziv1.StartChildRequest{StepName: "s", LeaseToken: servertest.AToken}, "child"},
		{"StartChild", child(func(r *kagziv1.StartWorkflowRequest) { r.ParentRunId = "" }), "child.parent_run_id"},
		{"StartChild", child(func(r *kagziv1.StartWorkflowRequest) { r.ParentStepId = servertest.AnID }),
			"child.parent_step_id"},
		{"StartChild", child(func(r *kagziv1.StartWorkflowRequest) { r.WorkflowType = "" }), "child.workflow_type"},
		{"StartChild", child(func(r *kagziv1.StartWorkflowRequest) { r.ExternalIdReuse = 1 }),
			"child.external_id_reuse"},
		{"StartChild", &kagziv1.StartChildRequest{StepName: "s", LeaseToken: servertest.AToken, ParentClosePolicy: 4,
			Child: &kagziv1.StartWorkflowRequest{ParentRunId: servertest.AnID, WorkflowType: "t"}},
			"parent_close_policy"},
		{"AwaitChildren", &kagziv1.AwaitChildrenRequest{RunId: servertest.AnID, LeaseToken: servertest.AToken},
			"child_run_ids"},
		{"AwaitChildren", &kagziv1.AwaitChildrenRequest{
			RunId: servertest.AnID, LeaseToken: servertest.AToken, ChildRunIds: []string{"x"}}, "child_run_ids"},
		{"AwaitChildren", &kagziv1.AwaitChildrenRequest{
			RunId: servertest.AnID, LeaseToken: servertest.AToken, ChildRunIds: make([]string, 10_001)},
			"child_run_ids"},
		{"SetRunNote", &kagziv1.SetNote{RunId: servertest.AnID, LeaseToken: servertest.AToken,
			Note: strings.Repeat("é", 128)}, "note"},
		{"CompleteWorkflow", next(&kagziv1.StartWorkflowRequest{Namespace: "other"}), "continue_as.namespace"},
		{"CompleteWorkflow", next(&kagziv1.StartWorkflowRequest{ParentRunId: servertest.AnID}),
			"continue_as.parent_run_id"},
		{"CompleteWorkflow", next(&kagziv1.StartWorkflowRequest{WorkflowType: long}), "continue_as.workflow_type"},
		{"CompleteWorkflow", next(&kagziv1.StartWorkflowRequest{ConcurrencyLimit: 2}), "continue_as.concurrency_limit"},
		{"CreateWorkflowSchedule", &schedule{WorkflowType: "t"}, "cron_expr"},
		{"CreateWorkflowSchedule", &schedule{WorkflowType: "t", CronExpr: "0 0 30 2 *"}, "cron_expr"},
		{"CreateWorkflowSchedule", &schedule{WorkflowType: "t", CronExpr: "0 0 0 1 1 ? 2020"}, "cron_expr"},
		{"CreateWorkflowSchedule", &schedule{WorkflowType: "t", CronExpr: "@daily", TimeZone: "Mars/Olympus"},
			"time_zone"},
		{"CreateWorkflowSchedule", &schedule{CronExpr: "@daily"}, "workflow_type"},
		{"CreateWorkflowSchedule", &schedule{WorkflowType: "t", CronExpr: "@daily", MaxCatchup: proto.Int32(100_001)},
			"max_catchup"},
		{"CreateWorkflowSchedule", &schedule{WorkflowType: "t", CronExpr: "@daily", MaxCatchup: proto.Int32(-1)},
			"max_catchup"},
		{"CreateWorkflowSchedule", &schedule{WorkflowType: "t", CronExpr: "@daily", OverlapPolicy: 4},
			"overlap_policy"},
		{"CreateWorkflowSchedule", &schedule{WorkflowType: "t", CronExpr: "@daily", OverlapPolicy: 256},
			"overlap_policy"},
		{"CreateWorkflowSchedule", &schedule{WorkflowType: "t", CronExpr: "@daily", Name: servertest.AnID}, "name"},
		{"CreateWorkflowSchedule", &schedule{WorkflowType: "t", CronExpr: "@daily", RequestId: long}, "request_id"},
		{"GetWorkflowSchedule", &kagziv1.GetWorkflowScheduleRequest{}, "schedule_id"},
		{"UpdateWorkflowSchedule", &kagziv1.UpdateWorkflowScheduleRequest{ScheduleId: "s", Reason: reason}, "reason"},
		{"UpdateWorkflowSchedule", &kagziv1.UpdateWorkflowScheduleRequest{
			ScheduleId: "s", NextFireAt: &timestamppb.Timestamp{Seconds: -1}}, "next_fire_at"},
		{"DeleteWorkflowSchedule", &kagziv1.DeleteWorkflowScheduleRequest{ScheduleId: "s", Reason: reason}, "reason"},
		{"PauseWorkflowSchedule", &kagziv1.PauseWorkflowScheduleRequest{ScheduleId: "s", Reason: reason}, "reason"},
		{"ResumeWorkflowSchedule", &kagziv1.ResumeWorkflowScheduleRequest{ScheduleId: "a b"}, "schedule_id"},
		{"TriggerWorkflowSchedule", &kagziv1.TriggerWorkflowScheduleRequest{ScheduleId: "s", RequestId: long},
			"request_id"},
		{"ListWorkflowSchedules", &kagziv1.ListWorkflowSchedulesRequest{TaskQueue: &long}, "task_queue"},
		{"ListScheduleRuns", &kagziv1.ListScheduleRunsRequest{
			ScheduleId: "s", Page: &kagziv1.PageRequest{PageSize: -1}}, "page_size"},
		{"PreviewSchedule", &kagziv1.PreviewScheduleRequest{CronExpr: "@daily", Count: 101}, "count"},
		{"PreviewSchedule", &kagziv1.PreviewScheduleRequest{CronExpr: "@never"}, "cron_expr"},
		{"CreateNamespace", &kagziv1.CreateNamespaceRequest{}, "namespace"},
		{"CreateNamespace", &kagziv1.CreateNamespaceRequest{Namespace: "a", DisplayName: long}, "display_name"},
		{"CreateNamespace", &kagziv1.CreateNamespaceRequest{Namespace: "a", Retention: durationpb.New(time.Second)},
			"retention"},
		{"CreateNamespace", &kagziv1.CreateNamespaceRequest{Namespace: "a", FailureTaskQueue: long},
			"failure_task_queue"},
		{"CreateNamespace", &kagziv1.CreateNamespaceRequest{
			Namespace: "a", Keep: map[string]*durationpb.Duration{"running": over}}, "keep"},
		{"CreateNamespace", &kagziv1.CreateNamespaceRequest{
			Namespace: "a", Keep: map[string]*durationpb.Duration{"failed": over}}, "keep"},
		{"EnableNamespace", &kagziv1.EnableNamespaceRequest{}, "namespace"},
		{"DisableNamespace", &kagziv1.DisableNamespaceRequest{Namespace: "a", Reason: reason}, "reason"},
		{"UpdateNamespace", &kagziv1.UpdateNamespaceRequest{Namespace: "A"}, "namespace"},
		{"ListNamespaces", &kagziv1.ListNamespacesRequest{Page: &kagziv1.PageRequest{PageToken: "x"}}, "page_token"},
		{"ListAuditEvents", &kagziv1.ListAuditEventsRequest{SubjectId: &long}, "subject_id"},
		{"ExportWorkflow", &kagziv1.ExportWorkflowRequest{RunId: "x"}, "run_id"},
		{"ImportWorkflow", &kagziv1.Capsule{Namespace: "A"}, "namespace"},
		{"ImportWorkflow", &kagziv1.Capsule{RequestId: long}, "request_id"},
		{"ImportWorkflow", &kagziv1.Capsule{Data: []byte("no zip")}, "data"},
	}
	tooLarge := []struct {
		method  string
		request proto.Message
		field   string
	}{
		{"RetryWorkflow", &kagziv1.RetryWorkflowRequest{RunId: servertest.AnID, Restart: true, Input: large}, "input"},
		{"OverrideStep", &kagziv1.OverrideStepRequest{
			RunId: servertest.AnID, StepName: "s", Reason: "r",
			Result: &kagziv1.OverrideStepRequest_Output{Output: large}}, "output"},
		{"SignalWorkflow", &kagziv1.SignalWorkflowRequest{RunId: servertest.AnID, Name: "go", Payload: large},
			"payload"},
		{"StartChild", child(func(r *kagziv1.StartWorkflowRequest) { r.Input = large }), "child.input"},
		{"CompleteWorkflow", next(&kagziv1.StartWorkflowRequest{Input: large}), "continue_as.input"},
		{"CreateWorkflowSchedule", &schedule{WorkflowType: "t", CronExpr: "@daily", Input: large}, "input"},
	}
	_, conn := serve(t, servertest.StubStore{})
	methods := map[string]protoreflect.MethodDescriptor{}
	servertest.EachMethod(func(_ protoreflect.ServiceDescriptor, method protoreflect.MethodDescriptor) {
		methods[string(method.Name())] = method
	})
	try := func(method string, request proto.Message, field string, want codes.Code) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err := call(ctx, conn, methods[method], request)
		if status.Code(err) != want || servertest.DetailOf(t, err).Metadata["field"] != field ||
			!strings.HasPrefix(servertest.DetailOf(t, err).Message, field) {
			t.Errorf("%s: %v, want %s naming %s", method, err, want, field)
		}
	}
	for _, c := range cases {
		try(c.method, c.request, c.field, codes.InvalidArgument)
	}
	for _, c := range tooLarge {
		try(c.method, c.request, c.field, codes.ResourceExhausted)
	}
}
