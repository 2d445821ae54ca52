package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// schedule makes a schedule of type "t" that fires each minute, after the given changes.
func (s *Server) schedule(t testing.TB, change ...func(
	*kagziv1.CreateWorkflowScheduleRequest)) *kagziv1.WorkflowSchedule {
	t.Helper()
	r := &kagziv1.CreateWorkflowScheduleRequest{WorkflowType: "t", CronExpr: "* * * * *", Input: text("scheduled")}
	for _, c := range change {
		c(r)
	}
	return fine(s.schedules().CreateWorkflowSchedule(within(t, 20*time.Second), r))(t).Schedule
}

func (s *Server) look(t testing.TB, schedule string) *kagziv1.WorkflowSchedule {
	t.Helper()
	return fine(s.schedules().GetWorkflowSchedule(
		within(t, 20*time.Second), &kagziv1.GetWorkflowScheduleRequest{ScheduleId: schedule}))(t).Schedule
}

// fired returns the runs of a schedule in the order of their ticks.
func (s *Server) fired(t testing.TB, schedule string) []*kagziv1.Workflow {
	t.Helper()
	runs := fine(s.schedules().ListScheduleRuns(within(t, 20*time.Second), &kagziv1.ListScheduleRunsRequest{
		ScheduleId: schedule, Page: &kagziv1.PageRequest{PageSize: 1000}}))(t).Runs
	slices.SortFunc(runs, func(a, b *kagziv1.Workflow) int {
		return a.ScheduledAt.AsTime().Compare(b.ScheduledAt.AsTime())
	})
	return runs
}

// awaitFired waits until a schedule has fired this many runs.
func (s *Server) awaitFired(t testing.TB, schedule string, n int) (runs []*kagziv1.Workflow) {
	t.Helper()
	eventually(t, fmt.Sprintf("the schedule has fired %d times", n), func() bool {
		runs = s.fired(t, schedule)
		return len(runs) >= n
	})
	return runs
}

// toMinute sets the clock to just after the next whole minute. Tests of schedules also begin with
// it, so that the next minute is far enough away.
func (s *Server) toMinute() {
	now := s.Store.Now()
	s.Jump(now.Truncate(time.Minute).Add(time.Minute + time.Millisecond).Sub(now))
}

