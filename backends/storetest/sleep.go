package storetest

import (
	"time"

	"github.com/kagzi/kagzi/engine"
)

var sleepCases = []testCase{
	{"a sleep parks the run until its timer and frees the worker", func(s *stage) {
		l := s.held()
		wake := s.now.Add(1500 * time.Millisecond)
		s.sleep(l, "nap", 1500*time.Millisecond)
		run := s.status(l.RunID, engine.RunSleeping)
		s.sameTime("available at", run.AvailableAt, wake)
		equal(s, "waiting for", run.WaitingFor, "timer:nap")
		equal(s, "worker", run.WorkerID, "")
		equal(s, "attempts", run.Attempts, 1)
		equal(s, "leases", len(s.heldBy("w1")), 0)
		step := s.step(l.RunID, "nap")
		equal(s, "kind", step.Kind, engine.StepSleep)
		equal(s, "status", step.Status, engine.StepRunning)
		equal(s, "duration", step.Duration, 1500*time.Millisecond)
		s.sameTime("wake at", step.WakeAt, wake)
		s.sameTime("started at", step.StartedAt, s.now)
		s.sameTime("timeout at", step.TimeoutAt, time.Time{})
	}},
	{"a sleep ends at its millisecond", func(s *stage) {
		for _, d := range []time.Duration{time.Millisecond, 500 * time.Millisecond, 1900 * time.Millisecond, engine.MaxDelay} {
			l := s.heldAgain()
			s.sleep(l, "nap", d)
			wake := s.now.Add(d)
			s.pass(d - time.Microsecond)
			s.sameTime("next due", s.claimNothing("w1").NextDue, wake)
			s.pass(time.Microsecond)
			task := s.claim("w1")
			equal(s, "woken run", task.Run.ID, l.RunID)
			s.finish(task.Lease, "done")
		}
	}},
	{"a woken run finds its timer over, at the moment that it stood for", func(s *stage) {
		l := s.held()
		s.complete(l, "pay", "paid")
		s.sleep(l, "nap", time.Second)
		wake := s.now.Add(time.Second)
		s.pass(time.Hour)
		task := s.claim("w1")
		equal(s, "status", task.Run.Status, engine.RunRunning)
		equal(s, "waiting for", task.Run.WaitingFor, "")
		equal(s, "attempts", task.Run.Attempts, 1)
		step := task.History[1]
		equal(s, "status of the timer", step.Status, engine.StepCompleted)
		s.sameTime("finished at", step.FinishedAt, wake)
		equal(s, "attempts of the timer", len(s.attempts(l.RunID, "nap")), 1)
		s.sameStep(s.step(l.RunID, "nap"), step)
		begun, err := s.tryBegin(task.Lease, "nap", asSleep)
		s.must(err, "BeginStep of a timer that is over")
		equal(s, "execute", begun.Execute, false)
	}},
	{"a sleep until a moment wakes at that moment", func(s *stage) {
		l := s.held()
		moment := s.now.Add(42*time.Minute + 7*time.Microsecond)
		s.sleep(l, "nap", 0, until(moment))
		s.sameTime("available at", s.status(l.RunID, engine.RunSleeping).AvailableAt, moment)
		step := s.step(l.RunID, "nap")
		s.sameTime("wake at", step.WakeAt, moment)
		equal(s, "duration", step.Duration, 0)
	}},
	{"a sleep until a moment that has passed is due at once", func(s *stage) {
		l := s.held()
		moment := s.now.Add(-time.Minute)
		s.sleep(l, "nap", 0, until(moment))
		task := s.claim("w1")
		s.sameTime("finished at", task.History[0].FinishedAt, moment)
	}},
	{"a sleep until long ago makes a run due from now on, so that it passes nobody", func(s *stage) {
		l := s.held()
		before := s.start()
		urgent := s.start(func(r *engine.StartRun) { r.Priority = 50 })
		s.pass(time.Second)
		s.sleep(l, "nap", 0, until(s.now.Add(-24*time.Hour)))
		s.sameTime("available at", s.status(l.RunID, engine.RunSleeping).AvailableAt, s.now)
		s.sameTime("wake at", s.step(l.RunID, "nap").WakeAt, s.now.Add(-24*time.Hour))
		s.sameIDs("claimed", s.claimedIDs("w1", 3), []engine.ID{urgent, before, l.RunID})
	}},
	{"a begun timer starts when it is set", func(s *stage) {
		l := s.held()
		begun := s.begin(l, "nap", asSleep)
		s.sameTime("wake at", begun.WakeAt, time.Time{})
		s.pass(time.Minute)
		s.sleep(l, "nap", time.Second)
		step := s.step(l.RunID, "nap")
		equal(s, "attempt", step.ID, begun.ID)
		s.sameTime("started at", step.StartedAt, s.now)
		s.sameTime("wake at", step.WakeAt, s.now.Add(time.Second))
	}},
	{"a timer that was begun but never set does not end by itself", func(s *stage) {
		l := s.held()
		s.begin(l, "nap", asSleep)
		s.lose("w1")
		task := s.claim("w1")
		equal(s, "status of the timer", s.step(l.RunID, "nap").Status, engine.StepRunning)
		s.sleep(task.Lease, "nap", 24*time.Hour)
		s.sameTime("available at", s.status(l.RunID, engine.RunSleeping).AvailableAt, s.now.Add(24*time.Hour))
	}},
	{"a timer that was begun but never set does not decide when a parked run is due", func(s *stage) {
		l := s.held()
		s.begin(l, "nap", asSleep)
		v := s.fail(l, "pay", "no")
		s.sameTime("available at", s.status(l.RunID, engine.RunPending).AvailableAt, v.RetryAt)
	}},
	{"a repeated sleep is quiet, also when it is over", func(s *stage) {
		l := s.held()
		p := engine.SleepParams{Lease: l, Step: named("nap"), ID: s.id(), Duration: time.Minute, Now: s.now}
		s.must(s.store.Sleep(s.ctx, p), "Sleep")
		asleep, timer := s.run(l.RunID), s.step(l.RunID, "nap")
		s.pass(time.Second)
		p.Now = s.now
		s.must(s.store.Sleep(s.ctx, p), "Sleep repeated while SLEEPING")
		s.sameRun(s.run(l.RunID), asleep)
		s.sameStep(s.step(l.RunID, "nap"), timer)

		s.pass(time.Minute)
		next := s.claim("w1").Lease
		s.must(s.store.Sleep(s.ctx, p), "Sleep repeated after the next claim")
		s.status(l.RunID, engine.RunRunning)
		s.complete(next, "pay", "paid")
		s.finish(next, "done")
		s.must(s.store.Sleep(s.ctx, p), "Sleep repeated after the end")
	}},
	{"another sleep by the same lease is a conflict", func(s *stage) {
		l := s.held()
		s.sleep(l, "nap", time.Minute)
		s.refused(s.trySleep(l, "nap", time.Hour), engine.ErrConflict, "another length")
		s.refused(s.trySleep(l, "nap", 0, until(s.now.Add(time.Hour))), engine.ErrConflict, "a moment instead of a length")
		s.sameTime("wake at", s.step(l.RunID, "nap").WakeAt, s.now.Add(time.Minute))

		l = s.held()
		moment := s.now.Add(time.Minute)
		s.sleep(l, "nap", 0, until(moment))
		s.refused(s.trySleep(l, "nap", 0, until(moment.Add(time.Hour))), engine.ErrConflict, "another moment")
		s.sameTime("wake at", s.step(l.RunID, "nap").WakeAt, moment)
	}},
	{"a timer that stands keeps its moment when the next lease sets it again", func(s *stage) {
		l := s.held()
		wake := s.now.Add(time.Minute)
		s.sleep(l, "nap", time.Minute, held)
		s.release(l, false)
		s.pass(time.Second)
		s.sleep(s.claim("w1").Lease, "nap", time.Minute)
		s.sameTime("wake at", s.step(l.RunID, "nap").WakeAt, wake)
		s.sameTime("available at", s.status(l.RunID, engine.RunSleeping).AvailableAt, wake)
		equal(s, "attempts of the timer", len(s.attempts(l.RunID, "nap")), 1)
	}},
	{"a timer that is over cannot be set again", func(s *stage) {
		l := s.held()
		s.sleep(l, "nap", time.Minute)
		s.pass(time.Minute)
		next := s.claim("w1").Lease
		s.refused(s.trySleep(next, "nap", time.Hour), engine.ErrConflict, "Sleep")
		s.status(l.RunID, engine.RunRunning)
	}},
	{"a sleep under a function's name is a conflict", func(s *stage) {
		l := s.held()
		s.begin(l, "pay")
		s.refused(s.trySleep(l, "pay", time.Second), engine.ErrConflict, "Sleep")
		s.status(l.RunID, engine.RunRunning)
	}},
	{"a timer that is due when a lease ends is over, however the lease ends", func(s *stage) {
		for _, end := range []func(l engine.Lease){
			func(l engine.Lease) { s.release(l, false) },
			func(l engine.Lease) { s.lose("w1") },
			func(l engine.Lease) { s.fail(l, "pay", "no") },
			func(l engine.Lease) { s.sleep(l, "later", time.Hour) },
			func(l engine.Lease) { s.finish(l, "done") },
			func(l engine.Lease) { s.failRun(l, "no") },
			func(l engine.Lease) { s.cancel(l.RunID) },
		} {
			l := s.heldAgain()
			s.sleep(l, "due", time.Second, held)
			s.sleep(l, "not due", time.Hour, held)
			wake := s.now.Add(time.Second)
			s.pass(2 * time.Second)
			end(l)
			step := s.step(l.RunID, "due")
			equal(s, "status of the timer", step.Status, engine.StepCompleted)
			s.sameTime("finished at", step.FinishedAt, wake)
			if status := s.step(l.RunID, "not due").Status; status == engine.StepCompleted {
				s.Fatalf("the timer that is not due is %s", status)
			}
			s.cancelAnyway(l.RunID)
		}
	}},
	{"a parked run is due at once when one of its timers is over", func(s *stage) {
		l := s.held()
		s.sleep(l, "short", time.Second, held)
		s.sleep(l, "long", time.Hour, held)
		wake := s.now.Add(time.Second)
		s.pass(time.Minute)
		s.release(l, true)
		s.sameTime("available at", s.status(l.RunID, engine.RunSleeping).AvailableAt, wake)
		equal(s, "claimed", s.claim("w1").Run.ID, l.RunID)
		equal(s, "status of the long timer", s.step(l.RunID, "long").Status, engine.StepRunning)
	}},
	{"a held sleep keeps the lease, and a parked release waits for the earliest timer", func(s *stage) {
		l := s.held()
		s.sleep(l, "long", time.Hour, held)
		s.sleep(l, "short", time.Minute, held)
		s.sleep(l, "middle", 30*time.Minute, held)
		s.status(l.RunID, engine.RunRunning)
		s.complete(l, "pay", "paid")
		s.release(l, true)
		run := s.status(l.RunID, engine.RunSleeping)
		s.sameTime("available at", run.AvailableAt, s.now.Add(time.Minute))
		equal(s, "waiting for", run.WaitingFor, "timer:short")

		start := s.now
		s.pass(30 * time.Minute)
		task := s.claim("w1")
		for name, want := range map[string]engine.StepStatus{
			"short": engine.StepCompleted, "middle": engine.StepCompleted, "long": engine.StepRunning,
		} {
			equal(s, "status of "+name, s.step(l.RunID, name).Status, want)
		}
		s.release(task.Lease, true)
		s.sameTime("available at", s.status(l.RunID, engine.RunSleeping).AvailableAt, start.Add(time.Hour))
	}},
	{"a parked run waits for a retry when that is earlier than the timers", func(s *stage) {
		l := s.held()
		s.sleep(l, "nap", time.Hour, held)
		v := s.fail(l, "pay", "no")
		run := s.status(l.RunID, engine.RunPending)
		s.sameTime("available at", run.AvailableAt, v.RetryAt)
		equal(s, "waiting for", run.WaitingFor, "")
		s.pass(time.Minute)
		s.claim("w1")
		equal(s, "status of the timer", s.step(l.RunID, "nap").Status, engine.StepRunning)
	}},
	{"a parked run waits for a timer when that is earlier than the retries", func(s *stage) {
		l := s.held()
		s.sleep(l, "nap", 10*time.Millisecond, held)
		s.fail(l, "pay", "no")
		run := s.status(l.RunID, engine.RunSleeping)
		s.sameTime("available at", run.AvailableAt, s.now.Add(10*time.Millisecond))
		equal(s, "waiting for", run.WaitingFor, "timer:nap")
	}},
	{"a parked release without anything to wait for is due at once", func(s *stage) {
		l := s.held()
		s.complete(l, "pay", "paid")
		s.release(l, true)
		s.sameTime("available at", s.status(l.RunID, engine.RunPending).AvailableAt, s.now)
		equal(s, "claimed", s.claim("w1").Run.ID, l.RunID)
	}},
	{"a sleep interrupts the functions that still run", func(s *stage) {
		l := s.held()
		s.begin(l, "pay")
		s.sleep(l, "nap", time.Minute)
		s.failure("error of the function", s.step(l.RunID, "pay").Error, engine.InterruptedFailure())
		equal(s, "status of the timer", s.step(l.RunID, "nap").Status, engine.StepRunning)
	}},
	{"sleeps cost no attempts, however many", func(s *stage) {
		l := s.held(withPolicy(engine.RetryPolicy{MaximumAttempts: 1}))
		for i := range 12 {
			s.sleep(l, "nap-"+string(rune('a'+i)), time.Second)
			s.pass(time.Second)
			l = s.claim("w1").Lease
		}
		run := s.run(l.RunID)
		equal(s, "attempts", run.Attempts, 1)
		equal(s, "failures", run.Failures, 0)
		equal(s, "losses", run.LeaseLosses, 0)
		equal(s, "steps", run.Steps, 12)
	}},
	{"a timer that another lease set is waited for again, and that is answered alike", func(s *stage) {
		s.worker("w1")
		for _, timer := range []struct {
			name string
			d    time.Duration
			how  func(*engine.SleepParams)
		}{{"by its length", time.Minute, func(*engine.SleepParams) {}}, {"by its moment", 0, until(s.now.Add(time.Minute))}} {
			l := s.heldNext()
			s.sleep(l, "nap", timer.d, timer.how, held)
			s.release(l, false)
			l = s.claim("w1").Lease
			s.sleep(l, "nap", timer.d, timer.how)
			s.must(s.trySleep(l, "nap", timer.d, timer.how), "Sleep repeated "+timer.name)
			s.lost(s.trySleep(l, "nap", time.Hour), engine.RunSleeping, "Sleep of another length "+timer.name)
		}
	}},
}

// cancelAnyway cancels a run that may have ended.
func (s *stage) cancelAnyway(run engine.ID) {
	_, _ = s.store.CancelRun(s.ctx, s.endParams(run, ""))
}

// heldAgain is a new run in the hands of w1, whether it is registered or not.
func (s *stage) heldAgain() engine.Lease {
	s.Helper()
	s.register(s.newWorker("w1"), true)
	return s.heldNext()
}
