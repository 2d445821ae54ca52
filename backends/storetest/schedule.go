package storetest

import (
	"fmt"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// plan makes a schedule whose first tick is a minute ahead.
func (s *stage) plan(changes ...func(*engine.Schedule)) engine.Schedule {
	s.Helper()
	made, err := s.tryPlan(changes...)
	s.must(err, "CreateSchedule")
	return made
}

func (s *stage) tryPlan(changes ...func(*engine.Schedule)) (engine.Schedule, error) {
	p := engine.Schedule{
		ID: s.id(), Namespace: space, CronExpr: "* * * * *", Enabled: true, Queue: queue, Type: kind, Input: text("tick"), MaxCatchup: 100,
		CreatedAt: s.now, UpdatedAt: s.now, NextFireAt: s.now.Truncate(time.Minute).Add(time.Minute),
	}
	for _, change := range changes {
		change(&p)
	}
	return s.store.CreateSchedule(s.ctx, engine.ScheduleParams{Schedule: p, Method: "CreateWorkflowSchedule", By: somebody, AuditID: s.id(), Now: s.now})
}

func overlapping(o engine.Overlap) func(*engine.Schedule) {
	return func(p *engine.Schedule) { p.Overlap = o }
}

func (s *stage) schedule(id engine.ID) engine.Schedule {
	s.Helper()
	got, err := s.store.GetSchedule(s.ctx, space, id.String())
	s.must(err, "GetSchedule")
	return got
}

// fireParams fires the next tick of a schedule as it stands, n of them a minute apart.
func (s *stage) fireParams(id engine.ID, n int) engine.FireScheduleParams {
	s.Helper()
	now := s.schedule(id)
	p := engine.FireScheduleParams{ScheduleID: id, Revision: now.Revision, Expect: now.NextFireAt, Next: now.NextFireAt.Add(time.Duration(n) * time.Minute), Now: s.now}
	for i := range n {
		p.Ticks = append(p.Ticks, engine.Tick{At: now.NextFireAt.Add(time.Duration(i) * time.Minute), RunID: s.id()})
	}
	return p
}

func (s *stage) fire(p engine.FireScheduleParams) engine.Fired {
	s.Helper()
	fired, err := s.store.FireSchedule(s.ctx, p)
	s.must(err, "FireSchedule")
	return fired
}

// switchSchedule pauses or resumes a schedule.
func (s *stage) switchSchedule(id engine.ID, on bool) {
	s.Helper()
	now := s.schedule(id)
	now.Enabled = on
	method := "ResumeWorkflowSchedule"
	if !on {
		method = "PauseWorkflowSchedule"
	}
	_, err := s.store.UpdateSchedule(s.ctx, engine.ScheduleParams{Schedule: now, Method: method, By: somebody, AuditID: s.id(), Now: s.now})
	s.must(err, method)
}

// firedRuns is the runs of a schedule, oldest first.
func (s *stage) firedRuns(id engine.ID) []engine.Run {
	s.Helper()
	var all []engine.Run
	list, _, err := s.store.ListRuns(s.ctx, engine.RunFilter{Namespace: space, ScheduleID: id.String()}, engine.Page{Limit: engine.MaxPage})
	s.must(err, "ListRuns")
	for i := range list {
		all = append(all, list[len(list)-1-i])
	}
	return all
}

var scheduleCases = []testCase{
	{"a schedule is kept as it was made", func(s *stage) {
		policy := engine.RetryPolicy{MaximumAttempts: 7}
		made := s.plan(func(p *engine.Schedule) {
			p.Name, p.TimeZone, p.Version, p.RetryPolicy, p.Tags = "nightly", "Europe/Berlin", "v2", &policy, map[string]string{"a": "b"}
			p.OnFailureWorkflow, p.OnFailureQueue, p.Overlap, p.MaxCatchup = "mourn", "graves", engine.OverlapSkip, 3
			p.Timeouts = engine.Timeouts{StartToClose: time.Second, Heartbeat: time.Minute, Execution: time.Hour}
		})
		got := s.schedule(made.ID)
		for what, pair := range map[string][2]any{
			"name": {got.Name, "nightly"}, "zone": {got.TimeZone, "Europe/Berlin"}, "version": {got.Version, "v2"}, "enabled": {got.Enabled, true},
			"policy": {got.RetryPolicy.MaximumAttempts, 7}, "tag": {got.Tags["a"], "b"}, "handler": {got.OnFailureWorkflow + got.OnFailureQueue, "mourngraves"},
			"overlap": {got.Overlap, engine.OverlapSkip}, "max catchup": {got.MaxCatchup, 3}, "timeouts": {got.Timeouts, made.Timeouts},
			"cron": {got.CronExpr, "* * * * *"}, "queue": {got.Queue, queue}, "type": {got.Type, kind}, "revision": {got.Revision, int64(1)},
		} {
			if pair[0] != pair[1] {
				s.Fatalf("%s = %v, want %v", what, pair[0], pair[1])
			}
		}
		s.payload("input", got.Input, text("tick"))
		s.sameTime("created at", got.CreatedAt, s.now)
		s.sameTime("next fire at", got.NextFireAt, made.NextFireAt)
		byName, err := s.store.GetSchedule(s.ctx, space, "nightly")
		s.must(err, "GetSchedule by name")
		equal(s, "schedule of the name", byName.ID, made.ID)
		_, err = s.store.GetSchedule(s.ctx, "elsewhere", made.ID.String())
		s.refused(err, engine.ErrNotFound, "GetSchedule in another namespace")
	}},
	{"a name is taken once, and a request is answered alike", func(s *stage) {
		called := func(name, request string) func(*engine.Schedule) {
			return func(p *engine.Schedule) { p.Name, p.RequestID = name, request }
		}
		first := s.plan(called("nightly", "r1"))
		again, err := s.tryPlan(called("nightly", "r1"))
		s.must(err, "CreateSchedule repeated")
		equal(s, "schedule of the repetition", again.ID, first.ID)
		_, err = s.tryPlan(called("nightly", "r2"))
		s.refused(err, engine.ErrExists, "CreateSchedule under a taken name")
		for what, change := range map[string]func(*engine.Schedule){
			"name":  func(p *engine.Schedule) { p.Name = "daily" },
			"type":  func(p *engine.Schedule) { p.Type = "other" },
			"queue": func(p *engine.Schedule) { p.Queue = "other" },
			"input": func(p *engine.Schedule) { p.Input = text("other") },
			"cron":  func(p *engine.Schedule) { p.CronExpr = "0 * * * *" },
			"zone":  func(p *engine.Schedule) { p.TimeZone = "Europe/Berlin" },
		} {
			_, err := s.tryPlan(called("nightly", "r1"), change)
			s.refused(err, engine.ErrConflict, "CreateSchedule repeated with another "+what)
		}
		s.plan()
		s.plan()
		list, _, err := s.store.ListSchedules(s.ctx, engine.ScheduleFilter{Namespace: space}, engine.Page{Limit: 10})
		s.must(err, "ListSchedules")
		equal(s, "schedules", len(list), 3)
		changed := first
		changed.Type = "other"
		_, err = s.store.UpdateSchedule(s.ctx, engine.ScheduleParams{Schedule: changed, Method: "UpdateWorkflowSchedule", By: somebody, AuditID: s.id(), Now: s.now})
		s.must(err, "UpdateSchedule")
		again, err = s.tryPlan(called("nightly", "r1"))
		s.must(err, "CreateSchedule repeated after a change")
		equal(s, "schedule of the repetition after a change", again.ID, first.ID)
	}},
	{"a tick fires a run with its time, its id and all that was chosen for it", func(s *stage) {
		plan := s.plan(func(p *engine.Schedule) { p.Tags = map[string]string{"a": "b"} })
		tick := plan.NextFireAt
		s.now = tick.Add(3 * time.Millisecond)
		fired := s.fire(s.fireParams(plan.ID, 1))
		equal(s, "runs", fired.Runs, 1)
		run := s.firedRuns(plan.ID)[0]
		equal(s, "external id", run.ExternalID, "schedule:"+plan.ID.String()+":"+tick.Format(time.RFC3339))
		s.sameTime("scheduled at", run.ScheduledAt, tick)
		s.sameTime("available at", run.AvailableAt, s.now)
		equal(s, "schedule", run.ScheduleID, plan.ID.String())
		equal(s, "tag", run.Tags["a"], "b")
		s.worker("w1")
		task := s.claim("w1")
		s.payload("input", task.Run.Input, text("tick"))
		s.sameTime("scheduled at in the task", task.Run.ScheduledAt, tick)
		got := s.schedule(plan.ID)
		s.sameTime("next fire at", got.NextFireAt, tick.Add(time.Minute))
		s.sameTime("last fired at", got.LastFiredAt, tick)
		equal(s, "fired", got.Fired, 1)
		s.finish(task.Lease, "done")
		equal(s, "completed", s.schedule(plan.ID).Completed, 1)
	}},
	{"runs of a schedule are counted as they end", func(s *stage) {
		plan := s.plan()
		s.fire(s.fireParams(plan.ID, 4))
		s.worker("w1")
		s.finish(s.claim("w1").Lease, "")
		s.failRun(s.claim("w1").Lease, "no")
		s.cancel(s.claim("w1").Run.ID)
		got := s.schedule(plan.ID)
		equal(s, "fired", got.Fired, 4)
		equal(s, "completed", got.Completed, 1)
		equal(s, "failed", got.Failed, 1)
	}},
	{"the same decision made twice fires once", func(s *stage) {
		plan := s.plan()
		p := s.fireParams(plan.ID, 2)
		s.fire(p)
		p.Ticks[0].RunID, p.Ticks[1].RunID = s.id(), s.id()
		equal(s, "stale", s.fire(p).Stale, true)
		equal(s, "runs", len(s.firedRuns(plan.ID)), 2)
	}},
	{"of many servers one fires a tick", func(s *stage) {
		plan := s.plan()
		p := s.fireParams(plan.ID, 3)
		var mu sync.Mutex
		started, stale := 0, 0
		var group sync.WaitGroup
		for i := range 8 {
			mine := p
			mint := &mint{n: uint64(i+1) << 32}
			mine.Ticks = nil
			for _, tick := range p.Ticks {
				mine.Ticks = append(mine.Ticks, engine.Tick{At: tick.At, RunID: mint.id(s.now)})
			}
			group.Go(func() {
				fired, err := s.store.FireSchedule(s.ctx, mine)
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
		equal(s, "runs started", started, 3)
		equal(s, "servers that came too late", stale, 7)
		equal(s, "runs", len(s.firedRuns(plan.ID)), 3)
	}},
	{"a tick that has fired never fires again, not even when the schedule is set back", func(s *stage) {
		plan := s.plan()
		s.fire(s.fireParams(plan.ID, 2))
		now := s.schedule(plan.ID)
		now.NextFireAt = plan.NextFireAt
		_, err := s.store.UpdateSchedule(s.ctx, engine.ScheduleParams{Schedule: now, Method: "UpdateWorkflowSchedule", By: somebody, AuditID: s.id(), Now: s.now})
		s.must(err, "UpdateSchedule")
		fired := s.fire(s.fireParams(plan.ID, 3))
		equal(s, "runs", fired.Runs, 1)
		equal(s, "runs in all", len(s.firedRuns(plan.ID)), 3)
		for _, run := range s.firedRuns(plan.ID) {
			s.cancel(run.ID)
		}
		s.pass(time.Minute)
		s.prune(s.now, 10)
		p := s.fireParams(plan.ID, 0)
		p.Next = p.Expect
		for i := range 3 {
			p.Ticks = append(p.Ticks, engine.Tick{At: plan.NextFireAt.Add(time.Duration(i) * time.Minute), RunID: s.id()})
		}
		equal(s, "runs after the first were deleted", s.fire(p).Runs, 0)
	}},
	{"a change that leaves the next tick as it was read does not bring back one that has been decided about since", func(s *stage) {
		plan := s.plan(overlapping(engine.OverlapSkip))
		read := s.schedule(plan.ID)
		s.now = plan.NextFireAt
		s.fire(s.fireParams(plan.ID, 1))
		read.MaxCatchup = 7
		_, err := s.store.UpdateSchedule(s.ctx, engine.ScheduleParams{Schedule: read, Method: "UpdateWorkflowSchedule", By: somebody, AuditID: s.id(), Now: s.now})
		s.must(err, "UpdateSchedule")
		got := s.schedule(plan.ID)
		s.sameTime("next fire at", got.NextFireAt, plan.NextFireAt.Add(time.Minute))
		equal(s, "max catchup", got.MaxCatchup, 7)
	}},
	{"nor does one whose time is before that tick", func(s *stage) {
		plan := s.plan(overlapping(engine.OverlapSkip))
		read, early := s.schedule(plan.ID), s.now
		s.now = plan.NextFireAt
		s.fire(s.fireParams(plan.ID, 1))
		update := engine.ScheduleParams{
			Schedule: read, Read: read.NextFireAt, Method: "PauseWorkflowSchedule", By: somebody, AuditID: s.id(), Now: early,
		}
		update.Schedule.Enabled = false
		_, err := s.store.UpdateSchedule(s.ctx, update)
		s.must(err, "UpdateSchedule")
		s.sameTime("next fire at", s.schedule(plan.ID).NextFireAt, plan.NextFireAt.Add(time.Minute))
	}},
	{"nor the last one, behind which none comes any more", func(s *stage) {
		plan := s.plan(overlapping(engine.OverlapSkip))
		read, early := s.schedule(plan.ID), s.now
		s.now = plan.NextFireAt
		_, err := s.store.TriggerSchedule(s.ctx, engine.TriggerScheduleParams{Namespace: space, Ref: plan.ID.String(), RunID: s.id(), By: somebody, AuditID: s.id(), Now: s.now})
		s.must(err, "TriggerSchedule")
		last := s.fireParams(plan.ID, 1)
		last.Next = time.Time{}
		equal(s, "skipped, for a run is open", s.fire(last).Skipped, 1)
		for _, c := range []struct{ read, now time.Time }{{read.NextFireAt, early}, {read.NextFireAt, s.now}, {time.Time{}, s.now}} {
			read.Revision, read.MaxCatchup = s.schedule(plan.ID).Revision, read.MaxCatchup+1
			_, err := s.store.UpdateSchedule(s.ctx, engine.ScheduleParams{
				Schedule: read, Read: c.read, Method: "UpdateWorkflowSchedule", By: somebody, AuditID: s.id(), Now: c.now,
			})
			s.must(err, "UpdateSchedule")
			s.sameTime("next fire at", s.schedule(plan.ID).NextFireAt, time.Time{})
		}
	}},
	{"a change of when it fires decides about the next tick, also where that is the one which was read", func(s *stage) {
		for what, change := range map[string]func(*engine.Schedule){
			"expression": func(p *engine.Schedule) { p.CronExpr = "*/5 * * * *" },
			"zone":       func(p *engine.Schedule) { p.TimeZone = "Asia/Tokyo" },
		} {
			plan := s.plan()
			changed := s.schedule(plan.ID)
			s.now = plan.NextFireAt
			s.fire(s.fireParams(plan.ID, 1))
			change(&changed)
			_, err := s.store.UpdateSchedule(s.ctx, engine.ScheduleParams{
				Schedule: changed, Read: changed.NextFireAt, Method: "UpdateWorkflowSchedule", By: somebody, AuditID: s.id(), Now: s.now,
			})
			s.must(err, "UpdateSchedule of its "+what)
			s.sameTime("next fire at after a change of its "+what, s.schedule(plan.ID).NextFireAt, changed.NextFireAt)
		}
	}},
	{"the ticks that a change gives up are counted, once, and not when they were decided about meanwhile", func(s *stage) {
		plan := s.plan()
		p := s.fireParams(plan.ID, 1)
		p.Skipped = 2
		s.fire(p)
		update := engine.ScheduleParams{
			Schedule: s.schedule(plan.ID), Read: plan.NextFireAt, Skipped: 5, Method: "UpdateWorkflowSchedule", By: somebody, AuditID: s.id(), Now: s.now,
		}
		update.Schedule.CronExpr, update.Schedule.NextFireAt = "0 * * * *", s.now.Truncate(time.Hour).Add(time.Hour)
		_, err := s.store.UpdateSchedule(s.ctx, update)
		s.refused(err, engine.ErrConflict, "UpdateSchedule that gives up ticks of which one has fired")
		equal(s, "skipped after the refusal", s.schedule(plan.ID).Skipped, 2)
		update.Read = plan.NextFireAt.Add(time.Minute)
		for range 2 {
			got, err := s.store.UpdateSchedule(s.ctx, update)
			s.must(err, "UpdateSchedule")
			equal(s, "skipped", got.Skipped, 7)
			equal(s, "skipped, as it is kept", s.schedule(plan.ID).Skipped, 7)
		}
	}},
	{"a change by a person makes an older decision stale", func(s *stage) {
		plan := s.plan()
		p := s.fireParams(plan.ID, 1)
		now := s.schedule(plan.ID)
		now.CronExpr = "0 * * * *"
		changed, err := s.store.UpdateSchedule(s.ctx, engine.ScheduleParams{Schedule: now, Method: "UpdateWorkflowSchedule", Reason: "why", By: somebody, AuditID: s.id(), Now: s.now})
		s.must(err, "UpdateSchedule")
		equal(s, "revision", changed.Revision, 2)
		equal(s, "stale", s.fire(p).Stale, true)
		now.CronExpr = "1 * * * *"
		_, err = s.store.UpdateSchedule(s.ctx, engine.ScheduleParams{Schedule: now, Method: "UpdateWorkflowSchedule", By: somebody, AuditID: s.id(), Now: s.now})
		s.refused(err, engine.ErrConflict, "UpdateSchedule from an older revision")
		equal(s, "cron", s.schedule(plan.ID).CronExpr, "0 * * * *")
		list := s.audit(plan.ID.String())
		equal(s, "audit events", len(list), 2)
		equal(s, "method", list[0].Method+" "+list[0].Reason, "UpdateWorkflowSchedule why")
	}},
	{"a change by a person leaves what has fired and been counted as it is", func(s *stage) {
		plan := s.plan()
		p := s.fireParams(plan.ID, 2)
		p.Skipped = 3
		s.fire(p)
		s.worker("w1")
		s.finish(s.claim("w1").Lease, "")
		s.failRun(s.claim("w1").Lease, "no")
		was := s.schedule(plan.ID)
		s.pass(time.Second)
		wanted := engine.Schedule{ID: plan.ID, Namespace: space, CronExpr: "0 * * * *", Queue: queue, Type: kind, Enabled: true,
			Revision: was.Revision, NextFireAt: s.now.Add(time.Hour)}
		got, err := s.store.UpdateSchedule(s.ctx, engine.ScheduleParams{Schedule: wanted, Method: "UpdateWorkflowSchedule", By: somebody, AuditID: s.id(), Now: s.now})
		s.must(err, "UpdateSchedule")
		for _, now := range []engine.Schedule{got, s.schedule(plan.ID)} {
			equal(s, "cron", now.CronExpr, "0 * * * *")
			s.sameTime("created at", now.CreatedAt, was.CreatedAt)
			s.sameTime("updated at", now.UpdatedAt, s.now)
			s.sameTime("last fired at", now.LastFiredAt, p.Ticks[1].At)
			equal(s, "counts", [4]int64{now.Fired, now.Completed, now.Failed, now.Skipped}, [4]int64{2, 1, 1, 3})
		}
	}},
	{"a disabled schedule is not due and does not fire", func(s *stage) {
		plan := s.plan()
		p := s.fireParams(plan.ID, 1)
		now := s.schedule(plan.ID)
		now.Enabled = false
		_, err := s.store.UpdateSchedule(s.ctx, engine.ScheduleParams{Schedule: now, Method: "PauseWorkflowSchedule", By: somebody, AuditID: s.id(), Now: s.now})
		s.must(err, "UpdateSchedule")
		p.Revision++
		equal(s, "stale", s.fire(p).Stale, true)
		s.pass(time.Hour)
		due, next, err := s.store.DueSchedules(s.ctx, s.now, 10)
		s.must(err, "DueSchedules")
		equal(s, "due", len(due), 0)
		s.sameTime("next", next, time.Time{})
	}},
	{"due schedules come earliest first, with the moment of the next", func(s *stage) {
		at := func(minutes int) func(*engine.Schedule) {
			return func(p *engine.Schedule) { p.NextFireAt = s.now.Add(time.Duration(minutes) * time.Minute) }
		}
		late, early, ahead := s.plan(at(2)), s.plan(at(1)), s.plan(at(5))
		broken := s.plan(at(1), func(p *engine.Schedule) { p.Broken = "no such zone" })
		over := s.plan(func(p *engine.Schedule) { p.NextFireAt = time.Time{} })
		s.pass(3 * time.Minute)
		due, next, err := s.store.DueSchedules(s.ctx, s.now, 10)
		s.must(err, "DueSchedules")
		var got []engine.ID
		for _, plan := range due {
			got = append(got, plan.ID)
		}
		s.sameIDs("due", got, []engine.ID{early.ID, late.ID})
		s.sameTime("next", next, ahead.NextFireAt)
		equal(s, "broken", s.schedule(broken.ID).Broken, "no such zone")
		s.sameTime("next of the one that is over", s.schedule(over.ID).NextFireAt, time.Time{})
		due, _, err = s.store.DueSchedules(s.ctx, s.now, 1)
		s.must(err, "DueSchedules")
		equal(s, "due within the limit", len(due), 1)
	}},
	{"with SKIP a tick is passed over while a run is open, and counted", func(s *stage) {
		plan := s.plan(overlapping(engine.OverlapSkip))
		fired := s.fire(s.fireParams(plan.ID, 3))
		equal(s, "runs", fired.Runs, 1)
		equal(s, "skipped", fired.Skipped, int64(2))
		s.worker("w1")
		l := s.claim("w1").Lease
		s.sleep(l, "nap", time.Hour)
		equal(s, "runs while it sleeps", s.fire(s.fireParams(plan.ID, 1)).Runs, 0)
		s.cancel(l.RunID)
		equal(s, "runs after its end", s.fire(s.fireParams(plan.ID, 1)).Runs, 1)
		got := s.schedule(plan.ID)
		equal(s, "skipped", got.Skipped, int64(3))
		equal(s, "fired", got.Fired, int64(2))
	}},
	{"with BUFFER_ONE one tick waits for the open run to end", func(s *stage) {
		plan := s.plan(overlapping(engine.OverlapBufferOne))
		first := plan.NextFireAt
		fired := s.fire(s.fireParams(plan.ID, 4))
		equal(s, "runs", fired.Runs, 1)
		equal(s, "skipped", fired.Skipped, int64(2))
		s.sameTime("buffered", s.schedule(plan.ID).Buffered, first.Add(time.Minute))
		s.worker("w1")
		s.pass(time.Hour)
		s.finish(s.claim("w1").Lease, "")
		runs := s.firedRuns(plan.ID)
		equal(s, "runs", len(runs), 2)
		s.sameTime("tick of the second", runs[1].ScheduledAt, first.Add(time.Minute))
		s.sameTime("due at", runs[1].AvailableAt, s.now)
		s.sameTime("buffered", s.schedule(plan.ID).Buffered, time.Time{})
		s.failRun(s.claim("w1").Lease, "no")
		equal(s, "runs", len(s.firedRuns(plan.ID)), 2)
		equal(s, "fired", s.schedule(plan.ID).Fired, int64(2))
	}},
	{"a tick that waits does so while its schedule is paused, and starts when it is resumed", func(s *stage) {
		plan := s.plan(overlapping(engine.OverlapBufferOne))
		s.fire(s.fireParams(plan.ID, 2))
		s.switchSchedule(plan.ID, false)
		s.worker("w1")
		s.pass(time.Hour)
		s.finish(s.claim("w1").Lease, "")
		equal(s, "runs while it is paused", len(s.firedRuns(plan.ID)), 1)
		equal(s, "completed", s.schedule(plan.ID).Completed, int64(1))
		tick := s.schedule(plan.ID).Buffered
		s.sameTime("buffered", tick, plan.NextFireAt.Add(time.Minute))
		s.switchSchedule(plan.ID, true)
		runs := s.firedRuns(plan.ID)
		equal(s, "runs when it is resumed", len(runs), 2)
		s.sameTime("tick of the second", runs[1].ScheduledAt, tick)
		s.sameTime("buffered", s.schedule(plan.ID).Buffered, time.Time{})
		equal(s, "fired", s.schedule(plan.ID).Fired, int64(2))
	}},
	{"a schedule that is resumed while its run is open has its tick wait on", func(s *stage) {
		plan := s.plan(overlapping(engine.OverlapBufferOne))
		s.fire(s.fireParams(plan.ID, 2))
		s.switchSchedule(plan.ID, false)
		s.switchSchedule(plan.ID, true)
		equal(s, "runs", len(s.firedRuns(plan.ID)), 1)
		s.worker("w1")
		s.finish(s.claim("w1").Lease, "")
		equal(s, "runs after its end", len(s.firedRuns(plan.ID)), 2)
	}},
	{"a tick that waits does so while its namespace is disabled, and starts before the next one", func(s *stage) {
		plan := s.plan(overlapping(engine.OverlapBufferOne))
		s.fire(s.fireParams(plan.ID, 2))
		s.worker("w1")
		l := s.claim("w1").Lease
		s.enable(false)
		s.finish(l, "")
		equal(s, "runs while it is disabled", len(s.firedRuns(plan.ID)), 1)
		s.pass(time.Minute)
		s.enable(true)
		runs := s.firedRuns(plan.ID)
		equal(s, "runs when it is enabled", len(runs), 2)
		s.sameTime("tick of the second", runs[1].ScheduledAt, plan.NextFireAt.Add(time.Minute))
		fired := s.fire(s.fireParams(plan.ID, 2))
		equal(s, "runs", fired.Runs, 0)
		equal(s, "skipped", fired.Skipped, int64(1))
		s.sameTime("buffered", s.schedule(plan.ID).Buffered, plan.NextFireAt.Add(2*time.Minute))
	}},
	{"a tick that waits while its namespace is disabled starts when that is enabled, before there is another", func(s *stage) {
		monthly := func(p *engine.Schedule) { p.CronExpr = "0 0 1 * *" }
		plan := s.plan(overlapping(engine.OverlapBufferOne), monthly)
		p := s.fireParams(plan.ID, 2)
		p.Next = plan.NextFireAt.Add(30 * 24 * time.Hour)
		s.fire(p)
		s.worker("w1")
		l := s.claim("w1").Lease
		s.enable(false)
		s.finish(l, "")
		s.pass(time.Second)
		s.enable(true)
		runs := s.firedRuns(plan.ID)
		equal(s, "runs in all", len(runs), 2)
		s.sameTime("tick of the second", runs[1].ScheduledAt, plan.NextFireAt.Add(time.Minute))
		s.sameTime("due since", runs[1].AvailableAt, s.now)
		s.sameTime("buffered", s.schedule(plan.ID).Buffered, time.Time{})
		s.sameTime("next", s.schedule(plan.ID).NextFireAt, p.Next)
		equal(s, "fired", s.schedule(plan.ID).Fired, int64(2))
	}},
	{"a tick that waits starts when its namespace is enabled, whatever a person has changed of its schedule before", func(s *stage) {
		update := func(plan engine.Schedule, change func(*engine.Schedule)) engine.ScheduleParams {
			p := engine.ScheduleParams{Schedule: plan, Read: plan.NextFireAt, Method: "UpdateWorkflowSchedule", By: somebody, AuditID: s.id(), Now: s.now}
			change(&p.Schedule)
			return p
		}
		resumed := func(plan *engine.Schedule) { plan.Enabled = true }
		for what, story := range map[string]func(l engine.Lease, plan engine.ID) engine.ScheduleParams{
			"resumed while it is disabled": func(l engine.Lease, plan engine.ID) engine.ScheduleParams {
				s.switchSchedule(plan, false)
				s.finish(l, "")
				s.enable(false)
				return update(s.schedule(plan), resumed)
			},
			"changed by one who has read it before the end of its run": func(l engine.Lease, plan engine.ID) engine.ScheduleParams {
				s.enable(false)
				read := s.schedule(plan)
				s.finish(l, "")
				return update(read, func(plan *engine.Schedule) { plan.MaxCatchup = 7 })
			},
		} {
			plan := s.plan(overlapping(engine.OverlapBufferOne), func(p *engine.Schedule) { p.CronExpr = "0 0 1 * *" })
			p := s.fireParams(plan.ID, 2)
			p.Next = plan.NextFireAt.Add(30 * 24 * time.Hour)
			s.fire(p)
			s.worker("w1")
			change := story(s.claim("w1").Lease, plan.ID)
			for range 2 {
				_, err := s.store.UpdateSchedule(s.ctx, change)
				s.must(err, "UpdateSchedule of one that was "+what)
			}
			s.enable(true)
			equal(s, "runs of the schedule that was "+what, len(s.firedRuns(plan.ID)), 2)
			s.sameTime("next of the schedule that was "+what, s.schedule(plan.ID).NextFireAt, p.Next)
			s.finish(s.claim("w1").Lease, "")
		}
	}},
	{"a tick that waits while its namespace is disabled has no other fire before the moment that a person has chosen for the next", func(s *stage) {
		plan := s.plan(overlapping(engine.OverlapBufferOne))
		s.fire(s.fireParams(plan.ID, 2))
		s.worker("w1")
		l := s.claim("w1").Lease
		chosen := s.now.Truncate(time.Hour).Add(24 * time.Hour)
		changed := s.schedule(plan.ID)
		changed.NextFireAt = chosen
		_, err := s.store.UpdateSchedule(s.ctx, engine.ScheduleParams{Schedule: changed, Method: "UpdateWorkflowSchedule", By: somebody, AuditID: s.id(), Now: s.now})
		s.must(err, "UpdateSchedule")
		s.enable(false)
		s.finish(l, "")
		s.sameTime("next while it is disabled", s.schedule(plan.ID).NextFireAt, chosen)
		s.enable(true)
		equal(s, "runs when it is enabled", len(s.firedRuns(plan.ID)), 2)
		s.sameTime("next when it is enabled", s.schedule(plan.ID).NextFireAt, chosen)
	}},
	{"a tick that waits does so while its schedule is paused, though its namespace is enabled meanwhile", func(s *stage) {
		plan := s.plan(overlapping(engine.OverlapBufferOne))
		s.fire(s.fireParams(plan.ID, 2))
		s.worker("w1")
		l := s.claim("w1").Lease
		s.switchSchedule(plan.ID, false)
		s.enable(false)
		s.finish(l, "")
		s.enable(true)
		equal(s, "runs while it is paused", len(s.firedRuns(plan.ID)), 1)
		s.switchSchedule(plan.ID, true)
		equal(s, "runs when it is resumed", len(s.firedRuns(plan.ID)), 2)
	}},
	{"a tick that waits and is dropped with the policy by which it does is counted", func(s *stage) {
		plan := s.plan(overlapping(engine.OverlapBufferOne))
		s.fire(s.fireParams(plan.ID, 2))
		now := s.schedule(plan.ID)
		now.Overlap = engine.OverlapSkip
		p := engine.ScheduleParams{Schedule: now, Method: "UpdateWorkflowSchedule", By: somebody, AuditID: s.id(), Now: s.now}
		for range 2 {
			_, err := s.store.UpdateSchedule(s.ctx, p)
			s.must(err, "UpdateSchedule")
			s.sameTime("buffered", s.schedule(plan.ID).Buffered, time.Time{})
			equal(s, "skipped", s.schedule(plan.ID).Skipped, int64(1))
		}
	}},
	{"a schedule that continues as new is one open run", func(s *stage) {
		plan := s.plan(overlapping(engine.OverlapSkip))
		s.fire(s.fireParams(plan.ID, 1))
		s.worker("w1")
		next := engine.StartRun{Run: engine.Run{ID: s.id()}}
		s.must(s.tryEnd(engine.CompleteRunParams{Lease: s.claim("w1").Lease, ContinueAs: &next, Now: s.now}), "CompleteRun")
		equal(s, "runs", s.fire(s.fireParams(plan.ID, 1)).Runs, 0)
	}},
	{"missed ticks that are not replayed are counted", func(s *stage) {
		plan := s.plan()
		p := s.fireParams(plan.ID, 2)
		p.Skipped = 40
		equal(s, "skipped", s.fire(p).Skipped, int64(40))
		equal(s, "skipped", s.schedule(plan.ID).Skipped, int64(40))
	}},
	{"a broken schedule is taken out until it is updated", func(s *stage) {
		plan := s.plan()
		p := s.fireParams(plan.ID, 0)
		p.Broken, p.Next = "no such zone", plan.NextFireAt
		s.fire(p)
		s.pass(time.Hour)
		due, _, err := s.store.DueSchedules(s.ctx, s.now, 10)
		s.must(err, "DueSchedules")
		equal(s, "due", len(due), 0)
		now := s.schedule(plan.ID)
		now.Broken = ""
		_, err = s.store.UpdateSchedule(s.ctx, engine.ScheduleParams{Schedule: now, Method: "UpdateWorkflowSchedule", By: somebody, AuditID: s.id(), Now: s.now})
		s.must(err, "UpdateSchedule")
		due, _, err = s.store.DueSchedules(s.ctx, s.now, 10)
		s.must(err, "DueSchedules")
		equal(s, "due after the update", len(due), 1)
	}},
	{"a tick's external id that a user has taken stands in nobody's way", func(s *stage) {
		plan := s.plan()
		squatter := s.start(withExternal(engine.TickID(plan.ID, plan.NextFireAt)), ofType("other"))
		equal(s, "runs", s.fire(s.fireParams(plan.ID, 1)).Runs, 1)
		s.status(squatter, engine.RunPending)
		equal(s, "runs of the schedule", len(s.firedRuns(plan.ID)), 1)
	}},
	{"the external id of a tick's run is free for a user, who finds his own run by it", func(s *stage) {
		plan := s.plan()
		equal(s, "runs", s.fire(s.fireParams(plan.ID, 1)).Runs, 1)
		id := withExternal(engine.TickID(plan.ID, plan.NextFireAt))
		first, second := s.newRun(id), s.newRun(id)
		answers := s.startAll(first, second)
		equal(s, "the first", answers[0], engine.Started{RunID: first.ID})
		equal(s, "the second", answers[1], engine.Started{RunID: first.ID, Existed: true})
	}},
	{"a trigger fires beside the ticks, whatever the overlap, and is listed and counted with them", func(s *stage) {
		plan := s.plan(overlapping(engine.OverlapSkip), func(p *engine.Schedule) { p.Name, p.Enabled = "nightly", false })
		p := engine.TriggerScheduleParams{Namespace: space, Ref: "nightly", RunID: s.id(), RequestID: "r", By: somebody, AuditID: s.id(), Now: s.now}
		first, err := s.store.TriggerSchedule(s.ctx, p)
		s.must(err, "TriggerSchedule")
		p.RunID = s.id()
		again, err := s.store.TriggerSchedule(s.ctx, p)
		s.must(err, "TriggerSchedule repeated")
		equal(s, "run of the repetition", again.RunID, first.RunID)
		p.RunID, p.RequestID, p.Ref, p.AuditID = s.id(), "", plan.ID.String(), s.id()
		_, err = s.store.TriggerSchedule(s.ctx, p)
		s.must(err, "TriggerSchedule")
		runs := s.firedRuns(plan.ID)
		equal(s, "runs", len(runs), 2)
		equal(s, "external id", runs[0].ExternalID, engine.TriggerID(plan.ID, runs[0].ID))
		s.sameTime("scheduled at", runs[0].ScheduledAt, time.Time{})
		equal(s, "fired", s.schedule(plan.ID).Fired, int64(2))
		p.Ref = "nobody"
		_, err = s.store.TriggerSchedule(s.ctx, p)
		s.refused(err, engine.ErrNotFound, "TriggerSchedule of none")
	}},
	{"a deleted schedule is gone and its runs stay", func(s *stage) {
		plan := s.plan()
		s.fire(s.fireParams(plan.ID, 1))
		run := s.firedRuns(plan.ID)[0]
		p := engine.DeleteScheduleParams{Namespace: space, Ref: plan.ID.String(), By: somebody, AuditID: s.id(), Now: s.now}
		s.must(s.store.DeleteSchedule(s.ctx, p), "DeleteSchedule")
		s.refused(s.store.DeleteSchedule(s.ctx, p), engine.ErrNotFound, "DeleteSchedule again")
		_, err := s.store.GetSchedule(s.ctx, space, plan.ID.String())
		s.refused(err, engine.ErrNotFound, "GetSchedule")
		s.worker("w1")
		task := s.claim("w1")
		equal(s, "claimed", task.Run.ID, run.ID)
		s.finish(task.Lease, "done")
	}},
	{"schedules are listed newest first, by page in both directions", func(s *stage) {
		var made []engine.ID
		for i := range 5 {
			made = append(made, s.plan(func(p *engine.Schedule) { p.Queue = fmt.Sprint("q", i%2) }).ID)
		}
		list := func(f engine.ScheduleFilter, p engine.Page) ([]engine.ID, engine.PageInfo) {
			s.Helper()
			schedules, info, err := s.store.ListSchedules(s.ctx, f, p)
			s.must(err, "ListSchedules")
			var got []engine.ID
			for _, plan := range schedules {
				got = append(got, plan.ID)
			}
			return got, info
		}
		all := engine.ScheduleFilter{Namespace: space}
		first, info := list(all, engine.Page{Limit: 2, Count: true})
		s.sameIDs("first page", first, []engine.ID{made[4], made[3]})
		equal(s, "total", info.Total, int64(5))
		second, info := list(all, engine.Page{Limit: 2, After: &engine.Cursor{ID: made[3]}})
		s.sameIDs("second page", second, []engine.ID{made[2], made[1]})
		equal(s, "has next", info.HasNext, true)
		back, info := list(all, engine.Page{Limit: 2, Before: &engine.Cursor{ID: made[2]}})
		s.sameIDs("back", back, first)
		equal(s, "has previous", info.HasPrev, false)
		odd, _ := list(engine.ScheduleFilter{Namespace: space, Queue: "q1"}, engine.Page{Limit: 10})
		s.sameIDs("of a queue", odd, []engine.ID{made[3], made[1]})
		none, _ := list(engine.ScheduleFilter{Namespace: "elsewhere"}, engine.Page{Limit: 10})
		equal(s, "elsewhere", len(none), 0)
	}},
	{"a change of anything that a person decides about is one, and the same again is none", func(s *stage) {
		plan := s.plan()
		policy := engine.RetryPolicy{MaximumAttempts: 7}
		for i, change := range []func(*engine.Schedule){
			func(p *engine.Schedule) { p.Input = text("another") },
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
			func(p *engine.Schedule) { p.Timeouts = engine.Timeouts{Execution: time.Hour} },
			func(p *engine.Schedule) { p.OnFailureWorkflow, p.OnFailureQueue = "sorry", "graves" },
			func(p *engine.Schedule) { p.MaxCatchup = 7 },
			func(p *engine.Schedule) { p.Overlap = engine.OverlapSkip },
			func(p *engine.Schedule) { p.Enabled = false },
		} {
			s.pass(time.Second)
			want := s.schedule(plan.ID)
			change(&want)
			want.Revision, want.UpdatedAt = int64(i+2), s.now
			for range 2 {
				s.replan(plan.ID, change)
				change = func(*engine.Schedule) {}
				got := s.schedule(plan.ID)
				s.sameText("retry policy", policyText(got.RetryPolicy), policyText(want.RetryPolicy))
				got.RetryPolicy = want.RetryPolicy // an address, for the next comparison
				s.sameText("schedule", fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want))
			}
		}
		equal(s, "audit events", len(s.audit(plan.ID.String())), 17)
	}},
	{"a request that has started something else triggers nothing", func(s *stage) {
		one, other := s.plan(), s.plan()
		trigger := func(id engine.ID, request string) error {
			_, err := s.store.TriggerSchedule(s.ctx, engine.TriggerScheduleParams{
				Namespace: space, Ref: id.String(), RunID: s.id(), RequestID: request, By: somebody, AuditID: s.id(), Now: s.now,
			})
			return err
		}
		s.must(trigger(one.ID, "r"), "TriggerSchedule")
		s.refused(trigger(other.ID, "r"), engine.ErrConflict, "TriggerSchedule of another schedule with its request")
		s.start(withRequest("start"))
		s.refused(trigger(one.ID, "start"), engine.ErrConflict, "TriggerSchedule with the request of a start")
		equal(s, "fired", s.schedule(one.ID).Fired, int64(1))
		equal(s, "fired of the other", s.schedule(other.ID).Fired, int64(0))
		s.unplan(one.ID)
		s.refused(trigger(one.ID, "start"), engine.ErrConflict, "TriggerSchedule, once the schedule is gone, with the request of a start")
		s.must(trigger(one.ID, "r"), "TriggerSchedule, once the schedule is gone, repeated")
	}},
}