func TestASchedulesLife(t *testing.T) {
	eachServer(t, jumpy, func(t *testing.T, s *Server) {
		s.toMinute()
		ctx := within(t, time.Minute)
		policy := &kagziv1.RetryPolicy{MaximumAttempts: 4, InitialIntervalMs: 10, BackoffCoefficient: 2,
			MaximumIntervalMs: 20, Jitter: 0.5}
		nightly := func(r *kagziv1.CreateWorkflowScheduleRequest) {
			r.Name, r.TaskQueue, r.CronExpr, r.TimeZone, r.Version = "nightly", "q", "30 2 * * *",
				"Europe/Berlin", ptr("v1")
			r.MaxCatchup, r.OverlapPolicy, r.RetryPolicy = proto.Int32(7),
				kagziv1.OverlapPolicy_OVERLAP_POLICY_SKIP, policy
			r.Timeouts, r.OnFailureWorkflow, r.OnFailureTaskQueue = &kagziv1.TimeoutConfig{ExecutionTimeoutMs: 60_000},
				"mourn", "graves"
			r.Tags, r.RequestId = map[string]string{"team": "x"}, "req-1"
		}
		made := s.schedule(t, nightly)
		berlin, err := time.LoadLocation("Europe/Berlin")
		if err != nil {
			t.Fatal(err)
		}
		if at := made.NextFireAt.AsTime().In(berlin); at.Hour() != 2 || at.Minute() != 30 || !at.After(s.Store.Now()) {
			t.Errorf("it fires next at %s, want half past two in Berlin", at)
		}
		for _, ref := range []string{made.ScheduleId, "nightly"} {
			if got := s.look(t, ref); !proto.Equal(got, made) {
				t.Errorf("as %s it reads\n%v, want\n%v", ref, got, made)
			}
		}
		if !made.Enabled || made.MaxCatchup != 7 || made.Tags["team"] != "x" ||
			made.RetryPolicy.GetMaximumAttempts() != 4 || string(made.Input.Data) != "scheduled" ||
			made.Timeouts.GetExecutionTimeoutMs() != 60_000 || made.OnFailureWorkflow != "mourn" ||
			made.OnFailureTaskQueue != "graves" || made.Version != "v1" {
			t.Errorf("it is kept as %v", made)
		}
		if again := s.schedule(t, nightly); again.ScheduleId != made.ScheduleId {
			t.Errorf("the same request made %s", again.ScheduleId)
		}
		other := second(s.schedules().CreateWorkflowSchedule(
			ctx, &kagziv1.CreateWorkflowScheduleRequest{WorkflowType: "t", CronExpr: "@daily", RequestId: "req-1"}))
		wantRefused(t, "the same request for another schedule", other, codes.FailedPrecondition, codeConflict,
			"made before")
		list := fine(s.schedules().ListWorkflowSchedules(
			ctx, &kagziv1.ListWorkflowSchedulesRequest{TaskQueue: ptr("q")}))(t)
		if len(list.Schedules) != 1 || list.Schedules[0].Input != nil || list.Schedules[0].Name != "nightly" {
			t.Errorf("the list is %v, want it without its input", list)
		}
		if other := fine(s.schedules().ListWorkflowSchedules(
			ctx, &kagziv1.ListWorkflowSchedulesRequest{TaskQueue: ptr("other")}))(t); len(other.Schedules) != 0 {
			t.Errorf("the list of another queue is %v", other)
		}

		changed := fine(s.schedules().UpdateWorkflowSchedule(ctx, &kagziv1.UpdateWorkflowScheduleRequest{
			ScheduleId: "nightly", CronExpr: ptr("*/5 * * * *"), TimeZone: ptr(""), MaxCatchup: proto.Int32(0),
			Reason: "more often"}))(t).Schedule
		if at := changed.NextFireAt.AsTime(); at.Minute()%5 != 0 || at.Sub(s.Store.Now()) > 5*time.Minute ||
			changed.MaxCatchup != 0 {
			t.Errorf("changed it is %v, want its next tick within five minutes", changed)
		}
		wanted := proto.CloneOf(made)
		wanted.CronExpr, wanted.TimeZone, wanted.MaxCatchup, wanted.NextFireAt, wanted.UpdatedAt = "*/5 * * * *", "", 0,
			changed.NextFireAt, changed.UpdatedAt
		if !proto.Equal(changed, wanted) {
			t.Errorf("an update that names three fields made it\n%v, want\n%v", changed, wanted)
		}
		for range 2 { // again is fine
			if p := fine(s.schedules().PauseWorkflowSchedule(
				ctx, &kagziv1.PauseWorkflowScheduleRequest{ScheduleId: made.ScheduleId, Reason: "holiday"}))(
				t).Schedule; p.Enabled {
				t.Errorf("paused it is %v", p)
			}
		}
		triggered := fine(s.schedules().TriggerWorkflowSchedule(
			ctx, &kagziv1.TriggerWorkflowScheduleRequest{ScheduleId: "nightly", RequestId: "t-1"}))(t).RunId
		if again := fine(s.schedules().TriggerWorkflowSchedule(
			ctx, &kagziv1.TriggerWorkflowScheduleRequest{ScheduleId: "nightly", RequestId: "t-1"}))(
			t).RunId; again != triggered {
			t.Errorf("the same trigger again started %s", again)
		}
		run := s.get(t, triggered)
		if run.ExternalId != "schedule:"+made.ScheduleId+":trigger:"+triggered ||
			run.GetScheduleId() != made.ScheduleId || run.ScheduledAt != nil ||
			run.TaskQueue != "q" || run.Version != "v1" || run.Tags["team"] != "x" ||
			string(run.Input.Data) != "scheduled" || run.OnFailureWorkflow != "mourn" ||
			run.RetryPolicy.GetMaximumAttempts() != 4 || run.DeadlineAt == nil {
			t.Errorf("triggered it runs as %v", run)
		}
		if deleted := fine(s.schedules().DeleteWorkflowSchedule(
			ctx, &kagziv1.DeleteWorkflowScheduleRequest{ScheduleId: "nightly", Reason: "done"}))(t); !deleted.Deleted {
			t.Errorf("delete is answered with %v", deleted)
		}
		if again := fine(s.schedules().DeleteWorkflowSchedule(
			ctx, &kagziv1.DeleteWorkflowScheduleRequest{ScheduleId: strings.ToUpper(made.ScheduleId)}))(
			t); !again.Deleted {
			t.Errorf("the same delete again is answered with %v", again)
		}
		err = second(s.schedules().DeleteWorkflowSchedule(
			ctx, &kagziv1.DeleteWorkflowScheduleRequest{ScheduleId: made.ScheduleId, Namespace: "other"}))
		wantRefused(t, "the same delete in another namespace", err, codes.NotFound, codeNotFound, "no schedule")
		err = second(s.schedules().DeleteWorkflowSchedule(
			ctx, &kagziv1.DeleteWorkflowScheduleRequest{ScheduleId: "nightly"}))
		wantRefused(t, "the delete of a name that is free", err, codes.NotFound, codeNotFound, "no schedule")
		if got := s.get(t, triggered); got.Status != pending {
			t.Errorf("the run of a deleted schedule is %s", got.Status)
		}
		var methods []string
		for _, e := range fine(s.admin().ListAuditEvents(
			ctx, &kagziv1.ListAuditEventsRequest{Namespace: "default", SubjectId: ptr(made.ScheduleId)}))(t).Events {
			methods = append(methods, strings.TrimSuffix(e.Method+"/"+e.Reason, "/"))
		}
		if want := []string{"DeleteWorkflowSchedule/done", "TriggerWorkflowSchedule", "PauseWorkflowSchedule/holiday",
			"UpdateWorkflowSchedule/more often", "CreateWorkflowSchedule"}; !slices.Equal(methods, want) {
			t.Errorf("the audit says %q, want %q", methods, want)
		}
	})
}

