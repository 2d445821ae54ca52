package storetest

import (
	"reflect"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// change is something done that must be heard.
type change struct {
	what string
	do   func()
}

var bellAroundCases = []testCase{
	{"a change of a worker's status rings the worker, also when it holds nothing", func(s *stage) {
		e := s.listen()
		for _, c := range []change{
			{"drain", func() {
				s.must(s.store.DrainWorker(s.ctx, engine.DrainWorkerParams{WorkerID: "w1", Now: s.now}), "DrainWorker")
			}},
			{"goodbye", func() { s.offline("w1", engine.OfflineDeregistered) }},
			{"forced", func() { s.offline("w1", engine.OfflineForced) }},
			{"lost", func() { s.offline("w1", engine.OfflineLost) }},
		} {
			s.worker("w1")
			e.forget()
			c.do()
			e.hears(c.what, ringWorker("w1"))
			e.forget()
			s.worker("w1")
			e.hears("return after "+c.what, ringRegistered("w1"))
			s.offline("w1", engine.OfflineForced)
		}
		s.offline("w1", engine.OfflineForced)
		heir := s.newWorker("w1")
		heir.InstanceID = "another instance"
		e.forget()
		s.register(heir, true)
		e.hears("takeover of the id", ringWorker("w1"))
	}},
	{"whatever changes a schedule rings it", func(s *stage) {
		e := s.listen()
		s.worker("w1")
		plan := s.plan(overlapping(engine.OverlapBufferOne))
		e.hears("creation", ringSchedule(plan.ID))
		for _, c := range []change{
			{"update", func() { s.replan(plan.ID, func(p *engine.Schedule) { p.Queue = "elsewhere" }) }},
			{"pause", func() { s.replan(plan.ID, func(p *engine.Schedule) { p.Enabled = false }) }},
			{"resumption", func() { s.replan(plan.ID, func(p *engine.Schedule) { p.Enabled, p.Queue = true, queue }) }},
			{"trigger", func() { s.trigger(plan.ID) }},
			{"tick that waits", func() { s.fire(s.fireParams(plan.ID, 1)) }},
			{"tick that is skipped", func() { s.fire(s.fireParams(plan.ID, 1)) }},
			{"tick that was missed", func() {
				p := s.fireParams(plan.ID, 0)
				p.Skipped, p.Next = 3, p.Next.Add(3*time.Minute)
				s.fire(p)
			}},
			{"end of its run, which starts the tick that waited", func() { s.finish(s.claim("w1").Lease, "done") }},
			{"end of its last run", func() { s.finish(s.claim("w1").Lease, "done") }},
			{"tick that fires", func() { s.fire(s.fireParams(plan.ID, 1)) }},
			{"expression that is broken", func() {
				p := s.fireParams(plan.ID, 0)
				p.Broken = "no such zone"
				s.fire(p)
			}},
			{"deletion", func() { s.unplan(plan.ID) }},
		} {
			e.forget()
			c.do()
			e.hears(c.what, ringSchedule(plan.ID))
		}
	}},
	{"a namespace that a person makes or changes rings", func(s *stage) {
		e := s.listen()
		p := engine.NamespaceParams{
			Namespace: engine.Namespace{Name: "made", Enabled: true}, Method: "CreateNamespace", By: somebody, AuditID: s.id(), Now: s.now,
		}
		_, err := s.store.CreateNamespace(s.ctx, p)
		s.must(err, "CreateNamespace")
		e.hears("creation", ringNamespace("made"))
		e.forget()
		p.Namespace.Description, p.Method, p.AuditID = "changed", "UpdateNamespace", s.id()
		_, err = s.store.UpdateNamespace(s.ctx, p)
		s.must(err, "UpdateNamespace")
		e.hears("update", ringNamespace("made"))
		p.Namespace.Enabled, p.Method, p.AuditID = false, "DisableNamespace", s.id()
		_, err = s.store.UpdateNamespace(s.ctx, p)
		s.must(err, "DisableNamespace")
		e.forget()
		p.Namespace.Enabled, p.Method, p.AuditID = true, "EnableNamespace", s.id()
		_, err = s.store.UpdateNamespace(s.ctx, p)
		s.must(err, "EnableNamespace")
		e.hears("its being let go on", engine.Notification{Kind: engine.NotifyAll})
	}},
	{"a namespace that gets another retention rings all, for somebody may wait for what is to be deleted", func(s *stage) {
		e := s.listen()
		p := engine.NamespaceParams{
			Namespace: engine.Namespace{Name: "made", Enabled: true, Retention: time.Hour}, Method: "CreateNamespace", By: somebody, AuditID: s.id(), Now: s.now,
		}
		_, err := s.store.CreateNamespace(s.ctx, p)
		s.must(err, "CreateNamespace")
		e.hears("creation", engine.Notification{Kind: engine.NotifyAll})
		for _, change := range []func(*engine.Namespace){
			func(n *engine.Namespace) { n.Retention = time.Minute },
			func(n *engine.Namespace) { n.Keep = map[engine.RunStatus]time.Duration{engine.RunFailed: time.Hour} },
		} {
			e.forget()
			change(&p.Namespace)
			p.Method, p.AuditID = "UpdateNamespace", s.id()
			_, err = s.store.UpdateNamespace(s.ctx, p)
			s.must(err, "UpdateNamespace")
			e.hears("update", engine.Notification{Kind: engine.NotifyAll})
		}
	}},
	{"what leaves a schedule as it is does not ring it", func(s *stage) {
		e := s.listen()
		plan, mark := s.plan(), s.plan()
		stale := s.fireParams(plan.ID, 1)
		stale.Revision++
		e.hears("creation", ringSchedule(mark.ID))
		e.forget()
		equal(s, "stale", s.fire(stale).Stale, true)
		s.replan(plan.ID, func(*engine.Schedule) {})
		s.unplan(mark.ID)
		over, enough := soon()
		defer enough()
		for { // rings come in the order of the commits
			select {
			case r := <-e.rings:
				switch r.Notification {
				case ringSchedule(plan.ID):
					s.Fatalf("the schedule was rung, though nothing has changed it")
				case ringSchedule(mark.ID):
					return
				}
			case <-over:
				s.Fatalf("no ring of the deletion within %s", patience)
			}
		}
	}},
	{"what a call begins and ends unasked is told for counting, once and where it was done", func(s *stage) {
		e := s.listen()
		s.worker("w1")
		s.childWorker()
		family := func() engine.Lease {
			l := s.held()
			grown := s.claimChild(s.child(l, "a", closing(engine.CloseCancel)))
			s.child(grown, "grandchild", closing(engine.CloseTerminate))
			s.child(l, "b", closing(engine.CloseTerminate))
			s.cancel(s.child(l, "ended", closing(engine.CloseCancel)))
			s.child(l, "orphan", closing(engine.CloseAbandon))
			return l
		}
		waiting := func() engine.Schedule {
			plan := s.plan(overlapping(engine.OverlapBufferOne), func(p *engine.Schedule) { p.Queue = "ticks" })
			s.fire(s.fireParams(plan.ID, 2))
			return plan
		}
		first := func(plan engine.Schedule) engine.ID { return s.firedRuns(plan.ID)[0].ID }
		named := func(r *engine.StartRun) { r.OnFailureWorkflow = "mourn" }
		poisoned := make([]engine.ID, 1)
		global := s.newWorker("undertaker")
		global.Types = []string{engine.GlobalHandler}
		for _, c := range []struct {
			what    string
			prepare func() (do func())
			want    engine.SideEffects
		}{
			{"a result", func() func() { l := s.held(); return func() { s.finish(l, "done") } }, engine.SideEffects{}},
			{"a failure for which nobody cares", func() func() { l := s.held(); return func() { s.failRun(l, "no") } }, engine.SideEffects{}},
			{"a child's own end", func() func() {
				l := s.held()
				child := s.claimChild(s.child(l, "c", closing(engine.CloseCancel)))
				return func() { s.finish(child, "done") }
			}, engine.SideEffects{}},
			{"a parent's end", func() func() { l := family(); return func() { s.finish(l, "done") } }, engine.SideEffects{Stopped: 3}},
			{"a parent's end, repeated", func() func() {
				l := family()
				s.finish(l, "done")
				return func() { s.finish(l, "done") }
			}, engine.SideEffects{}},
			{"a parent's end by a lease that is over", func() func() {
				l := family()
				s.lose("w1")
				return func() { s.lost(s.tryFinish(l, "done"), engine.RunPending, "CompleteRun") }
			}, engine.SideEffects{}},
			{"a parent's end by a person", func() func() { l := family(); return func() { s.cancel(l.RunID) } }, engine.SideEffects{Stopped: 3}},
			{"a parent's deadline", func() func() {
				l := s.held(func(r *engine.StartRun) { r.DeadlineAt = s.now.Add(time.Minute) })
				s.child(l, "c", closing(engine.CloseCancel))
				s.pass(time.Minute)
				return func() { equal(s, "timed out", len(s.expire().TimedOut), 1) }
			}, engine.SideEffects{Stopped: 1}},
			{"a failure with a handler", func() func() { l := s.held(named); return func() { s.failRun(l, "no") } }, engine.SideEffects{Handlers: 1}},
			{"a lost worker", func() func() { s.held(); return func() { s.lose("w1") } }, engine.SideEffects{}},
			{"one lost worker too many", func() func() {
				poisoned[0] = s.heldAfterLosses(engine.MaxLeaseLosses - 1).RunID
				return func() { s.lose("w1") }
			}, engine.SideEffects{Failed: poisoned}},
			{"the end of a run for which a tick waits", func() func() {
				run := first(waiting())
				return func() { s.cancel(run) }
			}, engine.SideEffects{Ticks: 1}},
			{"a resumed schedule", func() func() {
				plan := waiting()
				s.switchSchedule(plan.ID, false)
				s.cancel(first(plan))
				return func() { s.switchSchedule(plan.ID, true) }
			}, engine.SideEffects{Ticks: 1}},
			{"an enabled namespace", func() func() {
				plan := waiting()
				s.enable(false)
				s.cancel(first(plan))
				return func() { s.enable(true) }
			}, engine.SideEffects{Ticks: 1}},
			{"a failure with a handler of its own and one of the namespace", func() func() {
				s.register(global, true)
				l := s.held(named)
				return func() { s.failRun(l, "no") }
			}, engine.SideEffects{Handlers: 2}},
		} {
			do := c.prepare()
			e.forget()
			do()
			if told := e.told(); !reflect.DeepEqual(told, c.want) {
				s.Fatalf("told aside of %s = %+v, want %+v", c.what, told, c.want)
			}
			for _, run := range s.listed(engine.RunFilter{Namespace: space, Statuses: []engine.RunStatus{engine.RunPending, engine.RunRunning, engine.RunSleeping}}) {
				s.cancelAnyway(run)
			}
		}
	}},
}

// ringNamespace is the ring of a namespace that a person made or changed.
func ringNamespace(name string) engine.Notification {
	return engine.Notification{Kind: engine.NotifyNamespace, Name: name}
}

func ringSchedule(id engine.ID) engine.Notification {
	return engine.Notification{Kind: engine.NotifySchedule, Namespace: space, Name: id.String()}
}

// replan changes a schedule as a person does who has just read it.
func (s *stage) replan(id engine.ID, change func(*engine.Schedule)) {
	s.Helper()
	p := s.schedule(id)
	change(&p)
	_, err := s.store.UpdateSchedule(s.ctx, engine.ScheduleParams{Schedule: p, Method: "UpdateWorkflowSchedule", By: somebody, AuditID: s.id(), Now: s.now})
	s.must(err, "UpdateSchedule")
}

// unplan deletes a schedule.
func (s *stage) unplan(id engine.ID) {
	s.Helper()
	p := engine.DeleteScheduleParams{Namespace: space, Ref: id.String(), By: somebody, AuditID: s.id(), Now: s.now}
	s.must(s.store.DeleteSchedule(s.ctx, p), "DeleteSchedule")
}

// trigger starts a run of a schedule beside its ticks.
func (s *stage) trigger(id engine.ID) {
	s.Helper()
	_, err := s.store.TriggerSchedule(s.ctx, engine.TriggerScheduleParams{
		Namespace: space, Ref: id.String(), RunID: s.id(), By: somebody, AuditID: s.id(), Now: s.now,
	})
	s.must(err, "TriggerSchedule")
}
