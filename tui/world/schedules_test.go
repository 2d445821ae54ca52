package world

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestSchedulesAreMadeChangedFiredAndDeleted(t *testing.T) {
	w := New(seed, begin)
	create := &kagziv1.CreateWorkflowScheduleRequest{Name: "every-minute", CronExpr: "* * * * *", WorkflowType: "invoice.send", TaskQueue: "emails", RequestId: "c1"}
	s := must[*kagziv1.CreateWorkflowScheduleResponse](t)(w.CreateWorkflowSchedule(ctx, create)).Schedule
	if again := must[*kagziv1.CreateWorkflowScheduleResponse](t)(w.CreateWorkflowSchedule(ctx, create)).Schedule; again.ScheduleId != s.ScheduleId {
		t.Error("a repeated request makes another schedule")
	}
	w.Advance(5 * time.Minute)
	runs := must[*kagziv1.ListScheduleRunsResponse](t)(w.ListScheduleRuns(ctx, &kagziv1.ListScheduleRunsRequest{ScheduleId: "every-minute"})).Runs
	if len(runs) != 5 || runs[0].ScheduledAt.AsTime() != time.Date(2026, 11, 20, 12, 8, 0, 0, time.UTC) || runs[0].ExternalId != "schedule:"+s.ScheduleId+":2026-11-20T12:08:00Z" {
		t.Errorf("runs: %v", runs)
	}
	triggered := must[*kagziv1.TriggerWorkflowScheduleResponse](t)(w.TriggerWorkflowSchedule(ctx, &kagziv1.TriggerWorkflowScheduleRequest{ScheduleId: s.ScheduleId})).RunId
	if r := get(t, w, triggered); r.ScheduledAt != nil || !strings.Contains(r.ExternalId, ":trigger:") {
		t.Errorf("triggered: %v", r)
	}
	must[*kagziv1.PauseWorkflowScheduleResponse](t)(w.PauseWorkflowSchedule(ctx, &kagziv1.PauseWorkflowScheduleRequest{ScheduleId: s.ScheduleId}))
	w.Advance(3 * time.Minute)
	if got := scheduleByID(t, w, s.ScheduleId); got.TotalRuns != 6 || got.Enabled {
		t.Errorf("paused: %v", got)
	}
	must[*kagziv1.UpdateWorkflowScheduleResponse](t)(w.UpdateWorkflowSchedule(ctx, &kagziv1.UpdateWorkflowScheduleRequest{ScheduleId: s.ScheduleId, MaxCatchup: proto.Int32(1)}))
	must[*kagziv1.ResumeWorkflowScheduleResponse](t)(w.ResumeWorkflowSchedule(ctx, &kagziv1.ResumeWorkflowScheduleRequest{ScheduleId: s.ScheduleId}))
	w.Advance(time.Second)
	if got := scheduleByID(t, w, s.ScheduleId); got.TotalRuns != 7 || got.SkippedTicks != 2 {
		t.Errorf("caught up: %v", got)
	}
	_, err := w.UpdateWorkflowSchedule(ctx, &kagziv1.UpdateWorkflowScheduleRequest{ScheduleId: s.ScheduleId, CronExpr: proto.String("61 * * * *")})
	refused(t, err, codes.InvalidArgument, invalidArgument, "cron_expr")
	_, err = w.CreateWorkflowSchedule(ctx, &kagziv1.CreateWorkflowScheduleRequest{Name: "crm-sync", CronExpr: "@daily", WorkflowType: "x"})
	refused(t, err, codes.AlreadyExists, isConflict, "schedule")
	must[*kagziv1.DeleteWorkflowScheduleResponse](t)(w.DeleteWorkflowSchedule(ctx, &kagziv1.DeleteWorkflowScheduleRequest{ScheduleId: s.ScheduleId}))
	_, err = w.GetWorkflowSchedule(ctx, &kagziv1.GetWorkflowScheduleRequest{ScheduleId: s.ScheduleId})
	refused(t, err, codes.NotFound, isMissing, "schedule")
	mended := must[*kagziv1.UpdateWorkflowScheduleResponse](t)(w.UpdateWorkflowSchedule(ctx, &kagziv1.UpdateWorkflowScheduleRequest{ScheduleId: "onboarding-digest", TimeZone: proto.String("Europe/Kyiv")})).Schedule
	if mended.Broken != "" || mended.NextFireAt == nil {
		t.Errorf("mended: %v", mended)
	}
}

