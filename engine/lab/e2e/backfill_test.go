package e2e

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestABackfillStartsPastTicksOnce(t *testing.T) {
	eachServer(t, jumpy, func(t *testing.T, s *Server) {
		s.toMinute()
		ctx := within(t, time.Minute)
		made := s.schedule(t, func(r *kagziv1.CreateWorkflowScheduleRequest) { r.Name, r.CronExpr = "plan", "@every 60s" })
		first := made.NextFireAt.AsTime()
		request := &kagziv1.BackfillWorkflowScheduleRequest{ScheduleId: "plan",
			From: timestamppb.New(first.Add(-150 * time.Minute)), To: timestamppb.New(first.Add(-time.Minute))}
		answer := fine(s.schedules().BackfillWorkflowSchedule(ctx, request))(t)
		runs := s.fired(t, made.ScheduleId)
		if len(answer.Ticks) != 150 || len(runs) != 150 {
			t.Fatalf("%d ticks and %d runs, want 150", len(answer.Ticks), len(runs))
		}
		for i, tick := range answer.Ticks {
			id := "schedule:" + made.ScheduleId + ":" + tick.Tick.AsTime().Format(time.RFC3339)
			if runs[i].RunId != tick.RunId || runs[i].ExternalId != id || tick.Existed {
				t.Fatalf("tick %v has the run %v", tick, runs[i])
			}
		}
		for _, tick := range fine(s.schedules().BackfillWorkflowSchedule(ctx, request))(t).Ticks {
			if !tick.Existed {
				t.Fatalf("a repeated call starts %v", tick)
			}
		}
		s.toMinute() // the schedule goes on as before
		if next := s.awaitFired(t, made.ScheduleId, 151)[150]; !next.ScheduledAt.AsTime().Equal(first) {
			t.Errorf("the next run is for %s, want %s", next.ScheduledAt.AsTime(), first)
		}
	})
}

func TestAScheduleIsCreatedOrUpdatedInOneCall(t *testing.T) {
	eachServer(t, jumpy, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		ask := func(change func(*kagziv1.CreateWorkflowScheduleRequest)) *kagziv1.CreateWorkflowScheduleResponse {
			r := &kagziv1.CreateWorkflowScheduleRequest{
				Name: "plan", WorkflowType: "t", CronExpr: "@daily", OrUpdate: true, MaxCatchup: new(int32(7))}
			change(r)
			return fine(s.schedules().CreateWorkflowSchedule(ctx, r))(t)
		}
		made := ask(func(r *kagziv1.CreateWorkflowScheduleRequest) {})
		same := ask(func(r *kagziv1.CreateWorkflowScheduleRequest) {})
		if made.Existed || !same.Existed || !same.Schedule.UpdatedAt.AsTime().Equal(made.Schedule.UpdatedAt.AsTime()) {
			t.Errorf("made %v, then %v; want the same, unchanged", made, same)
		}
		fine(s.schedules().PauseWorkflowSchedule(ctx, &kagziv1.PauseWorkflowScheduleRequest{
			ScheduleId: "plan", Reason: "wrong figures"}))(t)
		other := ask(func(r *kagziv1.CreateWorkflowScheduleRequest) {
			r.CronExpr, r.JitterMs, r.MaxCatchup = "@every 90s", 30_000, nil
		}).Schedule
		if other.ScheduleId != made.Schedule.ScheduleId || other.CronExpr != "@every 90s" || other.MaxCatchup != 100 ||
			other.Enabled || other.PauseReason != "wrong figures" || other.JitterMs != 30_000 ||
			other.NextRunAt.AsTime().Sub(other.NextFireAt.AsTime()) >= 30*time.Second {
			t.Errorf("the update made it %v", other)
		}
		if resumed := fine(s.schedules().ResumeWorkflowSchedule(ctx, &kagziv1.ResumeWorkflowScheduleRequest{
			ScheduleId: "plan"}))(t).Schedule; resumed.PauseReason != "" || !resumed.Enabled {
			t.Errorf("resumed it is %v", resumed)
		}
		_, err := s.schedules().CreateWorkflowSchedule(ctx, &kagziv1.CreateWorkflowScheduleRequest{
			WorkflowType: "t", CronExpr: "@daily", OrUpdate: true})
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "or_update: needs a name") {
			t.Errorf("without a name: %v", err)
		}
	})
}
