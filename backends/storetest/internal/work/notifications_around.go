package work

import (
	"reflect"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

// change is a change that must be notified.
type change struct {
	what string
	do   func()
}

var NotificationAroundCases = []fixture.Case{
	{Name: "every status change of a worker notifies it", Run: func(s *fixture.F) {
		e := s.Listen()
		for _, c := range []change{
			{"drain", func() {
				s.Must(s.Store.DrainWorker(s.Ctx, engine.DrainWorkerParams{WorkerID: "w1", Now: s.Now}), "DrainWorker")
			}},
			{"goodbye", func() { s.Offline("w1", engine.OfflineDeregistered) }},
			{"forced", func() { s.Offline("w1", engine.OfflineForced) }},
			{"lost", func() { s.Offline("w1", engine.OfflineLost) }},
		} {
			s.Worker("w1")
			e.Forget()
			c.do()
			e.Hears(c.what, notifyWorker("w1"))
			e.Forget()
			s.Worker("w1")
			e.Hears("return after "+c.what, ringRegistered("w1"))
			s.Offline("w1", engine.OfflineForced)
		}
		s.Offline("w1", engine.OfflineForced)
		successor := s.NewWorker("w1")
		successor.InstanceID = "another instance"
		e.Forget()
		s.Register(successor, true)
		e.Hears("takeover of the id", notifyWorker("w1"))
	}},
	{Name: "every change of a schedule notifies it", Run: func(s *fixture.F) {
		e := s.Listen()
		s.Worker("w1")
		plan := s.Plan(overlapping(engine.OverlapBufferOne))
		e.Hears("creation", notifySchedule(plan.ID))
		for _, c := range []change{
			{"update", func() { s.Replan(plan.ID, func(p *engine.Schedule) { p.Queue = "elsewhere" }) }},
			{"pause", func() { s.Replan(plan.ID, func(p *engine.Schedule) { p.Enabled = false }) }},
			{"resumption", func() {
				s.Replan(plan.ID, func(p *engine.Schedule) { p.Enabled, p.Queue = true, fixture.Queue })
			}},
			{"trigger", func() { s.Trigger(plan.ID) }},
			{"tick that waits", func() { s.Fire(s.FireParams(plan.ID, 1)) }},
			{"tick that is skipped", func() { s.Fire(s.FireParams(plan.ID, 1)) }},
			{"tick that was missed", func() {
				p := s.FireParams(plan.ID, 0)
				p.Skipped, p.Next = 3, p.Next.Add(3*time.Minute)
				s.Fire(p)
			}},
			{"end of its run, which starts the tick that waited", func() { s.Finish(s.Claim("w1").Lease, "done") }},
			{"end of its last run", func() { s.Finish(s.Claim("w1").Lease, "done") }},
			{"tick that fires", func() { s.Fire(s.FireParams(plan.ID, 1)) }},
			{"expression that is broken", func() {
				p := s.FireParams(plan.ID, 0)
				p.Broken = "no such zone"
				s.Fire(p)
			}},
			{"deletion", func() { s.Unplan(plan.ID) }},
		} {
			e.Forget()
			c.do()
			e.Hears(c.what, notifySchedule(plan.ID))
		}
	}},
	{Name: "a request that changes a namespace notifies it", Run: func(s *fixture.F) {
		e := s.Listen()
		p := engine.NamespaceParams{
			Namespace: engine.Namespace{Name: "made", Enabled: true}, Method: "CreateNamespace", By: fixture.Somebody,
			AuditID: s.ID(), Now: s.Now,
		}
		_, err := s.Store.CreateNamespace(s.Ctx, p)
		s.Must(err, "CreateNamespace")
		e.Hears("creation", notifyNamespace("made"))
		e.Forget()
		p.Namespace.Description, p.Method, p.AuditID = "changed", "UpdateNamespace", s.ID()
		_, err = s.Store.UpdateNamespace(s.Ctx, p)
		s.Must(err, "UpdateNamespace")
		e.Hears("update", notifyNamespace("made"))
		p.Namespace.Enabled, p.Method, p.AuditID = false, "DisableNamespace", s.ID()
		_, err = s.Store.UpdateNamespace(s.Ctx, p)
		s.Must(err, "DisableNamespace")
		e.Forget()
		p.Namespace.Enabled, p.Method, p.AuditID = true, "EnableNamespace", s.ID()
		_, err = s.Store.UpdateNamespace(s.Ctx, p)
		s.Must(err, "EnableNamespace")
		e.Hears("its being let go on", engine.Notification{Kind: engine.NotifyAll})
	}},
	{Name: "a changed retention sends NotifyAll",
		Run: func(s *fixture.F) {
			e := s.Listen()
			p := engine.NamespaceParams{
				Namespace: engine.Namespace{Name: "made", Enabled: true, Retention: time.Hour},
				Method:    "CreateNamespace",
				By:        fixture.Somebody, AuditID: s.ID(), Now: s.Now,
			}
			_, err := s.Store.CreateNamespace(s.Ctx, p)
			s.Must(err, "CreateNamespace")
			e.Hears("creation", engine.Notification{Kind: engine.NotifyAll})
			for _, change := range []func(*engine.Namespace){
				func(n *engine.Namespace) { n.Retention = time.Minute },
				func(n *engine.Namespace) { n.Keep = map[engine.RunStatus]time.Duration{engine.RunFailed: time.Hour} },
			} {
				e.Forget()
				change(&p.Namespace)
				p.Method, p.AuditID = "UpdateNamespace", s.ID()
				_, err = s.Store.UpdateNamespace(s.Ctx, p)
				s.Must(err, "UpdateNamespace")
				e.Hears("update", engine.Notification{Kind: engine.NotifyAll})
			}
		}},
	{Name: "a change that leaves a schedule equal sends nothing", Run: func(s *fixture.F) {
		e := s.Listen()
		plan, mark := s.Plan(), s.Plan()
		stale := s.FireParams(plan.ID, 1)
		stale.Revision++
		e.Hears("creation", notifySchedule(mark.ID))
		e.Forget()
		fixture.Equal(s, "stale", s.Fire(stale).Stale, true)
		s.Replan(plan.ID, func(*engine.Schedule) {})
		s.Unplan(mark.ID)
		over, enough := fixture.Soon()
		defer enough()
		for { // notifications come in the order of the commits
			select {
			case r := <-e.Events:
				switch r.Notification {
				case notifySchedule(plan.ID):
					s.Fatalf("the schedule was notified, though nothing has changed it")
				case notifySchedule(mark.ID):
					return
				}
			case <-over:
				s.Fatalf("no notification of the deletion within %s", fixture.Patience)
			}
		}
	}},
	{Name: "side effects are reported once, where they happened",
		Run: func(s *fixture.F) {
			e := s.Listen()
			s.Worker("w1")
			s.ChildWorker()
			family := func() engine.Lease {
				l := s.Held()
				grown := s.ClaimChild(s.Child(l, "a", fixture.Closing(engine.CloseCancel)))
				s.Child(grown, "grandchild", fixture.Closing(engine.CloseTerminate))
				s.Child(l, "b", fixture.Closing(engine.CloseTerminate))
				s.Cancel(s.Child(l, "ended", fixture.Closing(engine.CloseCancel)))
				s.Child(l, "orphan", fixture.Closing(engine.CloseAbandon))
				return l
			}
			waiting := func() engine.Schedule {
				plan := s.Plan(overlapping(engine.OverlapBufferOne), func(p *engine.Schedule) { p.Queue = "ticks" })
				s.Fire(s.FireParams(plan.ID, 2))
				return plan
			}
			first := func(plan engine.Schedule) engine.ID { return s.FiredRuns(plan.ID)[0].ID }
			named := func(r *engine.StartRun) { r.OnFailureWorkflow = "mourn" }
			poisoned := make([]engine.ID, 1)
			global := s.NewWorker("undertaker")
			global.Types = []string{engine.GlobalHandler}
			for _, c := range []struct {
				what    string
				prepare func() (do func())
				want    engine.SideEffects
			}{
				{"a result", func() func() {
					l := s.Held()
					return func() { s.Finish(l, "done") }
				}, engine.SideEffects{}},
				{"a failure for which nobody cares", func() func() {
					l := s.Held()
					return func() { s.FailRun(l, "no") }
				}, engine.SideEffects{}},
				{"a child's own end", func() func() {
					l := s.Held()
					child := s.ClaimChild(s.Child(l, "c", fixture.Closing(engine.CloseCancel)))
					return func() { s.Finish(child, "done") }
				}, engine.SideEffects{}},
				{"a parent's end", func() func() {
					l := family()
					return func() { s.Finish(l, "done") }
				}, engine.SideEffects{Stopped: 3}},
				{"a parent's end, repeated", func() func() {
					l := family()
					s.Finish(l, "done")
					return func() { s.Finish(l, "done") }
				}, engine.SideEffects{}},
				{"a parent's end by a lease that is over", func() func() {
					l := family()
					s.Lose("w1")
					return func() { s.Lost(s.TryFinish(l, "done"), engine.RunPending, "CompleteRun") }
				}, engine.SideEffects{}},
				{"a parent's end by a person", func() func() {
					l := family()
					return func() { s.Cancel(l.RunID) }
				}, engine.SideEffects{Stopped: 3}},
				{"a parent's deadline", func() func() {
					l := s.Held(func(r *engine.StartRun) { r.DeadlineAt = s.Now.Add(time.Minute) })
					s.Child(l, "c", fixture.Closing(engine.CloseCancel))
					s.Pass(time.Minute)
					return func() { fixture.Equal(s, "timed out", len(s.Expire().TimedOut), 1) }
				}, engine.SideEffects{Stopped: 1}},
				{"a failure with a handler", func() func() {
					l := s.Held(named)
					return func() { s.FailRun(l, "no") }
				}, engine.SideEffects{Handlers: 1}},
				{"a lost worker", func() func() { s.Held(); return func() { s.Lose("w1") } }, engine.SideEffects{}},
				{"one lost worker too many", func() func() {
					poisoned[0] = s.HeldAfterLosses(engine.MaxLeaseLosses - 1).RunID
					return func() { s.Lose("w1") }
				}, engine.SideEffects{Failed: poisoned}},
				{"the end of a run for which a tick waits", func() func() {
					run := first(waiting())
					return func() { s.Cancel(run) }
				}, engine.SideEffects{Ticks: 1}},
				{"a resumed schedule", func() func() {
					plan := waiting()
					s.SwitchSchedule(plan.ID, false)
					s.Cancel(first(plan))
					return func() { s.SwitchSchedule(plan.ID, true) }
				}, engine.SideEffects{Ticks: 1}},
				{"an enabled namespace", func() func() {
					plan := waiting()
					s.Enable(false)
					s.Cancel(first(plan))
					return func() { s.Enable(true) }
				}, engine.SideEffects{Ticks: 1}},
				{"a failure with a handler of its own and one of the namespace", func() func() {
					s.Register(global, true)
					l := s.Held(named)
					return func() { s.FailRun(l, "no") }
				}, engine.SideEffects{Handlers: 2}},
			} {
				do := c.prepare()
				e.Forget()
				do()
				if told := e.Told(); !reflect.DeepEqual(told, c.want) {
					s.Fatalf("side effects of %s = %+v, want %+v", c.what, told, c.want)
				}
				for _, run := range s.Listed(engine.RunFilter{
					Namespace: fixture.Space, Statuses: []engine.RunStatus{
						engine.RunPending, engine.RunRunning, engine.RunSleeping}}) {
					s.CancelAnyway(run)
				}
			}
		}},
}

// notifyNamespace returns the notification for a namespace that a person made or changed.
func notifyNamespace(name string) engine.Notification {
	return engine.Notification{Kind: engine.NotifyNamespace, Name: name}
}

func notifySchedule(id engine.ID) engine.Notification {
	return engine.Notification{Kind: engine.NotifySchedule, Namespace: fixture.Space, Name: id.String()}
}
