package work

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

func overlapping(o engine.Overlap) func(*engine.Schedule) {
	return func(p *engine.Schedule) { p.Overlap = o }
}

var ScheduleCases = []fixture.Case{
	{Name: "a schedule is kept as it was made", Run: func(s *fixture.F) {
		policy := engine.RetryPolicy{MaximumAttempts: 7}
		made := s.Plan(func(p *engine.Schedule) {
			p.Name, p.TimeZone, p.Version, p.RetryPolicy, p.Tags = "nightly", "Europe/Berlin", "v2", &policy,
				map[string]string{"a": "b"}
			p.OnFailureWorkflow, p.OnFailureQueue, p.Overlap, p.MaxCatchup = "mourn", "graves", engine.OverlapSkip, 3
			p.Jitter, p.Delay = time.Hour, 17*time.Millisecond
			p.RunRetryPolicy = &engine.RetryPolicy{MaximumAttempts: 9}
			p.Timeouts = engine.Timeouts{StartToClose: time.Second, Heartbeat: time.Minute, Execution: time.Hour}
		})
		got := s.Schedule(made.ID)
		for what, pair := range map[string][2]any{
			"name": {got.Name, "nightly"}, "zone": {got.TimeZone, "Europe/Berlin"}, "version": {got.Version, "v2"},
			"enabled":    {got.Enabled, true},
			"policy":     {got.RetryPolicy.MaximumAttempts, 7},
			"own policy": {got.RunRetryPolicy.MaximumAttempts, 9}, "tag": {got.Tags["a"], "b"},
			"handler": {got.OnFailureWorkflow + got.OnFailureQueue, "mourngraves"},
			"overlap": {got.Overlap, engine.OverlapSkip}, "max catchup": {got.MaxCatchup, 3},
			"timeouts": {got.Timeouts, made.Timeouts},
			"jitter":   {got.Jitter, time.Hour}, "delay": {got.Delay, 17 * time.Millisecond},
			"cron": {got.CronExpr, "* * * * *"}, "queue": {got.Queue, fixture.Queue},
			"type":     {got.Type, fixture.Kind},
			"revision": {got.Revision, int64(1)},
		} {
			if pair[0] != pair[1] {
				s.Fatalf("%s = %v, want %v", what, pair[0], pair[1])
			}
		}
		s.Payload("input", got.Input, fixture.Text("tick"))
		s.SameTime("created at", got.CreatedAt, s.Now)
		s.SameTime("next fire at", got.NextFireAt, made.NextFireAt)
		byName, err := s.Store.GetSchedule(s.Ctx, fixture.Space, "nightly")
		s.Must(err, "GetSchedule by name")
		fixture.Equal(s, "schedule of the name", byName.ID, made.ID)
		_, err = s.Store.GetSchedule(s.Ctx, "elsewhere", made.ID.String())
		s.Refused(err, engine.ErrNotFound, "GetSchedule in another namespace")
	}},
	{Name: "the reason of a pause is kept until it is resumed", Run: func(s *fixture.F) {
		plan := s.Plan(func(p *engine.Schedule) { p.PauseReason = "it is not paused" })
		change := func(on bool, reason string) engine.Schedule {
			now := s.Schedule(plan.ID)
			now.Enabled, now.PauseReason = on, reason
			_, err := s.Store.UpdateSchedule(s.Ctx, engine.ScheduleParams{Schedule: now, Read: now.NextFireAt,
				Method: "PauseWorkflowSchedule", Reason: reason, By: fixture.Somebody, AuditID: s.ID(), Now: s.Now})
			s.Must(err, "UpdateSchedule")
			return s.Schedule(plan.ID)
		}
		fixture.Equal(s, "reason of an enabled schedule", s.Schedule(plan.ID).PauseReason, "")
		fixture.Equal(s, "reason", change(false, "invoices are wrong").PauseReason, "invoices are wrong")
		fixture.Equal(s, "another reason", change(false, "still wrong").PauseReason, "still wrong")
		fixture.Equal(s, "reason after it was resumed", change(true, "right again").PauseReason, "")
	}},
	{Name: "jitter delays when a tick is due, not the tick", Run: func(s *fixture.F) {
		at := s.Now.Truncate(time.Minute).Add(time.Minute)
		after := func(delay time.Duration) func(*engine.Schedule) {
			return func(p *engine.Schedule) { p.NextFireAt, p.Delay, p.Jitter = at, delay, time.Hour }
		}
		late, soon := s.Plan(after(30*time.Second)), s.Plan(after(10*time.Second))
		due, next, err := s.Store.DueSchedules(s.Ctx, at.Add(9*time.Second), 10)
		s.Must(err, "DueSchedules")
		fixture.Equal(s, "due before the first delay is over", len(due), 0)
		s.SameTime("next", next, at.Add(10*time.Second))
		due, next, err = s.Store.DueSchedules(s.Ctx, at.Add(10*time.Second), 10)
		s.Must(err, "DueSchedules")
		fixture.Equal(s, "due when the first delay is over", len(due), 1)
		fixture.Equal(s, "due", due[0].ID, soon.ID)
		fixture.Equal(s, "jitter of what is due", due[0].Jitter, time.Hour)
		s.SameTime("next after it", next, at.Add(30*time.Second))
		due, _, err = s.Store.DueSchedules(s.Ctx, at.Add(30*time.Second), 10)
		s.Must(err, "DueSchedules")
		fixture.Equal(s, "due at last", len(due), 2)
		fixture.Equal(s, "the second", due[1].ID, late.ID)
		p := s.FireParams(soon.ID, 1)
		p.Delay = 42 * time.Second
		s.Now = at.Add(10 * time.Second)
		s.Fire(p)
		got := s.Schedule(soon.ID)
		s.SameTime("the next run", got.FiresAt(), at.Add(time.Minute+42*time.Second))
		s.SameTime("tick of the run", s.FiredRuns(soon.ID)[0].ScheduledAt, at)

		read := s.Schedule(late.ID) // a change that leaves the tick to the stored one, with another jitter
		s.Fire(s.FireParams(late.ID, 1))
		changed := read
		changed.Jitter, changed.Delay = time.Minute, 3*time.Second
		_, err = s.Store.UpdateSchedule(s.Ctx, engine.ScheduleParams{Schedule: changed, Read: read.NextFireAt,
			Method: "UpdateWorkflowSchedule", By: fixture.Somebody, AuditID: s.ID(), Now: s.Now})
		s.Must(err, "UpdateSchedule")
		got = s.Schedule(late.ID)
		s.SameTime("next tick after the change", got.NextFireAt, at.Add(time.Minute))
		fixture.Equal(s, "delay that belongs to another tick", got.Delay, 0)
	}},
	{Name: "a backfill starts each tick that has not fired once", Run: func(s *fixture.F) {
		plan := s.Plan(overlapping(engine.OverlapSkip))
		first := plan.NextFireAt
		s.Now = first.Add(time.Second)
		s.Fire(s.FireParams(plan.ID, 1))
		s.SwitchSchedule(plan.ID, false)
		params := func(from, n int) engine.BackfillScheduleParams {
			p := engine.BackfillScheduleParams{Namespace: fixture.Space, Ref: plan.ID.String(),
				From:   first.Add(time.Duration(from) * time.Minute),
				To:     first.Add(time.Duration(from+n-1) * time.Minute),
				Reason: "why", By: fixture.Somebody, AuditID: s.ID(), Now: s.Now}
			for i := range n {
				p.Ticks = append(p.Ticks, engine.Tick{At: p.From.Add(time.Duration(i) * time.Minute), RunID: s.ID()})
			}
			return p
		}
		p := params(-3, 6) // the fourth has fired
		started, err := s.Store.BackfillSchedule(s.Ctx, p)
		s.Must(err, "BackfillSchedule")
		fixture.Equal(s, "answers", len(started), 6)
		runs := s.FiredRuns(plan.ID)
		fixture.Equal(s, "runs", len(runs), 6)
		for i, one := range started {
			fixture.Equal(s, "existed", one.Existed, i == 3)
			if !one.Existed {
				fixture.Equal(s, "run", one.RunID, p.Ticks[i].RunID)
			}
			run := s.Run(one.RunID)
			fixture.Equal(s, "external id", run.ExternalID, engine.TickID(plan.ID, p.Ticks[i].At))
			s.SameTime("scheduled at", run.ScheduledAt, p.Ticks[i].At)
			s.SameTime("available at", run.AvailableAt, s.Now)
		}
		again, err := s.Store.BackfillSchedule(s.Ctx, params(-3, 6))
		s.Must(err, "BackfillSchedule repeated")
		for i, one := range again {
			fixture.Equal(s, "run of the repetition", one, engine.Started{RunID: started[i].RunID, Existed: true})
		}
		got := s.Schedule(plan.ID)
		fixture.Equal(s, "fired", got.Fired, 6)
		s.SameTime("last fired at", got.LastFiredAt, first.Add(2*time.Minute))
		s.SameTime("next fire at", got.NextFireAt, first.Add(time.Minute))
		events, _, err := s.Store.ListAuditEvents(s.Ctx,
			engine.AuditFilter{Namespace: fixture.Space, SubjectID: plan.ID.String()}, engine.Page{Limit: 10})
		s.Must(err, "ListAuditEvents")
		told := 0
		for _, e := range events {
			if e.Method == "BackfillWorkflowSchedule" && e.Reason == "why" &&
				strings.HasPrefix(e.Detail, "5 runs for ticks from ") {
				told++
			}
		}
		fixture.Equal(s, "audit events that tell of it", told, 1)

		s.SwitchSchedule(plan.ID, true) // ticks that are decided later are passed over
		fixture.Equal(s, "runs of ticks that were backfilled", s.Fire(s.FireParams(plan.ID, 2)).Runs, 0)
		s.Enable(false)
		_, err = s.Store.BackfillSchedule(s.Ctx, params(5, 1))
		s.Refused(err, engine.ErrPrecondition, "BackfillSchedule in a disabled namespace")
		missing := params(5, 1)
		missing.Ref = "none"
		_, err = s.Store.BackfillSchedule(s.Ctx, missing)
		s.Refused(err, engine.ErrNotFound, "BackfillSchedule of no schedule")
	}},
	{Name: "a schedule name is taken once, a request is repeated", Run: func(s *fixture.F) {
		called := func(name, request string) func(*engine.Schedule) {
			return func(p *engine.Schedule) { p.Name, p.RequestID = name, request }
		}
		first := s.Plan(called("nightly", "r1"))
		again, err := s.TryPlan(called("nightly", "r1"))
		s.Must(err, "CreateSchedule repeated")
		fixture.Equal(s, "schedule of the repetition", again.ID, first.ID)
		_, err = s.TryPlan(called("nightly", "r2"))
		s.Refused(err, engine.ErrExists, "CreateSchedule under a taken name")
		for what, change := range map[string]func(*engine.Schedule){
			"name":  func(p *engine.Schedule) { p.Name = "daily" },
			"type":  func(p *engine.Schedule) { p.Type = "other" },
			"queue": func(p *engine.Schedule) { p.Queue = "other" },
			"input": func(p *engine.Schedule) { p.Input = fixture.Text("other") },
			"cron":  func(p *engine.Schedule) { p.CronExpr = "0 * * * *" },
			"zone":  func(p *engine.Schedule) { p.TimeZone = "Europe/Berlin" },
		} {
			_, err := s.TryPlan(called("nightly", "r1"), change)
			s.Refused(err, engine.ErrConflict, "CreateSchedule repeated with another "+what)
		}
		s.Plan()
		s.Plan()
		list, _, err := s.Store.ListSchedules(s.Ctx, engine.ScheduleFilter{Namespace: fixture.Space},
			engine.Page{Limit: 10})
		s.Must(err, "ListSchedules")
		fixture.Equal(s, "schedules", len(list), 3)
		changed := first
		changed.Type = "other"
		_, err = s.Store.UpdateSchedule(s.Ctx, engine.ScheduleParams{
			Schedule: changed, Method: "UpdateWorkflowSchedule", By: fixture.Somebody, AuditID: s.ID(), Now: s.Now})
		s.Must(err, "UpdateSchedule")
		again, err = s.TryPlan(called("nightly", "r1"))
		s.Must(err, "CreateSchedule repeated after a change")
		fixture.Equal(s, "schedule of the repetition after a change", again.ID, first.ID)
	}},
	{Name: "a tick starts a run with its time, id and settings", Run: func(s *fixture.F) {
		plan := s.Plan(func(p *engine.Schedule) { p.Tags = map[string]string{"a": "b"} })
		tick := plan.NextFireAt
		s.Now = tick.Add(3 * time.Millisecond)
		fired := s.Fire(s.FireParams(plan.ID, 1))
		fixture.Equal(s, "runs", fired.Runs, 1)
		run := s.FiredRuns(plan.ID)[0]
		fixture.Equal(s, "external id", run.ExternalID, "schedule:"+plan.ID.String()+":"+tick.Format(time.RFC3339))
		s.SameTime("scheduled at", run.ScheduledAt, tick)
		s.SameTime("available at", run.AvailableAt, s.Now)
		fixture.Equal(s, "schedule", run.ScheduleID, plan.ID.String())
		fixture.Equal(s, "tag", run.Tags["a"], "b")
		s.Worker("w1")
		task := s.Claim("w1")
		s.Payload("input", task.Run.Input, fixture.Text("tick"))
		s.SameTime("scheduled at in the task", task.Run.ScheduledAt, tick)
		got := s.Schedule(plan.ID)
		s.SameTime("next fire at", got.NextFireAt, tick.Add(time.Minute))
		s.SameTime("last fired at", got.LastFiredAt, tick)
		fixture.Equal(s, "fired", got.Fired, 1)
		s.Finish(task.Lease, "done")
		fixture.Equal(s, "completed", s.Schedule(plan.ID).Completed, 1)
	}},
	{Name: "runs of a schedule are counted as they end", Run: func(s *fixture.F) {
		plan := s.Plan()
		s.Fire(s.FireParams(plan.ID, 4))
		s.Worker("w1")
		s.Finish(s.Claim("w1").Lease, "")
		s.FailRun(s.Claim("w1").Lease, "no")
		s.Cancel(s.Claim("w1").Run.ID)
		got := s.Schedule(plan.ID)
		fixture.Equal(s, "fired", got.Fired, 4)
		fixture.Equal(s, "completed", got.Completed, 1)
		fixture.Equal(s, "failed", got.Failed, 1)
	}},
	{Name: "repeating a decision about a tick fires once", Run: func(s *fixture.F) {
		plan := s.Plan()
		p := s.FireParams(plan.ID, 2)
		s.Fire(p)
		p.Ticks[0].RunID, p.Ticks[1].RunID = s.ID(), s.ID()
		fixture.Equal(s, "stale", s.Fire(p).Stale, true)
		fixture.Equal(s, "runs", len(s.FiredRuns(plan.ID)), 2)
	}},
	{Name: "only one of many servers fires a tick", Run: func(s *fixture.F) {
		plan := s.Plan()
		p := s.FireParams(plan.ID, 3)
		var mu sync.Mutex
		started, stale := 0, 0
		var group sync.WaitGroup
		for i := range 8 {
			mine := p
			mint := &fixture.Mint{N: uint64(i+1) << 32}
			mine.Ticks = nil
			for _, tick := range p.Ticks {
				mine.Ticks = append(mine.Ticks, engine.Tick{At: tick.At, RunID: mint.ID(s.Now)})
			}
			group.Go(func() {
				fired, err := s.Store.FireSchedule(s.Ctx, mine)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					started += fired.Runs
				}
				if fired.Stale {
					stale++
				}
			})
		}
		group.Wait()
		fixture.Equal(s, "runs started", started, 3)
		fixture.Equal(s, "servers that came too late", stale, 7)
		fixture.Equal(s, "runs", len(s.FiredRuns(plan.ID)), 3)
	}},
	{Name: "a fired tick never fires again, even if set back", Run: func(s *fixture.F) {
		plan := s.Plan()
		s.Fire(s.FireParams(plan.ID, 2))
		now := s.Schedule(plan.ID)
		now.NextFireAt = plan.NextFireAt
		_, err := s.Store.UpdateSchedule(s.Ctx, engine.ScheduleParams{
			Schedule: now, Method: "UpdateWorkflowSchedule", By: fixture.Somebody, AuditID: s.ID(), Now: s.Now})
		s.Must(err, "UpdateSchedule")
		fired := s.Fire(s.FireParams(plan.ID, 3))
		fixture.Equal(s, "runs", fired.Runs, 1)
		fixture.Equal(s, "runs in all", len(s.FiredRuns(plan.ID)), 3)
		for _, run := range s.FiredRuns(plan.ID) {
			s.Cancel(run.ID)
		}
		s.Pass(time.Minute)
		s.Prune(s.Now, 10)
		p := s.FireParams(plan.ID, 0)
		p.Next = p.Expect
		for i := range 3 {
			p.Ticks = append(p.Ticks, engine.Tick{
				At: plan.NextFireAt.Add(time.Duration(i) * time.Minute), RunID: s.ID()})
		}
		fixture.Equal(s, "runs after the first were deleted", s.Fire(p).Runs, 0)
	}},
	{
		Name: "leaving NextFireAt as read does not bring a tick back", Run: func(s *fixture.F) {
			plan := s.Plan(overlapping(engine.OverlapSkip))
			read := s.Schedule(plan.ID)
			s.Now = plan.NextFireAt
			s.Fire(s.FireParams(plan.ID, 1))
			read.MaxCatchup = 7
			_, err := s.Store.UpdateSchedule(s.Ctx, engine.ScheduleParams{
				Schedule: read, Method: "UpdateWorkflowSchedule", By: fixture.Somebody, AuditID: s.ID(), Now: s.Now})
			s.Must(err, "UpdateSchedule")
			got := s.Schedule(plan.ID)
			s.SameTime("next fire at", got.NextFireAt, plan.NextFireAt.Add(time.Minute))
			fixture.Equal(s, "max catchup", got.MaxCatchup, 7)
		}},
	{Name: "a retry of a tick's run keeps its tick", Run: func(s *fixture.F) {
		plan := s.Plan(overlapping(engine.OverlapSkip))
		s.Now = plan.NextFireAt
		s.Fire(s.FireParams(plan.ID, 1))
		failed := s.FiredRuns(plan.ID)[0]
		s.Register(s.NewWorker("w1"), true)
		s.FailRun(s.Claim("w1").Lease, "no")
		again := s.Run(s.Retry(failed.ID).RunID)
		fixture.Equal(s, "schedule", again.ScheduleID, plan.ID.String())
		s.SameTime("scheduled at", again.ScheduledAt, failed.ScheduledAt)
		fixture.Equal(s, "external id", again.ExternalID, failed.ExternalID)
		s.Pass(time.Minute)
		fixture.Equal(s, "skipped while the retry is open", s.Fire(s.FireParams(plan.ID, 1)).Skipped, 1)
		s.Finish(s.Claim("w1").Lease, "done")
		s.Pass(time.Minute)
		fixture.Equal(s, "runs after its end", s.Fire(s.FireParams(plan.ID, 1)).Runs, 1)
	}},
	{Name: "a change from before a tick does not bring it back", Run: func(s *fixture.F) {
		plan := s.Plan(overlapping(engine.OverlapSkip))
		read, early := s.Schedule(plan.ID), s.Now
		s.Now = plan.NextFireAt
		s.Fire(s.FireParams(plan.ID, 1))
		update := engine.ScheduleParams{
			Schedule: read, Read: read.NextFireAt, Method: "PauseWorkflowSchedule", By: fixture.Somebody,
			AuditID: s.ID(), Now: early,
		}
		update.Schedule.Enabled = false
		_, err := s.Store.UpdateSchedule(s.Ctx, update)
		s.Must(err, "UpdateSchedule")
		s.SameTime("next fire at", s.Schedule(plan.ID).NextFireAt, plan.NextFireAt.Add(time.Minute))
	}},
	{Name: "a change does not bring the last tick back", Run: func(s *fixture.F) {
		plan := s.Plan(overlapping(engine.OverlapSkip))
		read, early := s.Schedule(plan.ID), s.Now
		s.Now = plan.NextFireAt
		_, err := s.Store.TriggerSchedule(s.Ctx,
			engine.TriggerScheduleParams{Namespace: fixture.Space, Ref: plan.ID.String(), RunID: s.ID(),
				By: fixture.Somebody, AuditID: s.ID(), Now: s.Now})
		s.Must(err, "TriggerSchedule")
		last := s.FireParams(plan.ID, 1)
		last.Next = time.Time{}
		fixture.Equal(s, "skipped, for a run is open", s.Fire(last).Skipped, 1)
		for _, c := range []struct{ read, now time.Time }{
			{read.NextFireAt, early}, {read.NextFireAt, s.Now}, {time.Time{}, s.Now}} {
			read.Revision, read.MaxCatchup = s.Schedule(plan.ID).Revision, read.MaxCatchup+1
			_, err := s.Store.UpdateSchedule(s.Ctx, engine.ScheduleParams{
				Schedule: read, Read: c.read, Method: "UpdateWorkflowSchedule", By: fixture.Somebody, AuditID: s.ID(),
				Now: c.now,
			})
			s.Must(err, "UpdateSchedule")
			s.SameTime("next fire at", s.Schedule(plan.ID).NextFireAt, time.Time{})
		}
	}},
	{Name: "changing the expression decides about the next tick",
		Run: func(s *fixture.F) {
			for what, change := range map[string]func(*engine.Schedule){
				"expression": func(p *engine.Schedule) { p.CronExpr = "*/5 * * * *" },
				"zone":       func(p *engine.Schedule) { p.TimeZone = "Asia/Tokyo" },
			} {
				plan := s.Plan()
				changed := s.Schedule(plan.ID)
				s.Now = plan.NextFireAt
				s.Fire(s.FireParams(plan.ID, 1))
				change(&changed)
				_, err := s.Store.UpdateSchedule(s.Ctx, engine.ScheduleParams{
					Schedule: changed, Read: changed.NextFireAt, Method: "UpdateWorkflowSchedule", By: fixture.Somebody,
					AuditID: s.ID(), Now: s.Now,
				})
				s.Must(err, "UpdateSchedule of its "+what)
				s.SameTime("next fire at after a change of its "+what, s.Schedule(plan.ID).NextFireAt,
					changed.NextFireAt)
			}
		}},
	{Name: "ticks that a change gives up are counted once",
		Run: func(s *fixture.F) {
			plan := s.Plan()
			p := s.FireParams(plan.ID, 1)
			p.Skipped = 2
			s.Fire(p)
			update := engine.ScheduleParams{
				Schedule: s.Schedule(plan.ID), Read: plan.NextFireAt, Skipped: 5, Method: "UpdateWorkflowSchedule",
				By: fixture.Somebody, AuditID: s.ID(), Now: s.Now,
			}
			update.Schedule.CronExpr, update.Schedule.NextFireAt = "0 * * * *", s.Now.Truncate(time.Hour).Add(time.Hour)
			_, err := s.Store.UpdateSchedule(s.Ctx, update)
			s.Refused(err, engine.ErrConflict, "UpdateSchedule that gives up ticks of which one has fired")
			fixture.Equal(s, "skipped after the refusal", s.Schedule(plan.ID).Skipped, 2)
			update.Read = plan.NextFireAt.Add(time.Minute)
			for range 2 {
				got, err := s.Store.UpdateSchedule(s.Ctx, update)
				s.Must(err, "UpdateSchedule")
				fixture.Equal(s, "skipped", got.Skipped, 7)
				fixture.Equal(s, "skipped, as it is kept", s.Schedule(plan.ID).Skipped, 7)
			}
		}},
	{Name: "a change by a person makes older decisions stale", Run: func(s *fixture.F) {
		plan := s.Plan()
		p := s.FireParams(plan.ID, 1)
		now := s.Schedule(plan.ID)
		now.CronExpr = "0 * * * *"
		changed, err := s.Store.UpdateSchedule(s.Ctx,
			engine.ScheduleParams{Schedule: now, Method: "UpdateWorkflowSchedule", Reason: "why", By: fixture.Somebody,
				AuditID: s.ID(), Now: s.Now})
		s.Must(err, "UpdateSchedule")
		fixture.Equal(s, "revision", changed.Revision, 2)
		fixture.Equal(s, "stale", s.Fire(p).Stale, true)
		now.CronExpr = "1 * * * *"
		_, err = s.Store.UpdateSchedule(s.Ctx, engine.ScheduleParams{
			Schedule: now, Method: "UpdateWorkflowSchedule", By: fixture.Somebody, AuditID: s.ID(), Now: s.Now})
		s.Refused(err, engine.ErrConflict, "UpdateSchedule from an older revision")
		fixture.Equal(s, "cron", s.Schedule(plan.ID).CronExpr, "0 * * * *")
		list := s.Audit(plan.ID.String())
		fixture.Equal(s, "audit events", len(list), 2)
		fixture.Equal(s, "method", list[0].Method+" "+list[0].Reason, "UpdateWorkflowSchedule why")
	}},
	{Name: "a change by a person keeps the counts", Run: func(s *fixture.F) {
		plan := s.Plan()
		p := s.FireParams(plan.ID, 2)
		p.Skipped = 3
		s.Fire(p)
		s.Worker("w1")
		s.Finish(s.Claim("w1").Lease, "")
		s.FailRun(s.Claim("w1").Lease, "no")
		was := s.Schedule(plan.ID)
		s.Pass(time.Second)
		wanted := engine.Schedule{ID: plan.ID, Namespace: fixture.Space, CronExpr: "0 * * * *", Queue: fixture.Queue,
			Type: fixture.Kind, Enabled: true,
			Revision: was.Revision, NextFireAt: s.Now.Add(time.Hour)}
		got, err := s.Store.UpdateSchedule(s.Ctx,
			engine.ScheduleParams{Schedule: wanted, Method: "UpdateWorkflowSchedule", By: fixture.Somebody,
				AuditID: s.ID(), Now: s.Now})
		s.Must(err, "UpdateSchedule")
		for _, now := range []engine.Schedule{got, s.Schedule(plan.ID)} {
			fixture.Equal(s, "cron", now.CronExpr, "0 * * * *")
			s.SameTime("created at", now.CreatedAt, was.CreatedAt)
			s.SameTime("updated at", now.UpdatedAt, s.Now)
			s.SameTime("last fired at", now.LastFiredAt, p.Ticks[1].At)
			fixture.Equal(s, "counts", [4]int64{now.Fired, now.Completed, now.Failed, now.Skipped},
				[4]int64{2, 1, 1, 3})
		}
	}},
	{Name: "a disabled schedule does not fire", Run: func(s *fixture.F) {
		plan := s.Plan()
		p := s.FireParams(plan.ID, 1)
		now := s.Schedule(plan.ID)
		now.Enabled = false
		_, err := s.Store.UpdateSchedule(s.Ctx, engine.ScheduleParams{
			Schedule: now, Method: "PauseWorkflowSchedule", By: fixture.Somebody, AuditID: s.ID(), Now: s.Now})
		s.Must(err, "UpdateSchedule")
		p.Revision++
		fixture.Equal(s, "stale", s.Fire(p).Stale, true)
		s.Pass(time.Hour)
		due, next, err := s.Store.DueSchedules(s.Ctx, s.Now, 10)
		s.Must(err, "DueSchedules")
		fixture.Equal(s, "due", len(due), 0)
		s.SameTime("next", next, time.Time{})
	}},
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
