package runs

import (
	"fmt"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

// ClockCases are about timers that are set by one reading of the store's clock and judged by
// another.
var ClockCases = []fixture.Case{
	{Name: "the margin is added to each timer that a duration sets", Run: func(s *fixture.F) {
		const margin = 7 * time.Millisecond
		l := s.Held(fixture.WithPolicy(engine.RetryPolicy{MaximumAttempts: 3}))

		begun, err := s.TryBegin(l, "limited", fixture.StartToClose(time.Second),
			func(p *engine.BeginStepParams) { p.Margin = margin })
		s.Must(err, "BeginStep")
		s.SameTime("timeout at", begun.Step.TimeoutAt, s.Now.Add(time.Second+margin))

		want := engine.AfterStepFailed(nil, nil, 1, fixture.Boom("no"), s.Now.Add(margin), 0.5)
		v := s.Fail(l, "fails", "no", func(p *engine.FailStepParams) { p.Margin, p.Hold = margin, true })
		s.SameTime("retry at of a step", v.RetryAt, want.RetryAt)

		waits := s.Await(l, "waits", "go", fixture.AtMost(time.Second),
			func(p *engine.AwaitSignalParams) { p.Margin, p.Hold = margin, true })
		s.SameTime("wake at of a wait", waits.Step.WakeAt, s.Now.Add(time.Second+margin))

		for name, change := range map[string]func(*engine.SleepParams){
			"nap":    func(p *engine.SleepParams) { p.Duration = time.Second },
			"moment": func(p *engine.SleepParams) { p.Until = s.Now.Add(time.Second) },
		} {
			p := engine.SleepParams{Lease: l, Step: fixture.Named(name), ID: s.ID(), Hold: true, Now: s.Now,
				Margin: margin}
			change(&p)
			s.Must(s.SleepWith(p), "Sleep")
			s.Must(s.SleepWith(p), "Sleep, repeated")
		}
		s.SameTime("wake at of a sleep", s.Step(l.RunID, "nap").WakeAt, s.Now.Add(time.Second+margin))
		fixture.Equal(s, "duration of a sleep", s.Step(l.RunID, "nap").Duration, time.Second)
		s.SameTime("wake at of a sleep until a moment", s.Step(l.RunID, "moment").WakeAt, s.Now.Add(time.Second))

		p := s.EndParams(l.RunID, "please stop")
		p.Grace, p.Margin = time.Minute, margin
		end, err := s.Store.CancelRun(s.Ctx, p)
		s.Must(err, "CancelRun")
		s.SameTime("grace until", end.GraceUntil, s.Now.Add(time.Minute+margin))
	}},
	{Name: "the margin is added to the retry of a step that timed out and of a run", Run: func(s *fixture.F) {
		const margin = 7 * time.Millisecond
		l := s.Held()
		step := s.Begin(l, "limited", fixture.StartToClose(time.Second))
		s.Now = step.TimeoutAt
		out, err := s.Store.TimeoutSteps(s.Ctx,
			engine.TimeoutStepsParams{Now: s.Now, Limit: 100, Margin: margin, Jitter: 0.5})
		s.Must(err, "TimeoutSteps")
		want := engine.AfterStepFailed(nil, nil, 1, engine.StepTimedOutFailure(), s.Now.Add(margin), 0.5)
		fixture.Equal(s, "timed out", fixture.TimedOutText(out),
			fixture.TimedOutText(fixture.TimedOut(l.RunID, "limited", want)))

		policy := engine.RetryPolicy{MaximumAttempts: 3}
		l = s.HeldNext(fixture.WithPolicy(policy))
		v, err := s.Store.FailRun(s.Ctx,
			engine.FailRunParams{Lease: l, Failure: fixture.Boom("no"), Now: s.Now, Margin: margin, Jitter: 0.5})
		s.Must(err, "FailRun")
		wantRun := engine.AfterRunFailed(&policy, 1, fixture.Boom("no"), s.Now.Add(margin), 0.5)
		s.SameTime("retry at of a run", v.RetryAt, wantRun.RetryAt)
		s.SameTime("available at", s.Status(l.RunID, engine.RunPending).AvailableAt, wantRun.RetryAt)
	}},
	{Name: "no sleep ends before its duration has passed", Run: func(s *fixture.F) {
		onTime(s, func(l engine.Lease, name string, margin time.Duration) {
			s.Sleep(l, name, shortTimer, func(p *engine.SleepParams) { p.Margin = margin })
		})
	}},
	{Name: "no retry is due before its delay has passed", Run: func(s *fixture.F) {
		policy := engine.RetryPolicy{InitialIntervalMS: shortTimer.Milliseconds(), Jitter: -1}
		onTime(s, func(l engine.Lease, name string, margin time.Duration) {
			s.Fail(l, name, "no", func(p *engine.FailStepParams) { p.Margin, p.RetryPolicy = margin, &policy })
		})
	}},
}

const shortTimer = 30 * time.Millisecond

// onTime sets a timer a few times by the store's clock, and claims the waiting run until it is due.
func onTime(s *fixture.F, set func(l engine.Lease, name string, margin time.Duration)) {
	s.Helper()
	s.Now = s.Store.Now()
	l := s.Held()
	for round := range 4 {
		begun := time.Now() // before the store's time is read: this process may be held up after it
		s.Now = s.Store.Now()
		set(l, fmt.Sprint("timer-", round), s.Store.Uncertainty())
		for {
			s.Now = s.Store.Now()
			passed := time.Since(begun) // at the time of the claim
			claimed := s.ClaimWith(s.ClaimParams("w1"))
			if len(claimed.Tasks) == 1 {
				if passed < shortTimer {
					s.Fatalf("timer %d of %s is over after %s", round, shortTimer, passed)
				}
				l = claimed.Tasks[0].Lease
				break
			}
			if passed > 10*time.Second {
				s.Fatalf("timer %d of %s is not over after %s", round, shortTimer, passed)
			}
			time.Sleep(time.Millisecond)
		}
	}
}