func scheduleByID(t *testing.T, w *World, id string) *kagziv1.WorkflowSchedule {
	t.Helper()
	return must[*kagziv1.GetWorkflowScheduleResponse](t)(w.GetWorkflowSchedule(ctx, &kagziv1.GetWorkflowScheduleRequest{ScheduleId: id})).Schedule
}

func TestPreviewsAreRightInEachDialect(t *testing.T) {
	w := New(seed, begin)
	for _, c := range []struct {
		expr, zone, after string
		want              []string
	}{
		{"*/15 * * * *", "", "2026-11-20T12:03:20Z", []string{"2026-11-20T12:15:00Z", "2026-11-20T12:30:00Z"}},
		{"0 2 * * *", "Europe/Berlin", "2026-11-20T12:00:00Z", []string{"2026-11-21T01:00:00Z", "2026-11-22T01:00:00Z"}},
		{"0 */20 * * * *", "", "2026-11-20T12:03:20Z", []string{"2026-11-20T12:20:00Z"}},
		{"30 7 * * MON-FRI", "America/New_York", "2026-11-20T12:40:00Z", []string{"2026-11-23T12:30:00Z"}},
		{"0 9 * * 7", "", "2026-11-20T12:00:00Z", []string{"2026-11-22T09:00:00Z"}},
		{"0 0 9 * * 1", "", "2026-11-20T12:00:00Z", []string{"2026-11-22T09:00:00Z"}}, // with seconds, 1 is Sunday
		{"0 0 12 13 * FRI", "", "2026-11-20T12:00:00Z", []string{"2027-08-13T12:00:00Z"}},
		{"0 12 13 * FRI", "", "2026-11-20T12:00:00Z", []string{"2026-11-27T12:00:00Z", "2026-12-04T12:00:00Z", "2026-12-11T12:00:00Z", "2026-12-13T12:00:00Z"}},
		{"0 0 29 2 *", "", "2026-11-20T12:00:00Z", []string{"2028-02-29T00:00:00Z"}},
		{"30 2 * * *", "Europe/Berlin", "2027-03-27T12:00:00Z", []string{"2027-03-28T01:00:00Z", "2027-03-29T00:30:00Z"}},
		{"@hourly", "", "2026-11-20T12:00:00Z", []string{"2026-11-20T13:00:00Z"}},
		{"0 0 12 1 1 * 2027", "", "2027-06-01T00:00:00Z", nil},
	} {
		after := must[time.Time](t)(time.Parse(time.RFC3339, c.after))
		got := must[*kagziv1.PreviewScheduleResponse](t)(w.PreviewSchedule(ctx, &kagziv1.PreviewScheduleRequest{
			CronExpr: c.expr, TimeZone: c.zone, After: timestamppb.New(after), Count: int32(max(len(c.want), 1)),
		})).Ticks
		var texts []string
		for _, tick := range got {
			texts = append(texts, tick.AsTime().Format(time.RFC3339))
		}
		if !slices.Equal(texts, c.want) {
			t.Errorf("%q in %q after %s: %v, want %v", c.expr, c.zone, c.after, texts, c.want)
		}
	}
	for _, expr := range []string{"", "* * * *", "61 * * * *", "*/99 * * * *", "0 0 31-1 * *", "@never", "a b c d e", "5-1 * * * *"} {
		_, err := w.PreviewSchedule(ctx, &kagziv1.PreviewScheduleRequest{CronExpr: expr})
		refused(t, err, codes.InvalidArgument, invalidArgument, "cron_expr")
	}
	_, err := w.PreviewSchedule(ctx, &kagziv1.PreviewScheduleRequest{CronExpr: "@daily", TimeZone: "Mars/Olympus"})
	refused(t, err, codes.InvalidArgument, invalidArgument, "time_zone")
}
