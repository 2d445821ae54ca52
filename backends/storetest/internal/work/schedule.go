package work

import (
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
}