func TestSchedulesThatAreRefused(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		s.schedule(t, func(r *kagziv1.CreateWorkflowScheduleRequest) { r.Name = "taken" })
		create := func(change func(*kagziv1.CreateWorkflowScheduleRequest)) error {
			r := &kagziv1.CreateWorkflowScheduleRequest{WorkflowType: "t", CronExpr: "* * * * *"}
			change(r)
			_, err := s.schedules().CreateWorkflowSchedule(ctx, r)
			return err
		}
		for expr, words := range map[string]string{
			"": "", "* * *": "", "61 * * * *": "61", "* * 30 2 *": "", "* * * * * * * *": "", "0 0 0 1 1 * 1999": "",
			"@fortnightly": "@fortnightly",
			"*/0 * * * *":  "", "5-1 * * * *": "", "* * * * mon-": "", "* * * * *\x00": "",
			strings.Repeat("1,", 128) + "1 * * * *": "256",
		} {
			err := create(func(r *kagziv1.CreateWorkflowScheduleRequest) { r.CronExpr = expr })
			wantRefused(t, "the expression "+expr, err, codes.InvalidArgument, codeInvalid, words)
			if got := detailOf(err).Metadata["field"]; got != "cron_expr" {
				t.Errorf("the refusal of %q names %q", expr, got)
			}
			_, err = s.schedules().PreviewSchedule(ctx, &kagziv1.PreviewScheduleRequest{CronExpr: expr})
			if expr != "0 0 0 1 1 * 1999" {
				wantRefused(t, "the preview of "+expr, err, codes.InvalidArgument, codeInvalid, words)
			}
		}
		for _, zone := range []string{"Mars/Olympus", "../../etc/passwd", "Local", "Europe/Berlin\x00"} {
			err := create(func(r *kagziv1.CreateWorkflowScheduleRequest) { r.TimeZone = zone })
			wantRefused(t, "the zone "+zone, err, codes.InvalidArgument, codeInvalid, "")
			if got := detailOf(err).Metadata["field"]; got != "time_zone" {
				t.Errorf("the refusal of %q names %q", zone, got)
			}
		}
		wantRefused(t, "a name that is taken", create(func(r *kagziv1.CreateWorkflowScheduleRequest) {
			r.Name = "taken"
		}), codes.AlreadyExists, codeConflict, "taken")
		for name, err := range map[string]error{
			"get": second(s.schedules().GetWorkflowSchedule(
				ctx, &kagziv1.GetWorkflowScheduleRequest{ScheduleId: "nobody"})),
			"update": second(s.schedules().UpdateWorkflowSchedule(
				ctx, &kagziv1.UpdateWorkflowScheduleRequest{ScheduleId: "nobody"})),
			"pause": second(s.schedules().PauseWorkflowSchedule(
				ctx, &kagziv1.PauseWorkflowScheduleRequest{ScheduleId: "nobody"})),
			"resume": second(s.schedules().ResumeWorkflowSchedule(
				ctx, &kagziv1.ResumeWorkflowScheduleRequest{ScheduleId: "nobody"})),
			"trigger": second(s.schedules().TriggerWorkflowSchedule(
				ctx, &kagziv1.TriggerWorkflowScheduleRequest{ScheduleId: "nobody"})),
			"delete": second(s.schedules().DeleteWorkflowSchedule(
				ctx, &kagziv1.DeleteWorkflowScheduleRequest{ScheduleId: "nobody"})),
			"runs": second(s.schedules().ListScheduleRuns(
				ctx, &kagziv1.ListScheduleRunsRequest{ScheduleId: "nobody"})),
			"get in another namespace": second(s.schedules().GetWorkflowSchedule(
				ctx, &kagziv1.GetWorkflowScheduleRequest{Namespace: "other", ScheduleId: "taken"})),
		} {
			wantRefused(t, name+" of no schedule", err, codes.NotFound, codeNotFound, "no schedule")
		}
		err := second(s.schedules().UpdateWorkflowSchedule(
			ctx, &kagziv1.UpdateWorkflowScheduleRequest{ScheduleId: "taken", CronExpr: ptr("* * 31 2 *")}))
		wantRefused(t, "an update to an impossible date", err, codes.InvalidArgument, codeInvalid, "")
		if got := s.look(t, "taken"); got.CronExpr != "* * * * *" {
			t.Errorf("a refused update left %v", got)
		}
		fine(s.namespaces().CreateNamespace(ctx, &kagziv1.CreateNamespaceRequest{Namespace: "closed"}))(t)
		fine(s.namespaces().DisableNamespace(ctx, &kagziv1.DisableNamespaceRequest{Namespace: "closed"}))(t)
		wantRefused(t, "in a disabled namespace",
			create(func(r *kagziv1.CreateWorkflowScheduleRequest) { r.Namespace = "closed" }), codes.FailedPrecondition,
			codePrecondition, "disabled")
		if list := fine(s.schedules().ListWorkflowSchedules(ctx, &kagziv1.ListWorkflowSchedulesRequest{}))(t); len(
			list.Schedules) != 1 {
			t.Errorf("refused creations left %v", list)
		}
	})
}

