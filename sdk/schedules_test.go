package kagzi

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func TestSchedules(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

	t.Run("a schedule is created with a typed input and defaults", func(t *testing.T) {
		d := newFakeServer(t)
		d.on("CreateWorkflowSchedule", &kagziv1.CreateWorkflowScheduleResponse{
			Schedule: &kagziv1.WorkflowSchedule{ScheduleId: "s"}})
		c := d.client(t)
		s, err := CreateSchedule(t.Context(), c, "report", "0 6 * * *", []string{"a"}, ScheduleOptions{})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, s.ID(), "s")
		d.wants(t, &kagziv1.CreateWorkflowScheduleRequest{
			Namespace: "shop", TaskQueue: "default", WorkflowType: "report", CronExpr: "0 6 * * *",
			Input: jsonPayload(`["a"]`), Enabled: new(true), OverlapPolicy: kagziv1.OverlapPolicy_OVERLAP_POLICY_ALLOW},
			"request_id")
		if id := d.asked[0].(*kagziv1.CreateWorkflowScheduleRequest).RequestId; uuid.Validate(id) != nil {
			t.Fatalf("request id %q", id)
		}
	})

	t.Run("every option of a schedule reaches the server", func(t *testing.T) {
		d := newFakeServer(t)
		d.on("CreateWorkflowSchedule", &kagziv1.CreateWorkflowScheduleResponse{})
		_, err := CreateSchedule(t.Context(), d.client(t), "report", "@hourly", 1, ScheduleOptions{
			Name: "hourly", Queue: "q", Version: "v", TimeZone: "Europe/Berlin", Overlap: OverlapBufferOne,
			MaxCatchup: -1, Paused: true,
			StepRetry: &Retry{Attempts: 2}, RunRetry: &Retry{Attempts: 5}, StepTimeout: time.Second,
			ExecutionTimeout: time.Minute, OnFailure: "mourn",
			OnFailureQueue: "fq",
			Tags:           map[string]string{"a": "b"}, RequestID: "x", Jitter: 1500 * time.Millisecond, OrUpdate: true})
		if err != nil {
			t.Fatal(err)
		}
		d.wants(t, &kagziv1.CreateWorkflowScheduleRequest{
			Namespace: "shop", TaskQueue: "q", WorkflowType: "report", CronExpr: "@hourly",
			Input: jsonPayload("1"), Enabled: new(false), MaxCatchup: new(int32(0)), Version: new("v"),
			TimeZone:      "Europe/Berlin",
			OverlapPolicy: kagziv1.OverlapPolicy_OVERLAP_POLICY_BUFFER_ONE, Name: "hourly",
			RetryPolicy:        &kagziv1.RetryPolicy{MaximumAttempts: 2},
			RunRetryPolicy:     &kagziv1.RetryPolicy{MaximumAttempts: 5},
			Timeouts:           &kagziv1.TimeoutConfig{StartToCloseTimeoutMs: 1000, ExecutionTimeoutMs: 60_000},
			OnFailureWorkflow:  "mourn",
			OnFailureTaskQueue: "fq", Tags: map[string]string{"a": "b"}, RequestId: "x", JitterMs: 1500, OrUpdate: true})
	})

	t.Run("a schedule that is updated stays paused", func(t *testing.T) {
		d := newFakeServer(t)
		d.on("CreateWorkflowSchedule", &kagziv1.CreateWorkflowScheduleResponse{})
		if _, err := CreateSchedule(t.Context(), d.client(t), "report", "@every 90s", 1,
			ScheduleOptions{Name: "n", OrUpdate: true}); err != nil {
			t.Fatal(err)
		}
		if r := d.asked[0].(*kagziv1.CreateWorkflowScheduleRequest); r.Enabled != nil || !r.OrUpdate {
			t.Errorf("request %v", r)
		}
	})

	t.Run("a backfill returns the run of each tick", func(t *testing.T) {
		d := newFakeServer(t)
		d.on("BackfillWorkflowSchedule", &kagziv1.BackfillWorkflowScheduleResponse{Ticks: []*kagziv1.BackfilledTick{
			{Tick: timestamppb.New(noon), RunId: "r1", Existed: true},
			{Tick: timestamppb.New(noon.Add(time.Hour)), RunId: "r2"}}})
		got, err := d.client(t).Schedule("s").Backfill(t.Context(),
			BackfillOptions{From: noon, To: noon.Add(time.Hour), Reason: "why"})
		if err != nil || len(got) != 2 || !got[0].Existed || got[0].Run.ID() != "r1" || got[1].Existed ||
			got[1].Run.ID() != "r2" || !got[1].Tick.Equal(noon.Add(time.Hour)) {
			t.Fatalf("%+v, %v", got, err)
		}
		d.wants(t, &kagziv1.BackfillWorkflowScheduleRequest{Namespace: "shop", ScheduleId: "s",
			From: timestamppb.New(noon), To: timestamppb.New(noon.Add(time.Hour)), Reason: "why"})
	})

	t.Run("unknown policies and catch-ups are left to the server", func(t *testing.T) {
		d := newFakeServer(t)
		d.on("CreateWorkflowSchedule", &kagziv1.CreateWorkflowScheduleResponse{})
		if _, err := CreateSchedule(t.Context(), d.client(t), "report", "@hourly", 1,
			ScheduleOptions{Overlap: -1, MaxCatchup: -2, RequestID: "x"}); err != nil {
			t.Fatal(err)
		}
		d.wants(t, &kagziv1.CreateWorkflowScheduleRequest{
			Namespace: "shop", TaskQueue: "default", WorkflowType: "report", CronExpr: "@hourly",
			Input: jsonPayload("1"), Enabled: new(true), MaxCatchup: new(int32(-2)), OverlapPolicy: -1, RequestId: "x"})
	})

	t.Run("an update names only what changes", func(t *testing.T) {
		d := newFakeServer(t)
		d.on("UpdateWorkflowSchedule", &kagziv1.UpdateWorkflowScheduleResponse{
			Schedule: &kagziv1.WorkflowSchedule{ScheduleId: "s", CronExpr: "new"}})
		s := d.client(t).Schedule("s")
		got, err := s.Update(t.Context(), ScheduleUpdate{Cron: new("new")})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, got.Cron, "new")
		d.wants(t, &kagziv1.UpdateWorkflowScheduleRequest{Namespace: "shop", ScheduleId: "s", CronExpr: new("new")})
		_, err = s.Update(t.Context(), ScheduleUpdate{
			Name: new(""), WorkflowType: new("w"), TimeZone: new("UTC"), Queue: new("q"), Version: new("v"),
			Overlap:    new(OverlapAllow),
			MaxCatchup: new(0), NextFireAt: &noon, Jitter: new(time.Second), Input: InputOf(2),
			StepRetry: &Retry{}, RunRetry: &Retry{Attempts: 4},
			Timeouts:  &ScheduleTimeouts{},
			OnFailure: new("f"), OnFailureQueue: new("fq"), Tags: &map[string]string{}, Reason: "why"})
		if err != nil {
			t.Fatal(err)
		}
		d.wants(t, &kagziv1.UpdateWorkflowScheduleRequest{
			Namespace: "shop", ScheduleId: "s", Name: new(""), WorkflowType: new("w"),
			TimeZone: new("UTC"), TaskQueue: new("q"), Version: new("v"),
			OverlapPolicy: kagziv1.OverlapPolicy_OVERLAP_POLICY_ALLOW.Enum(),
			MaxCatchup:    new(int32(0)), NextFireAt: timestamppb.New(noon), Input: jsonPayload("2"),
			JitterMs: new(int64(1000)), RetryPolicy: &kagziv1.RetryPolicy{},
			RunRetryPolicy: &kagziv1.RetryPolicy{MaximumAttempts: 4},
			Timeouts:       &kagziv1.TimeoutConfig{}, OnFailureWorkflow: new("f"), OnFailureTaskQueue: new("fq"),
			Tags: &kagziv1.ScheduleTags{}, Reason: "why"})
	})

	for _, c := range []struct {
		name, method string
		answer       proto.Message
		ask          func(ctx context.Context, s *Schedule) error
		want         proto.Message
	}{
		{"pause", "PauseWorkflowSchedule", &kagziv1.PauseWorkflowScheduleResponse{},
			func(ctx context.Context, s *Schedule) error { return s.Pause(ctx, "why") },
			&kagziv1.PauseWorkflowScheduleRequest{Namespace: "shop", ScheduleId: "s", Reason: "why"}},
		{"resume", "ResumeWorkflowSchedule", &kagziv1.ResumeWorkflowScheduleResponse{},
			func(ctx context.Context, s *Schedule) error { return s.Resume(ctx, "why") },
			&kagziv1.ResumeWorkflowScheduleRequest{Namespace: "shop", ScheduleId: "s", Reason: "why",
				Catchup: new(int32(0))}},
		{"resume and catch up", "ResumeWorkflowSchedule", &kagziv1.ResumeWorkflowScheduleResponse{},
			func(ctx context.Context, s *Schedule) error { return s.ResumeCatchingUp(ctx, 3, "why") },
			&kagziv1.ResumeWorkflowScheduleRequest{Namespace: "shop", ScheduleId: "s", Reason: "why",
				Catchup: new(int32(3))}},
		{"delete", "DeleteWorkflowSchedule", &kagziv1.DeleteWorkflowScheduleResponse{Deleted: true},
			func(ctx context.Context, s *Schedule) error { return s.Delete(ctx, "why") },
			&kagziv1.DeleteWorkflowScheduleRequest{Namespace: "shop", ScheduleId: "s", Reason: "why"}},
		{"trigger", "TriggerWorkflowSchedule", &kagziv1.TriggerWorkflowScheduleResponse{RunId: "r"},
			func(ctx context.Context, s *Schedule) error {
				run, err := s.Trigger(ctx, TriggerOptions{RequestID: "x"})
				if err == nil && run.ID() != "r" {
					err = fmt.Errorf("run %s", run.ID())
				}
				return err
			},
			&kagziv1.TriggerWorkflowScheduleRequest{Namespace: "shop", ScheduleId: "s", RequestId: "x"}},
	} {
		t.Run(c.name+" is one call, and a refusal is an Error", func(t *testing.T) {
			d := newFakeServer(t)
			s := d.client(t).Schedule("s")
			var e *Error
			if err := c.ask(t.Context(), s); !errors.As(err, &e) {
				t.Fatalf("err = %v", err)
			}
			d.on(c.method, c.answer)
			if err := c.ask(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			d.wants(t, c.want)
		})
	}

	t.Run("its details come typed", func(t *testing.T) {
		d := newFakeServer(t)
		d.on("GetWorkflowSchedule", &kagziv1.GetWorkflowScheduleResponse{Schedule: &kagziv1.WorkflowSchedule{
			Namespace: "shop", ScheduleId: "s", Name: "n", TaskQueue: "q", WorkflowType: "w", CronExpr: "c",
			Version: "v", Enabled: true,
			Input: jsonPayload("[1]"), MaxCatchup: 100, TotalRuns: 3, SuccessfulRuns: 2, FailedRuns: 1, SkippedTicks: 4,
			CreatedAt: timestamppb.New(noon), NextFireAt: timestamppb.New(noon), BufferedTick: timestamppb.New(noon),
			Broken:        "zone",
			OverlapPolicy: kagziv1.OverlapPolicy_OVERLAP_POLICY_SKIP}})
		got, err := d.client(t).GetScheduleByName(t.Context(), "n")
		if err != nil {
			t.Fatal(err)
		}
		in, err := ScheduleInput[[]int](got)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, in, []int{1})
		if _, err := ScheduleInput[string](got); err == nil {
			t.Fatal("a list was read as a string")
		}
		sameDetails(t, *got, ScheduleDetails{ScheduleID: "s", Name: "n", Namespace: "shop", WorkflowType: "w",
			Cron: "c", Queue: "q", Version: "v",
			Broken: "zone", Overlap: OverlapSkip, MaxCatchup: 100, TotalRuns: 3, SuccessfulRuns: 2, FailedRuns: 1,
			SkippedTicks: 4,
			CreatedAt:    noon, NextFireAt: noon, BufferedTick: noon})
	})

	t.Run("lists go over all pages, and end with an error", func(t *testing.T) {
		d := newFakeServer(t)
		d.answers["ListWorkflowSchedules"] = func(m proto.Message) (proto.Message, error) {
			if m.(*kagziv1.ListWorkflowSchedulesRequest).GetPage().GetPageToken() == "" {
				return &kagziv1.ListWorkflowSchedulesResponse{
					Schedules: []*kagziv1.WorkflowSchedule{{ScheduleId: "1"}, {ScheduleId: "2"}},
					Page:      &kagziv1.PageInfo{NextPageToken: "t"}}, nil
			}
			return &kagziv1.ListWorkflowSchedulesResponse{
				Schedules: []*kagziv1.WorkflowSchedule{{ScheduleId: "3"}}}, nil
		}
		c := d.client(t)
		for range 2 {
			var ids []string
			for s, err := range c.ListSchedules(t.Context(), ListSchedulesOptions{Queue: "q", PageSize: 2}) {
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, s.ScheduleID)
			}
			equal(t, ids, []string{"1", "2", "3"})
		}
		d.wants(t, &kagziv1.ListWorkflowSchedulesRequest{
			Namespace: "shop", TaskQueue: new("q"), Page: &kagziv1.PageRequest{PageSize: 2, PageToken: "t"}})
		for range c.ListSchedules(t.Context(), ListSchedulesOptions{}) {
			break // and no more
		}
		seen := 0
		for run, err := range c.Schedule("s").Runs(t.Context()) {
			if seen++; err == nil || run != nil {
				t.Fatalf("%v %v", run, err)
			}
		}
		equal(t, seen, 1)
		d.wants(t, &kagziv1.ListScheduleRunsRequest{Namespace: "shop", ScheduleId: "s", Page: &kagziv1.PageRequest{}})
	})

	t.Run("a preview is a list of times", func(t *testing.T) {
		d := newFakeServer(t)
		d.on("PreviewSchedule", &kagziv1.PreviewScheduleResponse{
			Ticks: []*timestamppb.Timestamp{timestamppb.New(noon)}})
		got, err := d.client(t).PreviewSchedule(
			t.Context(), "@daily", PreviewOptions{TimeZone: "UTC", Count: 1, After: noon})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, got, []time.Time{noon})
		d.wants(t, &kagziv1.PreviewScheduleRequest{
			CronExpr: "@daily", TimeZone: "UTC", Count: 1, After: timestamppb.New(noon)})
	})
}

