package server

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestBackfillStartsTheTicksOfARangeInPortions(t *testing.T) {
	plan := stored()
	plan.CronExpr = "@every 1m"
	b := &servertest.Books{Schedules: map[string]engine.Schedule{"sched": plan}}
	from := time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)
	answer, err := serverOver(b).BackfillWorkflowSchedule(t.Context(), &kagziv1.BackfillWorkflowScheduleRequest{
		ScheduleId: "sched", From: timestamppb.New(from), To: timestamppb.New(from.Add(249 * time.Minute)), Reason: "why"})
	if err != nil || len(answer.Ticks) != 250 || b.Changes() != 3 {
		t.Fatalf("%d ticks in %d calls, %v; want 250 in 3", len(answer.GetTicks()), b.Changes(), err)
	}
	for i, tick := range answer.Ticks {
		if want := from.Add(time.Duration(i) * time.Minute); !tick.Tick.AsTime().Equal(want) || tick.RunId == "" {
			t.Fatalf("tick %d is %v, want %v with a run", i, tick, want)
		}
	}
	p := servertest.Last[engine.BackfillScheduleParams](b)
	if p.Ref != plan.ID.String() || p.Reason != "why" || !p.From.Equal(from) || len(p.Ticks) != 50 {
		t.Errorf("the last call is %+v", p)
	}
}

func TestBackfillRefusesByField(t *testing.T) {
	plan := stored()
	plan.CronExpr = "@every 1m"
	at := func(d time.Duration) *timestamppb.Timestamp {
		return timestamppb.New(time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC).Add(d))
	}
	for _, c := range []struct {
		name, want string
		from, to   *timestamppb.Timestamp
	}{
		{"no from", "from: must be set", nil, at(0)},
		{"an inverted range", "to: must not be before from", at(time.Second), at(0)},
		{"the future", "to: must not be in the future", at(0), timestamppb.New(time.Now().Add(time.Hour))},
		{"more than ten years", "from: must be at most 10 years before to", at(-engine.MaxDelay - 1), at(0)},
		{"one tick more than allowed", "from: and to hold 1001 ticks; one call starts at most 1000", at(0), at(1000 * time.Minute)},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &servertest.Books{Schedules: map[string]engine.Schedule{"sched": plan}}
			_, err := serverOver(b).BackfillWorkflowSchedule(t.Context(),
				&kagziv1.BackfillWorkflowScheduleRequest{ScheduleId: "sched", From: c.from, To: c.to})
			if err == nil || !strings.Contains(err.Error(), c.want) || b.Changes() != 0 {
				t.Errorf("%v after %d changes, want %q", err, b.Changes(), c.want)
			}
		})
	}
	b := &servertest.Books{Schedules: map[string]engine.Schedule{"sched": plan}}
	answer, err := serverOver(b).BackfillWorkflowSchedule(t.Context(), &kagziv1.BackfillWorkflowScheduleRequest{
		ScheduleId: "sched", From: at(0), To: at(999 * time.Minute)})
	if err != nil || len(answer.Ticks) != engine.MaxBackfill {
		t.Errorf("the most ticks: %d, %v", len(answer.GetTicks()), err)
	}
}

func TestCreateOrUpdate(t *testing.T) {
	request := func() *kagziv1.CreateWorkflowScheduleRequest {
		return &kagziv1.CreateWorkflowScheduleRequest{Name: "sched", WorkflowType: "t2", CronExpr: "@hourly",
			JitterMs: 1000, OrUpdate: true}
	}
	t.Run("needs a name", func(t *testing.T) {
		r := request()
		r.Name = ""
		_, err := serverOver(&servertest.Books{}).CreateWorkflowSchedule(t.Context(), r)
		if err == nil || !strings.Contains(err.Error(), "or_update: needs a name") {
			t.Error(err)
		}
	})
	t.Run("creates what is not there", func(t *testing.T) {
		b := &servertest.Books{}
		answer, err := serverOver(b).CreateWorkflowSchedule(t.Context(), request())
		if err != nil || answer.Existed || servertest.Last[engine.ScheduleParams](b).Method != "CreateWorkflowSchedule" {
			t.Errorf("%v, %v", answer, err)
		}
	})
	t.Run("replaces the settings and keeps a pause", func(t *testing.T) {
		paused := stored()
		paused.Enabled, paused.PauseReason = false, "why"
		b := &servertest.Books{Schedules: map[string]engine.Schedule{"sched": paused}, Conflicts: 2}
		answer, err := serverOver(b).CreateWorkflowSchedule(t.Context(), request())
		if err != nil || !answer.Existed {
			t.Fatalf("%v, %v", answer, err)
		}
		p := servertest.Last[engine.ScheduleParams](b)
		got := p.Schedule
		if p.Method != "UpdateWorkflowSchedule" || got.ID != paused.ID || got.Type != "t2" || got.Queue != "default" ||
			got.CronExpr != "@hourly" || got.MaxCatchup != engine.DefaultCatchup || got.Jitter != time.Second ||
			got.Enabled || got.PauseReason != "why" || got.Input.Size() != 0 || len(got.Tags) != 0 || got.Fired != 4 ||
			got.NextFireAt.Minute() != 0 {
			t.Errorf("%s %+v", p.Method, got)
		}
		r := request()
		r.Enabled = new(true)
		if _, err := serverOver(b).CreateWorkflowSchedule(t.Context(), r); err != nil ||
			!servertest.Last[engine.ScheduleParams](b).Schedule.Enabled {
			t.Errorf("with enabled it stays paused, %v", err)
		}
	})
}

func TestJitterIsShownWithTheNextRun(t *testing.T) {
	s := serverOver(&servertest.Books{})
	answer, err := s.CreateWorkflowSchedule(t.Context(), &kagziv1.CreateWorkflowScheduleRequest{
		WorkflowType: "t", CronExpr: "@daily", JitterMs: engine.MaxJitter.Milliseconds()})
	if err != nil {
		t.Fatal(err)
	}
	plan := answer.Schedule
	late := plan.NextRunAt.AsTime().Sub(plan.NextFireAt.AsTime())
	if late <= 0 || late >= 24*time.Hour || plan.JitterMs != engine.MaxJitter.Milliseconds() {
		t.Errorf("the next run is %s after its tick", late)
	}
	for _, ms := range []int64{-1, engine.MaxJitter.Milliseconds() + 1} {
		_, err := s.CreateWorkflowSchedule(t.Context(), &kagziv1.CreateWorkflowScheduleRequest{
			WorkflowType: "t", CronExpr: "@daily", JitterMs: ms})
		if err == nil || !strings.Contains(err.Error(), "jitter_ms: must be between 0 (none) and 86400000 (24 h)") {
			t.Errorf("%d: %v", ms, err)
		}
	}
}