// second returns the error of a call whose answer does not matter.
func second[T any](_ T, err error) error { return err }

func TestAPreviewStoresNothing(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		preview := func(r *kagziv1.PreviewScheduleRequest) (ticks []string) {
			for _, tick := range fine(s.schedules().PreviewSchedule(ctx, r))(t).Ticks {
				ticks = append(ticks, tick.AsTime().Format(time.RFC3339))
			}
			return ticks
		}
		after := timestamppb.New(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC))
		// The clocks of Berlin go from 2 to 3 on 29 March 2026: a tick in the gap fires once at its
		// end.
		got := preview(&kagziv1.PreviewScheduleRequest{
			CronExpr: "30 2 * * *", TimeZone: "Europe/Berlin", Count: 3, After: after})
		if want := []string{"2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z", "2026-03-31T00:30:00Z"}; !slices.Equal(
			got, want) {
			t.Errorf("over the gap it fires at %v, want %v", got, want)
		}
		after = timestamppb.New(time.Date(2026, 10, 24, 12, 0, 0, 0, time.UTC))
		got = preview(&kagziv1.PreviewScheduleRequest{
			CronExpr: "30 2 * * *", TimeZone: "Europe/Berlin", Count: 2, After: after})
		if want := []string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}; !slices.Equal(got, want) {
			t.Errorf("over the overlap it fires at %v, want %v", got, want)
		}
		if got := preview(&kagziv1.PreviewScheduleRequest{CronExpr: "@hourly"}); len(got) != 5 {
			t.Errorf("without a count it tells %v, want 5 ticks", got)
		}
		if got := preview(&kagziv1.PreviewScheduleRequest{
			CronExpr: "0 0 0 1 1 * 2027", Count: 9, After: after}); !slices.Equal(
			got, []string{"2027-01-01T00:00:00Z"}) {
			t.Errorf("of an expression with one tick left it tells %v", got)
		}
		for _, count := range []int32{-1, 101} {
			_, err := s.schedules().PreviewSchedule(
				ctx, &kagziv1.PreviewScheduleRequest{CronExpr: "@hourly", Count: count})
			wantRefused(t, "a preview of so many", err, codes.InvalidArgument, codeInvalid, "count")
		}
		if list := fine(s.schedules().ListWorkflowSchedules(ctx, &kagziv1.ListWorkflowSchedulesRequest{}))(t); len(
			list.Schedules) != 0 {
			t.Errorf("the previews left %v", list)
		}
	})
}

