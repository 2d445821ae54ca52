package work

import (
	"fmt"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

// ScheduleTickCases are the rest of the cases of schedules.
var ScheduleTickCases = []fixture.Case{
	{Name: "due schedules come earliest first, with the next time", Run: func(s *fixture.F) {
		at := func(minutes int) func(*engine.Schedule) {
			return func(p *engine.Schedule) { p.NextFireAt = s.Now.Add(time.Duration(minutes) * time.Minute) }
		}
		late, early, ahead := s.Plan(at(2)), s.Plan(at(1)), s.Plan(at(5))
		broken := s.Plan(at(1), func(p *engine.Schedule) { p.Broken = "no such zone" })
		over := s.Plan(func(p *engine.Schedule) { p.NextFireAt = time.Time{} })
		s.Pass(3 * time.Minute)
		due, next, err := s.Store.DueSchedules(s.Ctx, s.Now, 10)
		s.Must(err, "DueSchedules")
		var got []engine.ID
		for _, plan := range due {
			got = append(got, plan.ID)
		}
		s.SameIDs("due", got, []engine.ID{early.ID, late.ID})
		s.SameTime("next", next, ahead.NextFireAt)
		fixture.Equal(s, "broken", s.Schedule(broken.ID).Broken, "no such zone")
		s.SameTime("next of the one that is over", s.Schedule(over.ID).NextFireAt, time.Time{})
		due, _, err = s.Store.DueSchedules(s.Ctx, s.Now, 1)
		s.Must(err, "DueSchedules")
		fixture.Equal(s, "due within the limit", len(due), 1)
	}},
	{Name: "SKIP counts ticks while a run is open", Run: func(s *fixture.F) {
		plan := s.Plan(overlapping(engine.OverlapSkip))
		fired := s.Fire(s.FireParams(plan.ID, 3))
		fixture.Equal(s, "runs", fired.Runs, 1)
		fixture.Equal(s, "skipped", fired.Skipped, int64(2))
		s.Worker("w1")
		l := s.Claim("w1").Lease
		s.Sleep(l, "nap", time.Hour)
		fixture.Equal(s, "runs while it sleeps", s.Fire(s.FireParams(plan.ID, 1)).Runs, 0)
		s.Cancel(l.RunID)
		fixture.Equal(s, "runs after its end", s.Fire(s.FireParams(plan.ID, 1)).Runs, 1)
		got := s.Schedule(plan.ID)
		fixture.Equal(s, "skipped", got.Skipped, int64(3))
		fixture.Equal(s, "fired", got.Fired, int64(2))
	}},
	{Name: "BUFFER_ONE keeps one tick until the open run ends", Run: func(s *fixture.F) {
		plan := s.Plan(overlapping(engine.OverlapBufferOne))
		first := plan.NextFireAt
		fired := s.Fire(s.FireParams(plan.ID, 4))
		fixture.Equal(s, "runs", fired.Runs, 1)
		fixture.Equal(s, "skipped", fired.Skipped, int64(2))
		s.SameTime("buffered", s.Schedule(plan.ID).Buffered, first.Add(time.Minute))
		s.Worker("w1")
		s.Pass(time.Hour)
		s.Finish(s.Claim("w1").Lease, "")
		runs := s.FiredRuns(plan.ID)
		fixture.Equal(s, "runs", len(runs), 2)
		s.SameTime("tick of the second", runs[1].ScheduledAt, first.Add(time.Minute))
		s.SameTime("due at", runs[1].AvailableAt, s.Now)
		s.SameTime("buffered", s.Schedule(plan.ID).Buffered, time.Time{})
		s.FailRun(s.Claim("w1").Lease, "no")
		fixture.Equal(s, "runs", len(s.FiredRuns(plan.ID)), 2)
		fixture.Equal(s, "fired", s.Schedule(plan.ID).Fired, int64(2))
	}},
	{Name: "a buffered tick of a paused schedule waits for its resume",
		Run: func(s *fixture.F) {
			plan := s.Plan(overlapping(engine.OverlapBufferOne))
			s.Fire(s.FireParams(plan.ID, 2))
			s.SwitchSchedule(plan.ID, false)
			s.Worker("w1")
			s.Pass(time.Hour)
			s.Finish(s.Claim("w1").Lease, "")
			fixture.Equal(s, "runs while it is paused", len(s.FiredRuns(plan.ID)), 1)
			fixture.Equal(s, "completed", s.Schedule(plan.ID).Completed, int64(1))
			tick := s.Schedule(plan.ID).Buffered
			s.SameTime("buffered", tick, plan.NextFireAt.Add(time.Minute))
			s.SwitchSchedule(plan.ID, true)
			runs := s.FiredRuns(plan.ID)
			fixture.Equal(s, "runs when it is resumed", len(runs), 2)
			s.SameTime("tick of the second", runs[1].ScheduledAt, tick)
			s.SameTime("buffered", s.Schedule(plan.ID).Buffered, time.Time{})
			fixture.Equal(s, "fired", s.Schedule(plan.ID).Fired, int64(2))
		}},
	{Name: "resuming with an open run keeps the buffered tick", Run: func(s *fixture.F) {
		plan := s.Plan(overlapping(engine.OverlapBufferOne))
		s.Fire(s.FireParams(plan.ID, 2))
		s.SwitchSchedule(plan.ID, false)
		s.SwitchSchedule(plan.ID, true)
		fixture.Equal(s, "runs", len(s.FiredRuns(plan.ID)), 1)
		s.Worker("w1")
		s.Finish(s.Claim("w1").Lease, "")
		fixture.Equal(s, "runs after its end", len(s.FiredRuns(plan.ID)), 2)
	}},
	{Name: "a buffered tick waits while its namespace is disabled",
		Run: func(s *fixture.F) {
			plan := s.Plan(overlapping(engine.OverlapBufferOne))
			s.Fire(s.FireParams(plan.ID, 2))
			s.Worker("w1")
			l := s.Claim("w1").Lease
			s.Enable(false)
			s.Finish(l, "")
			fixture.Equal(s, "runs while it is disabled", len(s.FiredRuns(plan.ID)), 1)
			s.Pass(time.Minute)
			s.Enable(true)
			runs := s.FiredRuns(plan.ID)
			fixture.Equal(s, "runs when it is enabled", len(runs), 2)
			s.SameTime("tick of the second", runs[1].ScheduledAt, plan.NextFireAt.Add(time.Minute))
			fired := s.Fire(s.FireParams(plan.ID, 2))
			fixture.Equal(s, "runs", fired.Runs, 0)
			fixture.Equal(s, "skipped", fired.Skipped, int64(1))
			s.SameTime("buffered", s.Schedule(plan.ID).Buffered, plan.NextFireAt.Add(2*time.Minute))
		}},
	{Name: "enabling a namespace starts buffered ticks at once",
		Run: func(s *fixture.F) {
			monthly := func(p *engine.Schedule) { p.CronExpr = "0 0 1 * *" }
			plan := s.Plan(overlapping(engine.OverlapBufferOne), monthly)
			p := s.FireParams(plan.ID, 2)
			p.Next = plan.NextFireAt.Add(30 * 24 * time.Hour)
			s.Fire(p)
			s.Worker("w1")
			l := s.Claim("w1").Lease
			s.Enable(false)
			s.Finish(l, "")
			s.Pass(time.Second)
			s.Enable(true)
			runs := s.FiredRuns(plan.ID)
			fixture.Equal(s, "runs in all", len(runs), 2)
			s.SameTime("tick of the second", runs[1].ScheduledAt, plan.NextFireAt.Add(time.Minute))
			s.SameTime("due since", runs[1].AvailableAt, s.Now)
			s.SameTime("buffered", s.Schedule(plan.ID).Buffered, time.Time{})
			s.SameTime("next", s.Schedule(plan.ID).NextFireAt, p.Next)
			fixture.Equal(s, "fired", s.Schedule(plan.ID).Fired, int64(2))
		}},
	{
		Name: "enabling a namespace starts ticks after a schedule change", Run: func(s *fixture.F) {
			update := func(plan engine.Schedule, change func(*engine.Schedule)) engine.ScheduleParams {
				p := engine.ScheduleParams{Schedule: plan, Read: plan.NextFireAt, Method: "UpdateWorkflowSchedule",
					By: fixture.Somebody, AuditID: s.ID(), Now: s.Now}
				change(&p.Schedule)
				return p
			}
			resumed := func(plan *engine.Schedule) { plan.Enabled = true }
			for what, story := range map[string]func(l engine.Lease, plan engine.ID) engine.ScheduleParams{
				"resumed while it is disabled": func(l engine.Lease, plan engine.ID) engine.ScheduleParams {
					s.SwitchSchedule(plan, false)
					s.Finish(l, "")
					s.Enable(false)
					return update(s.Schedule(plan), resumed)
				},
				"changed by one who has read it before the end of its run": func(l engine.Lease,
					plan engine.ID) engine.ScheduleParams {
					s.Enable(false)
					read := s.Schedule(plan)
					s.Finish(l, "")
					return update(read, func(plan *engine.Schedule) { plan.MaxCatchup = 7 })
				},
			} {
				plan := s.Plan(overlapping(engine.OverlapBufferOne), func(p *engine.Schedule) {
					p.CronExpr = "0 0 1 * *"
				})
				p := s.FireParams(plan.ID, 2)
				p.Next = plan.NextFireAt.Add(30 * 24 * time.Hour)
				s.Fire(p)
				s.Worker("w1")
				change := story(s.Claim("w1").Lease, plan.ID)
				for range 2 {
					_, err := s.Store.UpdateSchedule(s.Ctx, change)
					s.Must(err, "UpdateSchedule of one that was "+what)
				}
				s.Enable(true)
				fixture.Equal(s, "runs of the schedule that was "+what, len(s.FiredRuns(plan.ID)), 2)
				s.SameTime("next of the schedule that was "+what, s.Schedule(plan.ID).NextFireAt, p.Next)
				s.Finish(s.Claim("w1").Lease, "")
			}
		}},
	{
		Name: "a buffered tick keeps the next time that a person chose", Run: func(s *fixture.F) {
			plan := s.Plan(overlapping(engine.OverlapBufferOne))
			s.Fire(s.FireParams(plan.ID, 2))
			s.Worker("w1")
			l := s.Claim("w1").Lease
			chosen := s.Now.Truncate(time.Hour).Add(24 * time.Hour)
			changed := s.Schedule(plan.ID)
			changed.NextFireAt = chosen
			_, err := s.Store.UpdateSchedule(s.Ctx, engine.ScheduleParams{
				Schedule: changed, Method: "UpdateWorkflowSchedule", By: fixture.Somebody, AuditID: s.ID(), Now: s.Now})
			s.Must(err, "UpdateSchedule")
			s.Enable(false)
			s.Finish(l, "")
			s.SameTime("next while it is disabled", s.Schedule(plan.ID).NextFireAt, chosen)
			s.Enable(true)
			fixture.Equal(s, "runs when it is enabled", len(s.FiredRuns(plan.ID)), 2)
			s.SameTime("next when it is enabled", s.Schedule(plan.ID).NextFireAt, chosen)
		}},
	{Name: "enabling a namespace starts no tick of a paused schedule",
		Run: func(s *fixture.F) {
			plan := s.Plan(overlapping(engine.OverlapBufferOne))
			s.Fire(s.FireParams(plan.ID, 2))
			s.Worker("w1")
			l := s.Claim("w1").Lease
			s.SwitchSchedule(plan.ID, false)
			s.Enable(false)
			s.Finish(l, "")
			s.Enable(true)
			fixture.Equal(s, "runs while it is paused", len(s.FiredRuns(plan.ID)), 1)
			s.SwitchSchedule(plan.ID, true)
			fixture.Equal(s, "runs when it is resumed", len(s.FiredRuns(plan.ID)), 2)
		}},
	{Name: "a tick dropped with its overlap policy is counted", Run: func(s *fixture.F) {
		plan := s.Plan(overlapping(engine.OverlapBufferOne))
		s.Fire(s.FireParams(plan.ID, 2))
		now := s.Schedule(plan.ID)
		now.Overlap = engine.OverlapSkip
		p := engine.ScheduleParams{Schedule: now, Method: "UpdateWorkflowSchedule", By: fixture.Somebody,
			AuditID: s.ID(), Now: s.Now}
		for range 2 {
			_, err := s.Store.UpdateSchedule(s.Ctx, p)
			s.Must(err, "UpdateSchedule")
			s.SameTime("buffered", s.Schedule(plan.ID).Buffered, time.Time{})
			fixture.Equal(s, "skipped", s.Schedule(plan.ID).Skipped, int64(1))
		}
	}},
	{Name: "a continued run counts as one open run of its schedule", Run: func(s *fixture.F) {
		plan := s.Plan(overlapping(engine.OverlapSkip))
		s.Fire(s.FireParams(plan.ID, 1))
		s.Worker("w1")
		next := engine.StartRun{Run: engine.Run{ID: s.ID()}}
		s.Must(s.TryEnd(engine.CompleteRunParams{Lease: s.Claim("w1").Lease, ContinueAs: &next, Now: s.Now}),
			"CompleteRun")
		fixture.Equal(s, "runs", s.Fire(s.FireParams(plan.ID, 1)).Runs, 0)
	}},
	{Name: "missed ticks that are not caught up are counted", Run: func(s *fixture.F) {
		plan := s.Plan()
		p := s.FireParams(plan.ID, 2)
		p.Skipped = 40
		fixture.Equal(s, "skipped", s.Fire(p).Skipped, int64(40))
		fixture.Equal(s, "skipped", s.Schedule(plan.ID).Skipped, int64(40))
	}},
	{Name: "a broken schedule is not due until it is updated", Run: func(s *fixture.F) {
		plan := s.Plan()
		p := s.FireParams(plan.ID, 0)
		p.Broken, p.Next = "no such zone", plan.NextFireAt
		s.Fire(p)
		s.Pass(time.Hour)
		due, _, err := s.Store.DueSchedules(s.Ctx, s.Now, 10)
		s.Must(err, "DueSchedules")
		fixture.Equal(s, "due", len(due), 0)
		now := s.Schedule(plan.ID)
		now.Broken = ""
		_, err = s.Store.UpdateSchedule(s.Ctx, engine.ScheduleParams{
			Schedule: now, Method: "UpdateWorkflowSchedule", By: fixture.Somebody, AuditID: s.ID(), Now: s.Now})
		s.Must(err, "UpdateSchedule")
		due, _, err = s.Store.DueSchedules(s.Ctx, s.Now, 10)
		s.Must(err, "DueSchedules")
		fixture.Equal(s, "due after the update", len(due), 1)
	}},
	{Name: "a user's external id does not block a tick", Run: func(s *fixture.F) {
		plan := s.Plan()
		squatter := s.Start(fixture.WithExternal(engine.TickID(plan.ID, plan.NextFireAt)), fixture.OfType("other"))
		fixture.Equal(s, "runs", s.Fire(s.FireParams(plan.ID, 1)).Runs, 1)
		s.Status(squatter, engine.RunPending)
		fixture.Equal(s, "runs of the schedule", len(s.FiredRuns(plan.ID)), 1)
	}},
	{Name: "a tick's external id is free for users", Run: func(s *fixture.F) {
		plan := s.Plan()
		fixture.Equal(s, "runs", s.Fire(s.FireParams(plan.ID, 1)).Runs, 1)
		id := fixture.WithExternal(engine.TickID(plan.ID, plan.NextFireAt))
		first, second := s.NewRun(id), s.NewRun(id)
		answers := s.StartAll(first, second)
		fixture.Equal(s, "the first", answers[0], engine.Started{RunID: first.ID})
		fixture.Equal(s, "the second", answers[1], engine.Started{RunID: first.ID, Existed: true})
	}},
	{Name: "a trigger fires outside the ticks and is counted",
		Run: func(s *fixture.F) {
			plan := s.Plan(overlapping(engine.OverlapSkip), func(p *engine.Schedule) {
				p.Name, p.Enabled = "nightly", false
			})
			p := engine.TriggerScheduleParams{Namespace: fixture.Space, Ref: "nightly", RunID: s.ID(), RequestID: "r",
				By: fixture.Somebody, AuditID: s.ID(), Now: s.Now}
			first, err := s.Store.TriggerSchedule(s.Ctx, p)
			s.Must(err, "TriggerSchedule")
			p.RunID = s.ID()
			again, err := s.Store.TriggerSchedule(s.Ctx, p)
			s.Must(err, "TriggerSchedule repeated")
			fixture.Equal(s, "run of the repetition", again.RunID, first.RunID)
			p.RunID, p.RequestID, p.Ref, p.AuditID = s.ID(), "", plan.ID.String(), s.ID()
			_, err = s.Store.TriggerSchedule(s.Ctx, p)
			s.Must(err, "TriggerSchedule")
			runs := s.FiredRuns(plan.ID)
			fixture.Equal(s, "runs", len(runs), 2)
			fixture.Equal(s, "external id", runs[0].ExternalID, engine.TriggerID(plan.ID, runs[0].ID))
			s.SameTime("scheduled at", runs[0].ScheduledAt, time.Time{})
			fixture.Equal(s, "fired", s.Schedule(plan.ID).Fired, int64(2))
			p.Ref = "nobody"
			_, err = s.Store.TriggerSchedule(s.Ctx, p)
			s.Refused(err, engine.ErrNotFound, "TriggerSchedule of none")
		}},
	{Name: "deleting a schedule keeps its runs", Run: func(s *fixture.F) {
		plan := s.Plan()
		s.Fire(s.FireParams(plan.ID, 1))
		run := s.FiredRuns(plan.ID)[0]
		p := engine.DeleteScheduleParams{Namespace: fixture.Space, Ref: plan.ID.String(), By: fixture.Somebody,
			AuditID: s.ID(), Now: s.Now}
		s.Must(s.Store.DeleteSchedule(s.Ctx, p), "DeleteSchedule")
		s.Refused(s.Store.DeleteSchedule(s.Ctx, p), engine.ErrNotFound, "DeleteSchedule again")
		_, err := s.Store.GetSchedule(s.Ctx, fixture.Space, plan.ID.String())
		s.Refused(err, engine.ErrNotFound, "GetSchedule")
		s.Worker("w1")
		task := s.Claim("w1")
		fixture.Equal(s, "claimed", task.Run.ID, run.ID)
		s.Finish(task.Lease, "done")
	}},
	{Name: "schedules are listed newest first in both directions", Run: func(s *fixture.F) {
		var made []engine.ID
		for i := range 5 {
			made = append(made, s.Plan(func(p *engine.Schedule) { p.Queue = fmt.Sprint("q", i%2) }).ID)
		}
		list := func(f engine.ScheduleFilter, p engine.Page) ([]engine.ID, engine.PageInfo) {
			s.Helper()
			schedules, info, err := s.Store.ListSchedules(s.Ctx, f, p)
			s.Must(err, "ListSchedules")
			var got []engine.ID
			for _, plan := range schedules {
				got = append(got, plan.ID)
			}
			return got, info
		}
		all := engine.ScheduleFilter{Namespace: fixture.Space}
		first, info := list(all, engine.Page{Limit: 2, Count: true})
		s.SameIDs("first page", first, []engine.ID{made[4], made[3]})
		fixture.Equal(s, "total", info.Total, int64(5))
		second, info := list(all, engine.Page{Limit: 2, After: &engine.Cursor{ID: made[3]}})
		s.SameIDs("second page", second, []engine.ID{made[2], made[1]})
		fixture.Equal(s, "has next", info.HasNext, true)
		back, info := list(all, engine.Page{Limit: 2, Before: &engine.Cursor{ID: made[2]}})
		s.SameIDs("back", back, first)
		fixture.Equal(s, "has previous", info.HasPrev, false)
		odd, _ := list(engine.ScheduleFilter{Namespace: fixture.Space, Queue: "q1"}, engine.Page{Limit: 10})
		s.SameIDs("of a queue", odd, []engine.ID{made[3], made[1]})
		none, _ := list(engine.ScheduleFilter{Namespace: "elsewhere"}, engine.Page{Limit: 10})
		fixture.Equal(s, "elsewhere", len(none), 0)
	}},
	{Name: "every setting of a schedule counts as a change",
		Run: func(s *fixture.F) {
			plan := s.Plan()
			policy := engine.RetryPolicy{MaximumAttempts: 7}
			for i, change := range []func(*engine.Schedule){
				func(p *engine.Schedule) { p.Input = fixture.Text("another") },
				func(p *engine.Schedule) { p.Tags = map[string]string{"a": "b"} },
				func(p *engine.Schedule) { p.Tags = map[string]string{"a": "c"} },
				func(p *engine.Schedule) { p.NextFireAt = p.NextFireAt.Add(time.Minute) },
				func(p *engine.Schedule) { p.Name = "nightly" },
				func(p *engine.Schedule) { p.TimeZone = "Europe/Berlin" },
				func(p *engine.Schedule) { p.CronExpr = "*/2 * * * *" },
				func(p *engine.Schedule) { p.Queue = "another" },
				func(p *engine.Schedule) { p.Type = "another" },
				func(p *engine.Schedule) { p.Version = "v2" },
				func(p *engine.Schedule) { p.RetryPolicy = &policy },
				func(p *engine.Schedule) { p.RunRetryPolicy = &policy },
				func(p *engine.Schedule) { p.Timeouts = engine.Timeouts{Execution: time.Hour} },
				func(p *engine.Schedule) { p.OnFailureWorkflow, p.OnFailureQueue = "sorry", "graves" },
				func(p *engine.Schedule) { p.MaxCatchup = 7 },
				func(p *engine.Schedule) { p.Overlap = engine.OverlapSkip },
				func(p *engine.Schedule) { p.Enabled = false },
			} {
				s.Pass(time.Second)
				want := s.Schedule(plan.ID)
				change(&want)
				want.Revision, want.UpdatedAt = int64(i+2), s.Now
				for range 2 {
					s.Replan(plan.ID, change)
					change = func(*engine.Schedule) {}
					got := s.Schedule(plan.ID)
					s.SameText("retry policy", fixture.PolicyText(got.RetryPolicy),
						fixture.PolicyText(want.RetryPolicy))
					s.SameText("retry policy of the run itself", fixture.PolicyText(got.RunRetryPolicy),
						fixture.PolicyText(want.RunRetryPolicy))
					// equal as texts: the next comparison is by address
					got.RetryPolicy, got.RunRetryPolicy = want.RetryPolicy, want.RunRetryPolicy
					s.SameText("schedule", fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want))
				}
			}
			fixture.Equal(s, "audit events", len(s.Audit(plan.ID.String())), 18)
		}},
	{Name: "a request used for something else triggers nothing", Run: func(s *fixture.F) {
		one, other := s.Plan(), s.Plan()
		trigger := func(id engine.ID, request string) error {
			_, err := s.Store.TriggerSchedule(s.Ctx, engine.TriggerScheduleParams{
				Namespace: fixture.Space, Ref: id.String(), RunID: s.ID(), RequestID: request, By: fixture.Somebody,
				AuditID: s.ID(), Now: s.Now,
			})
			return err
		}
		s.Must(trigger(one.ID, "r"), "TriggerSchedule")
		s.Refused(trigger(other.ID, "r"), engine.ErrConflict, "TriggerSchedule of another schedule with its request")
		s.Start(fixture.WithRequest("start"))
		s.Refused(trigger(one.ID, "start"), engine.ErrConflict, "TriggerSchedule with the request of a start")
		fixture.Equal(s, "fired", s.Schedule(one.ID).Fired, int64(1))
		fixture.Equal(s, "fired of the other", s.Schedule(other.ID).Fired, int64(0))
		s.Unplan(one.ID)
		s.Refused(trigger(one.ID, "start"), engine.ErrConflict,
			"TriggerSchedule, once the schedule is gone, with the request of a start")
		s.Must(trigger(one.ID, "r"), "TriggerSchedule, once the schedule is gone, repeated")
	}},
}
