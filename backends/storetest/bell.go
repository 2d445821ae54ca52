package storetest

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// patience is how long a ring may take on a machine that has nothing else to do. It is waited for whole only when a store forgets to ring.
const patience = 3 * time.Second

// soon is over when what has not happened by then is taken for forgotten, or with enough. It is a number of pauses and no time: of these a machine
// that is slow, or that stood still, comes to fewer meanwhile, and so does the store on it.
func soon() (over <-chan struct{}, enough func()) {
	const pauses = 300
	done, stop := make(chan struct{}), make(chan struct{})
	go func() {
		tick := time.NewTicker(patience / pauses) // which drops the ticks that nobody could take
		defer tick.Stop()
		for range pauses {
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
		close(done)
	}()
	return done, sync.OnceFunc(func() { close(stop) })
}

// event is what a listener hears: a notification, or an outcome.
type event struct {
	engine.Notification
	ending  *engine.Ending
	effects *engine.SideEffects
}

// ear listens to a store and remembers the events.
type ear struct {
	s     *stage
	rings chan event
}

func (e *ear) hear(one event) {
	select {
	case e.rings <- one:
	default: // full: nobody looks any more
	}
}

// RunEnded and SideEffects make an ear engine.Outcomes.
func (e *ear) RunEnded(run engine.ID, ending *engine.Ending) {
	e.hear(event{Notification: ringEnd(run), ending: ending})
}

func (e *ear) SideEffects(effects *engine.SideEffects) { e.hear(event{effects: effects}) }

// listen starts an ear and waits until it hears.
func (s *stage) listen() *ear {
	s.Helper()
	ctx, stop := context.WithCancel(s.ctx)
	e := &ear{s: s, rings: make(chan event, 10_000)}
	ended := make(chan error, 1)
	go func() {
		ended <- s.store.Listen(ctx, func(n engine.Notification) { e.hear(event{Notification: n}) }, e)
	}()
	s.Cleanup(func() {
		stop()
		<-ended
	})
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	const starts = int(patience / (5 * time.Millisecond)) // a start may take as long as all of these do elsewhere
	for range starts {
		s.start(inSpace("probe"))
		select {
		case r := <-e.rings:
			if r.Namespace == "probe" {
				return e
			}
		case <-again.C:
		case err := <-ended:
			ended <- err
			s.Fatalf("Listen ended: %v", err)
		}
	}
	s.Fatalf("no ring of %d starts", starts)
	panic("unreachable")
}

// hears fails the case unless each of the rings comes, in any order, among others.
func (e *ear) hears(what string, want ...engine.Notification) {
	e.s.Helper()
	left := map[engine.Notification]bool{}
	for _, r := range want {
		left[r] = true
	}
	over, enough := soon()
	defer enough()
	for len(left) > 0 {
		select {
		case r := <-e.rings:
			e.holds(r)
			if r.effects == nil {
				delete(left, r.Notification)
			}
		case <-over:
			for r := range left {
				e.s.Fatalf("%s: no ring %+v within %s", what, r, patience)
			}
		}
	}
}

// holds checks that an ending is the run's.
func (e *ear) holds(r event) {
	if r.ending == nil {
		return
	}
	run := e.s.run(r.ID)
	is := engine.Ending{Namespace: run.Namespace, Status: run.Status, Output: run.Output, Error: run.Error, ContinuedAs: run.ContinuedAs, FinishedAt: run.FinishedAt}
	if !reflect.DeepEqual(*r.ending, is) {
		e.s.Fatalf("it was told that run %s ended so: %+v, but it is %+v", r.ID, *r.ending, is)
	}
}

// told is all side effects since the events were forgotten.
func (e *ear) told() engine.SideEffects {
	e.s.Helper()
	var sum engine.SideEffects
	for range 2 { // rings that come together come in any order, and those of the second come after all from before
		mark := ringQueueOf("probe", e.s.id().String())
		e.s.start(inSpace("probe"), inQueue(mark.Name))
		for over, enough := soon(); ; {
			var r event
			select {
			case r = <-e.rings:
			case <-over:
				e.s.Fatalf("no ring of a start within %s", patience)
			}
			if r.effects != nil {
				sum.Add(r.effects)
			} else if r.Notification == mark {
				enough()
				break
			}
		}
	}
	return sum
}

// forget drops the rings heard so far.
func (e *ear) forget() {
	e.s.Helper()
	for range 2 { // rings that come together come in any order, and those of the second start with none from before
		mark := e.s.id().String()
		e.s.start(inSpace("probe"), inQueue(mark))
		e.hears("a start", engine.Notification{Kind: engine.NotifyQueue, Namespace: "probe", Name: mark})
	}
	for {
		select {
		case <-e.rings:
		default:
			return
		}
	}
}

func ringQueue(name string) engine.Notification { return ringQueueOf(space, name) }

func ringQueueOf(namespace, name string) engine.Notification {
	return engine.Notification{Kind: engine.NotifyQueue, Namespace: namespace, Name: name}
}

func ringSlot(name string) engine.Notification {
	return engine.Notification{Kind: engine.NotifySlot, Namespace: space, Name: name}
}
func ringRun(id engine.ID) engine.Notification {
	return engine.Notification{Kind: engine.NotifyRun, ID: id}
}
func ringEnd(id engine.ID) engine.Notification {
	return engine.Notification{Kind: engine.NotifyEnd, ID: id}
}
func ringWorker(id string) engine.Notification {
	return engine.Notification{Kind: engine.NotifyWorker, Name: id}
}
func ringRegistered(id string) engine.Notification {
	return engine.Notification{Kind: engine.NotifyWorker, Name: id, Registered: true}
}

// deed is something done to a run that is held.
type deed struct {
	what string
	do   func(l engine.Lease)
}

var bellCases = []testCase{
	{"a start rings its queue, also when it is due later", func(s *stage) {
		e := s.listen()
		s.start()
		e.hears("start", ringQueue(queue))
		s.start(dueAt(s.now.Add(time.Hour)), inQueue("later"))
		e.hears("delayed start", ringQueue("later"))
		s.startAll(s.newRun(inQueue("a")), s.newRun(inQueue("b")), s.newRun(inQueue("a")))
		e.hears("batch", ringQueue("a"), ringQueue("b"))
	}},
	{"a claim and every step ring the run", func(s *stage) {
		e := s.listen()
		l := s.held()
		e.hears("claim", ringRun(l.RunID))
		for _, d := range []deed{
			{"begin", func(l engine.Lease) { s.begin(l, "pay") }},
			{"complete", func(l engine.Lease) { s.complete(l, "ship", "x") }},
			{"held failure", func(l engine.Lease) { s.fail(l, "a", "no", holding) }},
			{"final failure", func(l engine.Lease) { s.fail(l, "b", "no", forGood) }},
			{"held sleep", func(l engine.Lease) { s.sleep(l, "nap", time.Hour, held) }},
		} {
			e.forget()
			d.do(l)
			e.hears(d.what, ringRun(l.RunID))
		}
	}},
	{"whatever ends a lease and leaves the run waiting rings run, queue and slot", func(s *stage) {
		e := s.listen()
		s.worker("w1")
		for _, d := range []deed{
			{"release", func(l engine.Lease) { s.release(l, false) }},
			{"sleep", func(l engine.Lease) { s.sleep(l, "nap", time.Hour) }},
			{"retry", func(l engine.Lease) { s.fail(l, "pay", "no") }},
			{"run's retry", func(l engine.Lease) { s.failRun(l, "no") }},
			{"beat", func(engine.Lease) { s.heartbeat("w1", func(p *engine.HeartbeatParams) { p.Whole = true }) }},
			{"forced", func(engine.Lease) { s.offline("w1", engine.OfflineForced) }},
			{"lost", func(engine.Lease) { s.offline("w1", engine.OfflineLost) }},
		} {
			s.register(s.newWorker("w1"), true)
			l := s.heldNext(withPolicy(engine.RetryPolicy{}))
			e.forget()
			d.do(l)
			e.hears(d.what, ringRun(l.RunID), ringQueue(queue), ringSlot(queue))
			s.cancel(l.RunID)
		}
	}},
	{"whatever ends a run that is held rings run, end and slot", func(s *stage) {
		e := s.listen()
		s.worker("w1")
		for _, d := range []deed{
			{"complete", func(l engine.Lease) { s.finish(l, "done") }},
			{"fail", func(l engine.Lease) { s.failRun(l, "no") }},
			{"cancel", func(l engine.Lease) { s.cancel(l.RunID) }},
			{"terminate", func(l engine.Lease) { _, _ = endVerbs[1].end(s, l.RunID, "") }},
		} {
			l := s.heldNext()
			e.forget()
			d.do(l)
			e.hears(d.what, ringRun(l.RunID), ringEnd(l.RunID), ringSlot(queue))
		}
	}},
	{"whatever takes a lease or work from a worker rings the worker", func(s *stage) {
		e := s.listen()
		for _, d := range []deed{
			{"cancel", func(l engine.Lease) { s.cancel(l.RunID) }},
			{"drain", func(engine.Lease) {
				s.must(s.store.DrainWorker(s.ctx, engine.DrainWorkerParams{WorkerID: "w1", Now: s.now}), "DrainWorker")
			}},
			{"forced", func(engine.Lease) { s.offline("w1", engine.OfflineForced) }},
			{"beat", func(engine.Lease) { s.heartbeat("w1", func(p *engine.HeartbeatParams) { p.Whole = true }) }},
			{"timeout", func(engine.Lease) { s.timeOut(s.now.Add(time.Hour)) }},
			{"grace", func(l engine.Lease) { s.cancelWithin(l.RunID, time.Minute) }},
			{"pause", func(l engine.Lease) { s.pause(l.RunID) }},
		} {
			s.register(s.newWorker("w1"), true)
			l := s.heldNext()
			s.begin(l, "pay")
			e.forget()
			d.do(l)
			e.hears(d.what, ringWorker("w1"))
			s.cancel(l.RunID)
			s.offline("w1", engine.OfflineForced)
		}

		s.register(s.newWorker("w1"), true)
		s.heldNext(withTimeouts(engine.Timeouts{Heartbeat: time.Minute}))
		s.offline("w1", engine.OfflineLost)
		e.forget()
		s.freeLost(s.now.Add(time.Hour))
		e.hears("heartbeat timeout", ringWorker("w1"))

		s.register(s.newWorker("w1"), true)
		s.heldNext(func(r *engine.StartRun) { r.DeadlineAt = s.now.Add(time.Minute) })
		e.forget()
		s.pass(time.Minute)
		s.expire()
		e.hears("deadline", ringWorker("w1"))

		s.childWorker()
		parent := s.heldNext()
		child := s.claimChild(s.child(parent, "c", closing(engine.CloseCancel)))
		e.forget()
		s.finish(parent, "done")
		e.hears("end of the parent", ringEnd(child.RunID), ringWorker("nurse"))
	}},
	{"whatever there is to wait for from now on rings the timer", func(s *stage) {
		e := s.listen()
		s.worker("w1")
		l := s.heldNext()
		plan := s.plan()
		timer := engine.Notification{Kind: engine.NotifyTimer}
		for _, c := range []change{
			{"attempt", func() { s.begin(l, "pay") }},
			{"deadline", func() { s.start(inQueue("other"), func(r *engine.StartRun) { r.DeadlineAt = s.now.Add(time.Minute) }) }},
			{"deadline of a child", func() { s.child(l, "c", func(r *engine.StartRun) { r.DeadlineAt = s.now.Add(time.Minute) }) }},
			{"grace", func() { s.cancelWithin(l.RunID, time.Minute) }},
			{"deadline of a run that is imported", func() {
				run := s.newRun(func(r *engine.StartRun) {
					r.Status, r.Attempts, r.DeadlineAt = engine.RunPending, 1, s.now.Add(time.Minute)
				})
				p := engine.ImportRunsParams{Namespace: space, By: somebody, AuditID: s.id(), Now: s.now, Runs: []engine.ImportedRun{{Run: run.Run}}}
				_, err := s.store.ImportRuns(s.ctx, p)
				s.must(err, "ImportRuns")
			}},
			{"schedule", func() { s.plan() }},
			{"update of a schedule", func() { s.replan(plan.ID, func(p *engine.Schedule) { p.Queue = "elsewhere" }) }},
		} {
			e.forget()
			c.do()
			e.hears(c.what, timer)
		}
	}},
	{"a run that is resumed, tried again or started by another rings its queue", func(s *stage) {
		e := s.listen()
		s.worker("w1")
		paused, failed := s.start(inQueue("other")), s.failed("a")
		s.pause(paused)
		parent := s.held()
		for _, c := range []struct {
			change
			queue string
		}{
			{change{"resumption", func() { s.resume(paused) }}, "other"},
			{change{"retry", func() { s.retry(failed) }}, queue},
			{change{"child", func() { s.child(parent, "c", inQueue("other")) }}, "other"},
		} {
			e.forget()
			c.do()
			e.hears(c.what, ringQueue(c.queue))
		}
	}},
	{"a registration rings its worker, also when it is repeated", func(s *stage) {
		e := s.listen()
		w := s.newWorker("w1")
		for range 2 {
			e.forget()
			s.register(w, true)
			e.hears("registration", ringRegistered("w1"))
		}
	}},
	{"ending a run that waits rings the run and its end", func(s *stage) {
		e := s.listen()
		id := s.start()
		e.forget()
		s.cancel(id)
		e.hears("cancel", ringRun(id), ringEnd(id))
	}},
	{"who is rung sees the change", func(s *stage) {
		e := s.listen()
		s.worker("w1")
		for i := range 200 {
			own := fmt.Sprintf("queue-%d", i) // a late ring for the last one must not be taken for this one
			r := s.newRun(inQueue(own))
			seen := make(chan error, 1)
			go func() { // reads as soon as it hears, while the writer may still be on its way back
				for ring := range e.rings {
					if ring.Notification == ringQueue(own) {
						_, err := s.store.GetRun(s.ctx, space, r.ID)
						seen <- err
						return
					}
				}
			}()
			s.started(r)
			over, enough := soon()
			select {
			case err := <-seen:
				enough()
				s.must(err, "GetRun at the ring")
			case <-over:
				s.Fatalf("no ring within %s", patience)
			}
		}
	}},
	{"everybody who listens is rung", func(s *stage) {
		first, second := s.listen(), s.listen()
		id := s.start()
		s.cancel(id)
		first.hears("the first", ringRun(id))
		second.hears("the second", ringRun(id))
	}},
	{"listening ends with its context, and writes go on", func(s *stage) {
		ctx, stop := context.WithCancel(s.ctx)
		ended := make(chan error, 1)
		go func() { ended <- s.store.Listen(ctx, func(engine.Notification) {}, nil) }()
		s.start()
		stop()
		over, enough := soon()
		defer enough()
		select {
		case <-ended:
		case <-over:
			s.Fatalf("Listen goes on after its context ended")
		}
		s.start()
	}},
}

// timeOut sweeps the step timeouts of this moment.
func (s *stage) timeOut(now time.Time) engine.TimedOut {
	s.Helper()
	out, err := s.store.TimeoutSteps(s.ctx, engine.TimeoutStepsParams{Now: now, Limit: 100, Roll: 0.5})
	s.must(err, "TimeoutSteps")
	return out
}

// freeLost comes for the runs whose lost worker's time is over at that moment.
func (s *stage) freeLost(now time.Time) engine.Freed {
	s.Helper()
	freed, err := s.store.FreeLost(s.ctx, now)
	s.must(err, "FreeLost")
	return freed
}