func TestATickIsARunThatKnowsItsTime(t *testing.T) {
	eachServer(t, jumpy, func(t *testing.T, s *Server) {
		s.toMinute()
		known := make(chan kagzi.RunInfo, 10)
		s.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "report", func(ctx kagzi.Context, title string) (string, error) {
				known <- kagzi.Info(ctx)
				return title, nil
			})
		})
		ctx, c := within(t, time.Minute), s.client(t)
		made := fine(kagzi.CreateSchedule(ctx, c, "report", "* * * * *", "sales",
			kagzi.ScheduleOptions{Name: "sales"}))(t)
		tick := s.look(t, made.ID()).NextFireAt.AsTime()
		s.toMinute()
		info := receive(t, "the tick's run", known)
		if info.ScheduleID != made.ID() || !info.ScheduledAt.Equal(tick) ||
			info.ExternalID != "schedule:"+made.ID()+":"+tick.Format(time.RFC3339) {
			t.Errorf("the run knows %+v, want the tick %s", info, tick)
		}
		if w := s.await(t, info.RunID); string(w.Output.GetData()) != `"sales"` || !w.ScheduledAt.AsTime().Equal(tick) {
			t.Errorf("the run ended as %v", w)
		}
		var details *kagzi.ScheduleDetails
		eventually(t, "the schedule has counted its run", func() bool {
			details = fine(made.Describe(ctx))(t)
			return details.SuccessfulRuns == 1
		})
		if details.TotalRuns != 1 || details.FailedRuns != 0 || details.SkippedTicks != 0 ||
			!details.LastFiredAt.Equal(tick) || !details.NextFireAt.Equal(tick.Add(time.Minute)) {
			t.Errorf("the schedule is %+v", details)
		}
		run := fine(made.Trigger(ctx, kagzi.TriggerOptions{}))(t)
		if got := fine(kagzi.Result[string](ctx, run))(t); got != "sales" {
			t.Errorf("triggered it returns %q", got)
		}
		if info := receive(t, "the triggered run", known); !info.ScheduledAt.IsZero() || info.ScheduleID != made.ID() {
			t.Errorf("the triggered run knows %+v", info)
		}
	})
}

func TestResumingCatchesUpMissedTicks(t *testing.T) {
	eachServer(t, jumpy, func(t *testing.T, s *Server) {
		s.toMinute()
		ctx := within(t, time.Minute)
		made := s.schedule(t, func(r *kagziv1.CreateWorkflowScheduleRequest) { r.MaxCatchup = proto.Int32(3) })
		first := made.NextFireAt.AsTime()
		s.toMinute()
		s.awaitFired(t, made.ScheduleId, 1)
		fine(s.schedules().PauseWorkflowSchedule(
			ctx, &kagziv1.PauseWorkflowScheduleRequest{ScheduleId: made.ScheduleId}))(t)
		s.Jump(10 * time.Minute)
		if got := s.look(t, made.ScheduleId); got.TotalRuns != 1 ||
			!got.NextFireAt.AsTime().Equal(first.Add(time.Minute)) {
			t.Errorf("paused for ten minutes it is %v, want nothing fired and its place kept", got)
		}
		fine(s.schedules().ResumeWorkflowSchedule(
			ctx, &kagziv1.ResumeWorkflowScheduleRequest{ScheduleId: made.ScheduleId}))(t)
		// Ten minutes were missed; the last may be too recent to count as late.
		var got *kagziv1.WorkflowSchedule
		eventually(t, "the schedule has caught up", func() bool {
			got = s.look(t, made.ScheduleId)
			return got.NextFireAt.AsTime().After(s.Store.Now())
		})
		missed := int64(got.NextFireAt.AsTime().Sub(first)/time.Minute) - 1
		runs := s.fired(t, made.ScheduleId)
		if got.TotalRuns-1+got.SkippedTicks != missed || got.TotalRuns-1 < 3 || got.TotalRuns-1 > 4 ||
			int(got.TotalRuns) != len(runs) {
			t.Errorf("of %d missed ticks %d fired and %d were skipped, want the three most recent", missed,
				got.TotalRuns-1, got.SkippedTicks)
		}
		for i, run := range runs[1:] { // in the order of time, up to the last
			if want := got.NextFireAt.AsTime().Add(
				-time.Duration(len(runs)-1-i) * time.Minute); !run.ScheduledAt.AsTime().Equal(want) {
				t.Errorf("the run %d after the pause is for %s, want %s", i, run.ScheduledAt.AsTime(), want)
			}
		}
	})
}