func TestRunDetailsHaveAllFieldsOfTheServer(t *testing.T) {
	d, at := newFakeServer(t), timestamppb.New(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	d.on("GetWorkflow", &kagziv1.GetWorkflowResponse{
		Workflow: &kagziv1.Workflow{RunId: "r", Note: "3 of 5", Paused: true, Pausing: true, PausedAt: at, Pinned: true, LeaseLosses: 2,
			ParentRunId: new("p"), ParentStepId: new("ps"), RetriedFromRunId: new("rf"), ContinuedAsRunId: new("ca"),
			ContinuedFromRunId: new("cf"),
			FailedRunId:        new("f"), ScheduleId: new("s"), ConcurrencyKey: "k", ConcurrencyLimit: 3,
			ConcurrencyScope:   kagziv1.ConcurrencyScope_CONCURRENCY_SCOPE_OPEN,
			OnFailureWorkflow:  "of",
			OnFailureTaskQueue: "oq",
			ScheduledAt:        at, CancelRequestedAt: at, CancelGraceUntil: at, DeadlineAt: at,
			Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_SLEEPING}})
	got, err := d.client(t).Get(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	sameDetails(t, *got, RunDetails{RunID: "r", Status: StatusSleeping, Note: "3 of 5", Paused: true, Pausing: true,
		PausedAt: at.AsTime(), Pinned: true, LeaseLosses: 2, ParentRunID: "p",
		ParentStep: "ps", RetriedFromRunID: "rf", ContinuedAsRunID: "ca", ContinuedFromRunID: "cf", FailedRunID: "f",
		ScheduleID:     "s",
		ConcurrencyKey: "k", ConcurrencyLimit: 3, ConcurrencyScope: ScopeOpen, OnFailure: "of", OnFailureQueue: "oq", ScheduledAt: at.AsTime(),
		CancelRequestedAt: at.AsTime(),
		CancelGraceUntil:  at.AsTime(), Deadline: at.AsTime()})
}

// sameDetails compares exported fields.
func sameDetails[T any](t *testing.T, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(want)); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
}
