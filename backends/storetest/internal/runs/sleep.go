package runs

import (
	"fmt"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

var SleepCases = []fixture.Case{
	{Name: "a sleep parks the run until its timer and frees the worker", Run: func(s *fixture.F) {
		l := s.Held()
		wake := s.Now.Add(1500 * time.Millisecond)
		s.Sleep(l, "nap", 1500*time.Millisecond)
		run := s.Status(l.RunID, engine.RunSleeping)
		s.SameTime("available at", run.AvailableAt, wake)
		fixture.Equal(s, "waiting for", run.WaitingFor, "timer:nap")
		fixture.Equal(s, "worker", run.WorkerID, "")
		fixture.Equal(s, "attempts", run.Attempts, 1)
		fixture.Equal(s, "leases", len(s.HeldBy("w1")), 0)
		step := s.Step(l.RunID, "nap")
		fixture.Equal(s, "kind", step.Kind, engine.StepSleep)
		fixture.Equal(s, "status", step.Status, engine.StepRunning)
		fixture.Equal(s, "duration", step.Duration, 1500*time.Millisecond)
		s.SameTime("wake at", step.WakeAt, wake)
		s.SameTime("started at", step.StartedAt, s.Now)
		s.SameTime("timeout at", step.TimeoutAt, time.Time{})
	}},
	{Name: "a sleep ends at its millisecond", Run: func(s *fixture.F) {
		for _, d := range []time.Duration{time.Millisecond, 500 * time.Millisecond, 1900 * time.Millisecond,
			engine.MaxDelay} {
			l := s.HeldAgain()
			s.Sleep(l, "nap", d)
			wake := s.Now.Add(d)
			s.Pass(d - time.Microsecond)
			s.SameTime("next due", s.ClaimNothing("w1").NextDue, wake)
			s.Pass(time.Microsecond)
			task := s.Claim("w1")
			fixture.Equal(s, "woken run", task.Run.ID, l.RunID)
			s.Finish(task.Lease, "done")
		}
	}},
	{Name: "a woken run finds its timer completed at its time", Run: func(s *fixture.F) {
		l := s.Held()
		s.Complete(l, "pay", "paid")
		s.Sleep(l, "nap", time.Second)
		wake := s.Now.Add(time.Second)
		s.Pass(time.Hour)
		task := s.Claim("w1")
		fixture.Equal(s, "status", task.Run.Status, engine.RunRunning)
		fixture.Equal(s, "waiting for", task.Run.WaitingFor, "")
		fixture.Equal(s, "attempts", task.Run.Attempts, 1)
		step := task.History[1]
		fixture.Equal(s, "status of the timer", step.Status, engine.StepCompleted)
		s.SameTime("finished at", step.FinishedAt, wake)
		fixture.Equal(s, "attempts of the timer", len(s.Attempts(l.RunID, "nap")), 1)
		s.SameStep(s.Step(l.RunID, "nap"), step)
		begun, err := s.TryBegin(task.Lease, "nap", fixture.AsSleep)
		s.Must(err, "BeginStep of a timer that is over")
		fixture.Equal(s, "execute", begun.Execute, false)
	}},
	{Name: "a repeated sleep is still parked, whatever became of its timer", Run: func(s *fixture.F) {
		parked := func(when string, l engine.Lease, d time.Duration, changes ...func(*engine.SleepParams)) {
			step, err := s.Slept(l, "nap", d, changes...)
			s.Must(err, "Sleep again "+when)
			fixture.Equal(s, "status "+when, step.Status, engine.StepRunning)
			fixture.Equal(s, "place "+when, step.Settled, 0)
			s.SameTime("finished at "+when, step.FinishedAt, time.Time{})
		}
		for name, changes := range map[string][]func(*engine.SleepParams){
			"of a worker that stays": {fixture.Staying}, "of an older worker": nil} {
			l := s.HeldAgain()
			s.Sleep(l, "nap", time.Second, changes...)
			parked(name+" while it sleeps", l, time.Second, changes...)
			s.Pass(time.Second)
			parked(name+" while it is due", l, time.Second, changes...)
			woken := s.Claim("w1")
			parked(name+" while another lease goes on", l, time.Second, changes...)
			s.Finish(woken.Lease, "done")
			parked(name+" after the end", l, time.Second, changes...)
		}
		// The timer is set by one lease, and the run is parked by the next.
		first := s.HeldAgain()
		s.Sleep(first, "nap", time.Second, fixture.Held)
		s.Release(first, false)
		second := s.Claim("w1").Lease
		s.Sleep(second, "nap", time.Second, fixture.Staying)
		s.Pass(time.Second)
		woken := s.Claim("w1")
		parked("of the lease that did not set the timer", second, time.Second, fixture.Staying)
		s.Finish(woken.Lease, "done")
	}},
	{Name: "a sleep until a time wakes at that time", Run: func(s *fixture.F) {
		l := s.Held()
		moment := s.Now.Add(42*time.Minute + 7*time.Microsecond)
		s.Sleep(l, "nap", 0, fixture.Until(moment))
		s.SameTime("available at", s.Status(l.RunID, engine.RunSleeping).AvailableAt, moment)
		step := s.Step(l.RunID, "nap")
		s.SameTime("wake at", step.WakeAt, moment)
		fixture.Equal(s, "duration", step.Duration, 0)
	}},
	{Name: "a sleep until a past time is completed in one write", Run: func(s *fixture.F) {
		l := s.Held()
		moment := s.Now.Add(-time.Minute)
		before, counts := s.Commits()
		step, err := s.Slept(l, "nap", 0, fixture.Until(moment), fixture.Staying)
		s.Must(err, "Sleep")
		if after, _ := s.Commits(); counts && after != before+1 {
			s.Fatalf("%d commits, want 1", after-before)
		}
		fixture.Equal(s, "status", step.Status, engine.StepCompleted)
		fixture.Equal(s, "settled", step.Settled, 1)
		s.SameTime("wake at", step.WakeAt, moment)
		s.SameTime("finished at", step.FinishedAt, s.Now)
		s.SameStep(s.Step(l.RunID, "nap"), step)
		again, err := s.Slept(l, "nap", 0, fixture.Until(moment), fixture.Staying)
		s.Must(err, "Sleep repeated")
		s.SameStep(again, step)
		step, err = s.Slept(l, "next", 0, fixture.Until(moment), fixture.Held)
		s.Must(err, "Sleep that holds")
		fixture.Equal(s, "settled", step.Settled, 2)
		s.Complete(l, "pay", "under the same lease")
	}},
	{Name: "a sleep until a past time makes the run of an older worker due from now on", Run: func(s *fixture.F) {
		l := s.Held()
		before := s.Start()
		urgent := s.Start(func(r *engine.StartRun) { r.Priority = 50 })
		s.Pass(time.Second)
		past := fixture.Until(s.Now.Add(-24 * time.Hour))
		s.Sleep(l, "nap", 0, past)
		s.SameTime("available at", s.Status(l.RunID, engine.RunPending).AvailableAt, s.Now)
		s.SameTime("wake at", s.Step(l.RunID, "nap").WakeAt, s.Now.Add(-24*time.Hour))
		s.Must(s.TrySleep(l, "nap", 0, past), "Sleep repeated")
		s.SameIDs("claimed", s.ClaimedIDs("w1", 3), []engine.ID{urgent, before, l.RunID})
		s.Must(s.TrySleep(l, "nap", 0, past), "Sleep repeated after the claim")
	}},
	{Name: "a timer that has passed when it is set again is completed", Run: func(s *fixture.F) {
		l := s.Held()
		s.Sleep(l, "nap", time.Minute, fixture.Held)
		s.Pass(time.Minute)
		step, err := s.Slept(l, "nap", time.Minute, fixture.Staying)
		s.Must(err, "Sleep")
		fixture.Equal(s, "status", step.Status, engine.StepCompleted)
		s.SameTime("finished at", step.FinishedAt, s.Now)
		s.Refused(s.TrySleep(l, "nap", time.Minute), engine.ErrConflict, "Sleep that would end the lease")
		s.Refused(s.TrySleep(l, "nap", time.Hour, fixture.Staying), engine.ErrConflict, "Sleep of another length")
		s.Complete(l, "pay", "under the same lease")
	}},
	{Name: "a timer that is over at its holder is completed", Run: func(s *fixture.F) {
		l := s.Held()
		for _, passed := range []time.Duration{time.Minute - time.Millisecond, time.Hour} {
			name := "nap " + passed.String()
			s.Sleep(l, name, time.Minute, fixture.Held)
			wake := s.Now.Add(time.Minute)
			s.Pass(passed)
			step, err := s.Slept(l, name, 0, fixture.Over)
			s.Must(err, "Sleep that is over")
			fixture.Equal(s, "status", step.Status, engine.StepCompleted)
			s.SameTime("finished at", step.FinishedAt, earlier(s.Now, wake))
			again, err := s.Slept(l, name, 0, fixture.Over)
			s.Must(err, "Sleep that is over, repeated")
			s.SameStep(again, step)
			s.Complete(l, "under the same lease "+name, "")
		}
		s.Sleep(l, "at the claim", time.Minute, fixture.Held)
		s.Pass(time.Minute)
		s.Release(l, false)
		next := s.Claim("w1").Lease
		at := s.Step(l.RunID, "at the claim").Settled
		step, err := s.Slept(next, "at the claim", 0, fixture.Over)
		s.Must(err, "Sleep that is over since the claim")
		fixture.Equal(s, "settled", step.Settled, at)
		fixture.Equal(s, "settled", at, 5)

		s.Begin(next, "unset", fixture.AsSleep)
		for _, name := range []string{"unset", "under the same lease nap 1h0m0s"} {
			s.Refused(s.TrySleep(next, name, 0, fixture.Over), engine.ErrConflict, "Sleep over of "+name)
		}
		s.Refused(s.TrySleep(next, "never begun", 0, fixture.Over), engine.ErrNotFound, "Sleep over")
		s.Sleep(next, "other", time.Hour, fixture.Held)
		s.Release(next, false)
		s.Lost(s.TrySleep(next, "other", 0, fixture.Over), engine.RunPending, "Sleep over under an old lease")
	}},
	{Name: "a begun timer starts when it is set", Run: func(s *fixture.F) {
		l := s.Held()
		begun := s.Begin(l, "nap", fixture.AsSleep)
		s.SameTime("wake at", begun.WakeAt, time.Time{})
		s.Pass(time.Minute)
		s.Sleep(l, "nap", time.Second)
		step := s.Step(l.RunID, "nap")
		fixture.Equal(s, "attempt", step.ID, begun.ID)
		s.SameTime("started at", step.StartedAt, s.Now)
		s.SameTime("wake at", step.WakeAt, s.Now.Add(time.Second))
	}},
	{Name: "a timer that was begun but not set does not end", Run: func(s *fixture.F) {
		l := s.Held()
		s.Begin(l, "nap", fixture.AsSleep)
		s.Lose("w1")
		task := s.Claim("w1")
		fixture.Equal(s, "status of the timer", s.Step(l.RunID, "nap").Status, engine.StepRunning)
		s.Sleep(task.Lease, "nap", 24*time.Hour)
		s.SameTime("available at", s.Status(l.RunID, engine.RunSleeping).AvailableAt, s.Now.Add(24*time.Hour))
	}},
	{Name: "a timer that was begun but not set does not set the due time", Run: func(s *fixture.F) {
		l := s.Held()
		s.Begin(l, "nap", fixture.AsSleep)
		v := s.Fail(l, "pay", "no")
		s.SameTime("available at", s.Status(l.RunID, engine.RunPending).AvailableAt, v.RetryAt)
	}},
	{Name: "a repeated sleep changes nothing", Run: func(s *fixture.F) {
		l := s.Held()
		p := engine.SleepParams{Lease: l, Step: fixture.Named("nap"), ID: s.ID(), Duration: time.Minute, Now: s.Now}
		s.Must(s.SleepWith(p), "Sleep")
		asleep, timer := s.Run(l.RunID), s.Step(l.RunID, "nap")
		s.Pass(time.Second)
		p.Now = s.Now
		s.Must(s.SleepWith(p), "Sleep repeated while SLEEPING")
		s.SameRun(s.Run(l.RunID), asleep)
		s.SameStep(s.Step(l.RunID, "nap"), timer)

		s.Pass(time.Minute)
		next := s.Claim("w1").Lease
		s.Must(s.SleepWith(p), "Sleep repeated after the next claim")
		s.Status(l.RunID, engine.RunRunning)
		s.Complete(next, "pay", "paid")
		s.Finish(next, "done")
		s.Must(s.SleepWith(p), "Sleep repeated after the end")
	}},
	{Name: "another sleep by the same lease is a conflict", Run: func(s *fixture.F) {
		l := s.Held()
		s.Sleep(l, "nap", time.Minute)
		s.Refused(s.TrySleep(l, "nap", time.Hour), engine.ErrConflict, "another length")
		s.Refused(s.TrySleep(l, "nap", 0, fixture.Until(s.Now.Add(time.Hour))), engine.ErrConflict,
			"a moment instead of a length")
		s.SameTime("wake at", s.Step(l.RunID, "nap").WakeAt, s.Now.Add(time.Minute))

		l = s.Held()
		moment := s.Now.Add(time.Minute)
		s.Sleep(l, "nap", 0, fixture.Until(moment))
		s.Refused(s.TrySleep(l, "nap", 0, fixture.Until(moment.Add(time.Hour))), engine.ErrConflict, "another moment")
		s.SameTime("wake at", s.Step(l.RunID, "nap").WakeAt, moment)
	}},
	{Name: "a set timer keeps its time when the next lease sets it", Run: func(s *fixture.F) {
		l := s.Held()
		wake := s.Now.Add(time.Minute)
		s.Sleep(l, "nap", time.Minute, fixture.Held)
		s.Release(l, false)
		s.Pass(time.Second)
		s.Sleep(s.Claim("w1").Lease, "nap", time.Minute)
		s.SameTime("wake at", s.Step(l.RunID, "nap").WakeAt, wake)
		s.SameTime("available at", s.Status(l.RunID, engine.RunSleeping).AvailableAt, wake)
		fixture.Equal(s, "attempts of the timer", len(s.Attempts(l.RunID, "nap")), 1)
	}},
	{Name: "a completed timer cannot be set again", Run: func(s *fixture.F) {
		l := s.Held()
		s.Sleep(l, "nap", time.Minute)
		s.Pass(time.Minute)
		next := s.Claim("w1").Lease
		s.Refused(s.TrySleep(next, "nap", time.Hour), engine.ErrConflict, "Sleep")
		s.Status(l.RunID, engine.RunRunning)
	}},
	{Name: "a sleep under a function's name is a conflict", Run: func(s *fixture.F) {
		l := s.Held()
		s.Begin(l, "pay")
		s.Refused(s.TrySleep(l, "pay", time.Second), engine.ErrConflict, "Sleep")
		s.Status(l.RunID, engine.RunRunning)
	}},
	{Name: "a due timer completes at the claim after its lease, or at the end of the run", Run: func(s *fixture.F) {
		for n, end := range []func(l engine.Lease){
			func(l engine.Lease) { s.Release(l, false) },
			func(l engine.Lease) { s.Lose("w1") },
			func(l engine.Lease) { s.Sleep(l, "later", time.Hour) },
			func(l engine.Lease) { s.Finish(l, "done") },
			func(l engine.Lease) { s.FailRun(l, "no") },
			func(l engine.Lease) { s.Cancel(l.RunID) },
		} {
			l := s.HeldAgain()
			s.Sleep(l, "due", time.Second, fixture.Held)
			s.Sleep(l, "not due", time.Hour, fixture.Held)
			wake := s.Now.Add(time.Second)
			s.Pass(2 * time.Second)
			end(l)
			settled := int64(engine.Unsettled)
			if !s.Run(l.RunID).Status.Ended() {
				fixture.Equal(s, "status before the claim", s.Step(l.RunID, "due").Status, engine.StepRunning)
				s.Register(s.NewWorker("w1"), true)
				s.Claim("w1")
				settled = 1
			}
			step := s.Step(l.RunID, "due")
			fixture.Equal(s, fmt.Sprint("status of the timer in case ", n), step.Status, engine.StepCompleted)
			fixture.Equal(s, "settled", step.Settled, settled)
			s.SameTime("finished at", step.FinishedAt, wake)
			if status := s.Step(l.RunID, "not due").Status; status == engine.StepCompleted {
				s.Fatalf("the timer that is not due is %s", status)
			}
			s.CancelAnyway(l.RunID)
		}
	}},
	{Name: "a parked run with a completed timer is due at once", Run: func(s *fixture.F) {
		l := s.Held()
		s.Sleep(l, "short", time.Second, fixture.Held)
		s.Sleep(l, "long", time.Hour, fixture.Held)
		wake := s.Now.Add(time.Second)
		s.Pass(time.Minute)
		s.Release(l, true)
		s.SameTime("available at", s.Status(l.RunID, engine.RunSleeping).AvailableAt, wake)
		fixture.Equal(s, "claimed", s.Claim("w1").Run.ID, l.RunID)
		fixture.Equal(s, "status of the long timer", s.Step(l.RunID, "long").Status, engine.StepRunning)
	}},
	{Name: "a parked release after a held sleep waits for its timer", Run: func(s *fixture.F) {
		l := s.Held()
		s.Sleep(l, "long", time.Hour, fixture.Held)
		s.Sleep(l, "short", time.Minute, fixture.Held)
		s.Sleep(l, "middle", 30*time.Minute, fixture.Held)
		s.Status(l.RunID, engine.RunRunning)
		s.Complete(l, "pay", "paid")
		s.Release(l, true)
		run := s.Status(l.RunID, engine.RunSleeping)
		s.SameTime("available at", run.AvailableAt, s.Now.Add(time.Minute))
		fixture.Equal(s, "waiting for", run.WaitingFor, "timer:short")

		start := s.Now
		s.Pass(30 * time.Minute)
		task := s.Claim("w1")
		for name, want := range map[string]engine.StepStatus{
			"short": engine.StepCompleted, "middle": engine.StepCompleted, "long": engine.StepRunning,
		} {
			fixture.Equal(s, "status of "+name, s.Step(l.RunID, name).Status, want)
		}
		s.Release(task.Lease, true)
		s.SameTime("available at", s.Status(l.RunID, engine.RunSleeping).AvailableAt, start.Add(time.Hour))
	}},
	{Name: "a parked run waits for a retry before its timers", Run: func(s *fixture.F) {
		l := s.Held()
		s.Sleep(l, "nap", time.Hour, fixture.Held)
		v := s.Fail(l, "pay", "no")
		run := s.Status(l.RunID, engine.RunPending)
		s.SameTime("available at", run.AvailableAt, v.RetryAt)
		fixture.Equal(s, "waiting for", run.WaitingFor, "")
		s.Pass(time.Minute)
		s.Claim("w1")
		fixture.Equal(s, "status of the timer", s.Step(l.RunID, "nap").Status, engine.StepRunning)
	}},
	{Name: "a parked run waits for a timer before its retries", Run: func(s *fixture.F) {
		l := s.Held()
		s.Sleep(l, "nap", 10*time.Millisecond, fixture.Held)
		s.Fail(l, "pay", "no")
		run := s.Status(l.RunID, engine.RunSleeping)
		s.SameTime("available at", run.AvailableAt, s.Now.Add(10*time.Millisecond))
		fixture.Equal(s, "waiting for", run.WaitingFor, "timer:nap")
	}},
	{Name: "a parked release with nothing to wait for is due at once", Run: func(s *fixture.F) {
		l := s.Held()
		s.Complete(l, "pay", "paid")
		s.Release(l, true)
		s.SameTime("available at", s.Status(l.RunID, engine.RunPending).AvailableAt, s.Now)
		fixture.Equal(s, "claimed", s.Claim("w1").Run.ID, l.RunID)
	}},
	{Name: "a sleep interrupts running functions", Run: func(s *fixture.F) {
		l := s.Held()
		s.Begin(l, "pay")
		s.Sleep(l, "nap", time.Minute)
		s.Failure("error of the function", s.Step(l.RunID, "pay").Error, engine.InterruptedFailure())
		fixture.Equal(s, "status of the timer", s.Step(l.RunID, "nap").Status, engine.StepRunning)
	}},
	{Name: "sleeps do not count as attempts", Run: func(s *fixture.F) {
		l := s.Held(fixture.WithPolicy(engine.RetryPolicy{MaximumAttempts: 1}))
		for i := range 12 {
			s.Sleep(l, "nap-"+string(rune('a'+i)), time.Second)
			s.Pass(time.Second)
			l = s.Claim("w1").Lease
		}
		run := s.Run(l.RunID)
		fixture.Equal(s, "attempts", run.Attempts, 1)
		fixture.Equal(s, "failures", run.Failures, 0)
		fixture.Equal(s, "losses", run.LeaseLosses, 0)
		fixture.Equal(s, "steps", run.Steps, 12)
	}},
	{Name: "a timer set by another lease is waited for again", Run: func(s *fixture.F) {
		s.Worker("w1")
		for _, timer := range []struct {
			name string
			d    time.Duration
			how  func(*engine.SleepParams)
		}{{"by its length", time.Minute, func(*engine.SleepParams) {}},
			{"by its moment", 0, fixture.Until(s.Now.Add(time.Minute))}} {
			l := s.HeldNext()
			s.Sleep(l, "nap", timer.d, timer.how, fixture.Held)
			s.Release(l, false)
			l = s.Claim("w1").Lease
			s.Sleep(l, "nap", timer.d, timer.how)
			s.Must(s.TrySleep(l, "nap", timer.d, timer.how), "Sleep repeated "+timer.name)
			s.Lost(s.TrySleep(l, "nap", time.Hour), engine.RunSleeping, "Sleep of another length "+timer.name)
		}
	}},
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