func TestWithoutCatchupEveryMissedTickIsCounted(t *testing.T) {
	eachServer(t, jumpy, func(t *testing.T, s *Server) {
		s.toMinute()
		made := s.schedule(t, func(r *kagziv1.CreateWorkflowScheduleRequest) { r.MaxCatchup = proto.Int32(0) })
		now := s.Store.Now()
		// 60 ticks, the last half a minute ago
		s.Jump(now.Truncate(time.Minute).Add(time.Hour + 30*time.Second).Sub(now))
		var got *kagziv1.WorkflowSchedule
		eventually(t, "the missed ticks are counted", func() bool {
			got = s.look(t, made.ScheduleId)
			return got.SkippedTicks > 0
		})
		if got.SkippedTicks != 60 || got.TotalRuns != 0 || len(s.fired(t, made.ScheduleId)) != 0 {
			t.Errorf("after an hour without catching up it is %v, want 60 skipped", got)
		}
		s.toMinute()
		s.awaitFired(t, made.ScheduleId, 1)
	})
}

func TestDisabledAndDeletedSchedulesDoNotFire(t *testing.T) {
	eachServer(t, jumpy, func(t *testing.T, s *Server) {
		s.toMinute()
		ctx := within(t, time.Minute)
		quiet := s.schedule(t, func(r *kagziv1.CreateWorkflowScheduleRequest) { r.Enabled = proto.Bool(false) })
		loud, gone := s.schedule(t), s.schedule(t)
		fine(s.schedules().DeleteWorkflowSchedule(
			ctx, &kagziv1.DeleteWorkflowScheduleRequest{ScheduleId: gone.ScheduleId}))(t)
		fine(s.namespaces().CreateNamespace(ctx, &kagziv1.CreateNamespaceRequest{Namespace: "closed"}))(t)
		closed := s.schedule(t, func(r *kagziv1.CreateWorkflowScheduleRequest) { r.Namespace, r.Name = "closed", "n" })
		fine(s.namespaces().DisableNamespace(ctx, &kagziv1.DisableNamespaceRequest{Namespace: "closed"}))(t)
		s.toMinute()
		s.awaitFired(t, loud.ScheduleId, 1) // a tick of the others would have fired in the same turn
		if n := len(s.fired(t, quiet.ScheduleId)); n != 0 {
			t.Errorf("a schedule that was made disabled has fired %d times", n)
		}
		if n := len(s.find(t, &kagziv1.ListWorkflowsRequest{ScheduleId: ptr(gone.ScheduleId)})); n != 0 {
			t.Errorf("a deleted schedule has fired %d times", n)
		}
		if got := s.look(t, quiet.ScheduleId); got.Enabled ||
			!got.NextFireAt.AsTime().Equal(quiet.NextFireAt.AsTime()) {
			t.Errorf("the disabled schedule is %v", got)
		}
		inClosed := func() *kagziv1.WorkflowSchedule {
			return fine(s.schedules().GetWorkflowSchedule(
				ctx, &kagziv1.GetWorkflowScheduleRequest{Namespace: "closed", ScheduleId: closed.ScheduleId}))(
				t).Schedule
		}
		if got := inClosed(); got.TotalRuns != 0 {
			t.Errorf("in a disabled namespace it has fired: %v", got)
		}
		fine(s.namespaces().EnableNamespace(ctx, &kagziv1.EnableNamespaceRequest{Namespace: "closed"}))(t)
		eventually(t, "the enabled namespace's schedule has fired", func() bool { return inClosed().TotalRuns > 0 })
	})
}
