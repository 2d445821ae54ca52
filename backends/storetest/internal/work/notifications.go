package work

import (
	"context"
	"fmt"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

func notifyQueue(name string) engine.Notification { return fixture.NotifiedQueue(fixture.Space, name) }

func notifySlot(name string) engine.Notification {
	return engine.Notification{Kind: engine.NotifySlot, Namespace: fixture.Space, Name: name}
}

func notifyRun(id engine.ID) engine.Notification {
	return engine.Notification{Kind: engine.NotifyRun, ID: id}
}

func notifyEnd(id engine.ID) engine.Notification {
	return engine.Notification{Kind: engine.NotifyEnd, ID: id}
}

func notifyWorker(id string) engine.Notification {
	return engine.Notification{Kind: engine.NotifyWorker, Name: id}
}

func ringRegistered(id string) engine.Notification {
	return engine.Notification{Kind: engine.NotifyWorker, Name: id, Registered: true}
}

// deed is something that is done to a held run.
type deed struct {
	what string
	do   func(l engine.Lease)
}

var NotificationCases = []fixture.Case{
	{Name: "a start notifies its queue, even if due later", Run: func(s *fixture.F) {
		e := s.Listen()
		s.Start()
		e.Hears("start", notifyQueue(fixture.Queue))
		s.Start(fixture.DueAt(s.Now.Add(time.Hour)), fixture.InQueue("later"))
		e.Hears("delayed start", notifyQueue("later"))
		s.StartAll(s.NewRun(fixture.InQueue("a")), s.NewRun(fixture.InQueue("b")), s.NewRun(fixture.InQueue("a")))
		e.Hears("batch", notifyQueue("a"), notifyQueue("b"))
	}},
	{Name: "a claim and every step notify the run", Run: func(s *fixture.F) {
		e := s.Listen()
		l := s.Held()
		e.Hears("claim", notifyRun(l.RunID))
		for _, d := range []deed{
			{"begin", func(l engine.Lease) { s.Begin(l, "pay") }},
			{"complete", func(l engine.Lease) { s.Complete(l, "ship", "x") }},
			{"held failure", func(l engine.Lease) { s.Fail(l, "a", "no", fixture.Holding) }},
			{"final failure", func(l engine.Lease) { s.Fail(l, "b", "no", fixture.ForGood) }},
			{"held sleep", func(l engine.Lease) { s.Sleep(l, "nap", time.Hour, fixture.Held) }},
		} {
			e.Forget()
			d.do(l)
			e.Hears(d.what, notifyRun(l.RunID))
		}
	}},
	{Name: "what a held run waits for notifies its worker", Run: func(s *fixture.F) {
		l := s.Held()
		s.ChildWorker()
		s.Await(l, "approval", "go", fixture.HoldingOn)
		s.Await(l, "other", "stop", fixture.HoldingOn)
		child := s.ClaimChild(s.Child(l, "child"))
		e := s.Listen()
		wait := func(step string) engine.Notification {
			return engine.Notification{Kind: engine.NotifyWait, Name: "w1", ID: l.RunID, Step: step}
		}
		s.Signal(l.RunID, "go", "!")
		e.Hears("signal", wait("approval"))
		e.Forget()
		s.Finish(child, "done")
		e.Hears("child", wait("child"))
		s.Release(l, true)
		e.Forget()
		s.Signal(l.RunID, "stop", "!")
		e.Hears("signal to a parked run", notifyRun(l.RunID))
	}},
	{Name: "freeing a run notifies run, queue and slot", Run: func(s *fixture.F) {
		e := s.Listen()
		s.Worker("w1")
		for _, d := range []deed{
			{"release", func(l engine.Lease) { s.Release(l, false) }},
			{"sleep", func(l engine.Lease) { s.Sleep(l, "nap", time.Hour) }},
			{"retry", func(l engine.Lease) { s.Fail(l, "pay", "no") }},
			{"run's retry", func(l engine.Lease) { s.FailRun(l, "no") }},
			{"beat", func(engine.Lease) { s.Heartbeat("w1", func(p *engine.HeartbeatParams) { p.Whole = true }) }},
			{"forced", func(engine.Lease) { s.Offline("w1", engine.OfflineForced) }},
			{"lost", func(engine.Lease) { s.Offline("w1", engine.OfflineLost) }},
		} {
			s.Register(s.NewWorker("w1"), true)
			l := s.HeldNext(fixture.WithPolicy(engine.RetryPolicy{}))
			e.Forget()
			d.do(l)
			e.Hears(d.what, notifyRun(l.RunID), notifyQueue(fixture.Queue), notifySlot(fixture.Queue))
			s.Cancel(l.RunID)
		}
	}},
	{Name: "ending a held run notifies run, end and slot", Run: func(s *fixture.F) {
		e := s.Listen()
		s.Worker("w1")
		for _, d := range []deed{
			{"complete", func(l engine.Lease) { s.Finish(l, "done") }},
			{"fail", func(l engine.Lease) { s.FailRun(l, "no") }},
			{"cancel", func(l engine.Lease) { s.Cancel(l.RunID) }},
			{"terminate", func(l engine.Lease) { _, _ = fixture.EndVerbs[1].End(s, l.RunID, "") }},
		} {
			l := s.HeldNext()
			e.Forget()
			d.do(l)
			e.Hears(d.what, notifyRun(l.RunID), notifyEnd(l.RunID), notifySlot(fixture.Queue))
		}
	}},
	{Name: "taking a lease or work notifies the worker", Run: func(s *fixture.F) {
		e := s.Listen()
		for _, d := range []deed{
			{"cancel", func(l engine.Lease) { s.Cancel(l.RunID) }},
			{"drain", func(engine.Lease) {
				s.Must(s.Store.DrainWorker(s.Ctx, engine.DrainWorkerParams{WorkerID: "w1", Now: s.Now}), "DrainWorker")
			}},
			{"forced", func(engine.Lease) { s.Offline("w1", engine.OfflineForced) }},
			{"beat", func(engine.Lease) { s.Heartbeat("w1", func(p *engine.HeartbeatParams) { p.Whole = true }) }},
			{"timeout", func(engine.Lease) { s.TimeOut(s.Now.Add(time.Hour)) }},
			{"grace", func(l engine.Lease) { s.CancelWithin(l.RunID, time.Minute) }},
			{"pause", func(l engine.Lease) { s.Pause(l.RunID) }},
			{"ask to pause", func(l engine.Lease) { s.AskPause(l.RunID) }},
		} {
			s.Register(s.NewWorker("w1"), true)
			l := s.HeldNext()
			s.Begin(l, "pay")
			e.Forget()
			d.do(l)
			e.Hears(d.what, notifyWorker("w1"))
			s.Cancel(l.RunID)
			s.Offline("w1", engine.OfflineForced)
		}

		s.Register(s.NewWorker("w1"), true)
		s.HeldNext(fixture.WithTimeouts(engine.Timeouts{Heartbeat: time.Minute}))
		s.Offline("w1", engine.OfflineLost)
		e.Forget()
		s.FreeLost(s.Now.Add(time.Hour))
		e.Hears("heartbeat timeout", notifyWorker("w1"))

		s.Register(s.NewWorker("w1"), true)
		s.HeldNext(func(r *engine.StartRun) { r.DeadlineAt = s.Now.Add(time.Minute) })
		e.Forget()
		s.Pass(time.Minute)
		s.Expire()
		e.Hears("deadline", notifyWorker("w1"))

		s.ChildWorker()
		parent := s.HeldNext()
		child := s.ClaimChild(s.Child(parent, "c", fixture.Closing(engine.CloseCancel)))
		e.Forget()
		s.Finish(parent, "done")
		e.Hears("end of the parent", notifyEnd(child.RunID), notifyWorker("nurse"))
	}},
	{Name: "new timeouts, deadlines and schedules send NotifyTimer", Run: func(s *fixture.F) {
		e := s.Listen()
		s.Worker("w1")
		l := s.HeldNext()
		plan := s.Plan()
		timer := engine.Notification{Kind: engine.NotifyTimer}
		for _, c := range []change{
			{"attempt", func() { s.Begin(l, "pay") }},
			{"deadline", func() {
				s.Start(fixture.InQueue("other"), func(r *engine.StartRun) { r.DeadlineAt = s.Now.Add(time.Minute) })
			}},
			{"deadline of a child", func() {
				s.Child(l, "c", func(r *engine.StartRun) { r.DeadlineAt = s.Now.Add(time.Minute) })
			}},
			{"grace", func() { s.CancelWithin(l.RunID, time.Minute) }},
			{"deadline of a run that is imported and resumed", func() {
				run := s.NewRun(func(r *engine.StartRun) {
					r.Status, r.Attempts, r.DeadlineAt = engine.RunPending, 1, s.Now.Add(time.Minute)
				})
				p := engine.ImportRunsParams{Namespace: fixture.Space, By: fixture.Somebody, AuditID: s.ID(),
					Now: s.Now, Runs: []engine.ImportedRun{{Run: run.Run}}}
				_, err := s.Store.ImportRuns(s.Ctx, p)
				s.Must(err, "ImportRuns")
				s.Resume(run.ID)
			}},
			{"schedule", func() { s.Plan() }},
			{"update of a schedule", func() { s.Replan(plan.ID, func(p *engine.Schedule) { p.Queue = "elsewhere" }) }},
		} {
			e.Forget()
			c.do()
			e.Hears(c.what, timer)
		}
	}},
	{Name: "resumed, retried and child runs notify their queue", Run: func(s *fixture.F) {
		e := s.Listen()
		s.Worker("w1")
		paused, failed := s.Start(fixture.InQueue("other")), s.Failed("a")
		s.Pause(paused)
		parent := s.Held()
		for _, c := range []struct {
			change
			queue string
		}{
			{change{"resumption", func() { s.Resume(paused) }}, "other"},
			{change{"retry", func() { s.Retry(failed) }}, fixture.Queue},
			{change{"child", func() { s.Child(parent, "c", fixture.InQueue("other")) }}, "other"},
		} {
			e.Forget()
			c.do()
			e.Hears(c.what, notifyQueue(c.queue))
		}
	}},
	{Name: "every registration notifies its worker", Run: func(s *fixture.F) {
		e := s.Listen()
		w := s.NewWorker("w1")
		for range 2 {
			e.Forget()
			s.Register(w, true)
			e.Hears("registration", ringRegistered("w1"))
		}
	}},
	{Name: "ending a waiting run notifies the run and its end", Run: func(s *fixture.F) {
		e := s.Listen()
		id := s.Start()
		e.Forget()
		s.Cancel(id)
		e.Hears("cancel", notifyRun(id), notifyEnd(id))
	}},
	{Name: "a notified listener sees the change", Run: func(s *fixture.F) {
		e := s.Listen()
		s.Worker("w1")
		for i := range 200 {
			own := fmt.Sprintf("queue-%d", i) // a late notification for the last one must not be taken for this one
			r := s.NewRun(fixture.InQueue(own))
			seen := make(chan error, 1)
			go func() { // reads as soon as it is notified, while the writer may still be returning
				for heard := range e.Events {
					if heard.Notification == notifyQueue(own) {
						_, err := s.Store.GetRun(s.Ctx, fixture.Space, r.ID)
						seen <- err
						return
					}
				}
			}()
			s.Started(r)
			over, enough := fixture.Soon()
			select {
			case err := <-seen:
				enough()
				s.Must(err, "GetRun at the notification")
			case <-over:
				s.Fatalf("no notification within %s", fixture.Patience)
			}
		}
	}},
	{Name: "all listeners are notified", Run: func(s *fixture.F) {
		first, second := s.Listen(), s.Listen()
		id := s.Start()
		s.Cancel(id)
		first.Hears("the first", notifyRun(id))
		second.Hears("the second", notifyRun(id))
	}},
	{Name: "Listen ends with its context, writes continue", Run: func(s *fixture.F) {
		ctx, stop := context.WithCancel(s.Ctx)
		ended := make(chan error, 1)
		go func() { ended <- s.Store.Listen(ctx, func(engine.Notification) {}, nil) }()
		s.Start()
		stop()
		over, enough := fixture.Soon()
		defer enough()
		select {
		case <-ended:
		case <-over:
			s.Fatalf("Listen goes on after its context ended")
		}
		s.Start()
	}},
}
