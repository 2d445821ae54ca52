package runs

import (
	"fmt"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

var RetryCases = []fixture.Case{
	{Name: "a failed step waits for its retry, and so does its run", Run: func(s *fixture.F) {
		l := s.Held()
		first := s.Begin(l, "pay")
		s.Pass(time.Second)
		v := s.Fail(l, "pay", "no money")
		want := engine.AfterStepFailed(nil, nil, 1, fixture.Boom("no money"), s.Now, 0.5)
		fixture.Equal(s, "verdict", v, want)

		step := s.Step(l.RunID, "pay")
		fixture.Equal(s, "attempt", step.ID, first.ID)
		fixture.Equal(s, "status", step.Status, engine.StepPending)
		fixture.Equal(s, "failures", step.Failures, 1)
		s.SameTime("retry at of the step", step.RetryAt, want.RetryAt)
		s.SameTime("timeout at", step.TimeoutAt, time.Time{})
		s.Failure("error", step.Error, fixture.Boom("no money"))
		run := s.Status(l.RunID, engine.RunPending)
		s.Tried(l.RunID, 1, 1)
		fixture.Equal(s, "failures of the run", run.Failures, 0)
		fixture.Equal(s, "worker", run.WorkerID, "")
		s.SameTime("available at", run.AvailableAt, want.RetryAt)
		fixture.Equal(s, "bytes", run.Bytes, int64(len("input")+fixture.Boom("no money").Size()))
		s.SameTime("next due", s.ClaimNothing("w1").NextDue, want.RetryAt)
	}},
	{Name: "attempts of a step are numbered across retries", Run: func(s *fixture.F) {
		l := s.Held()
		s.Begin(l, "pay")
		v := s.Fail(l, "pay", "first")
		s.Now = v.RetryAt
		task := s.Claim("w1")
		fixture.Equal(s, "status in the history", task.History[0].Status, engine.StepPending)
		second := s.Begin(task.Lease, "pay")
		fixture.Equal(s, "attempt number", second.Attempt, 2)
		fixture.Equal(s, "failures", second.Failures, 1)
		fixture.Equal(s, "sequence", second.Sequence, 1)
		all := s.Attempts(l.RunID, "pay")
		fixture.Equal(s, "status of the first attempt", all[0].Status, engine.StepFailed)
		fixture.Equal(s, "first is the latest", all[0].Latest, false)
		s.SameTime("retry at of the first attempt", all[0].RetryAt, v.RetryAt)

		s.Complete(task.Lease, "pay", "paid")
		step := s.Step(l.RunID, "pay")
		fixture.Equal(s, "attempt number", step.Attempt, 2)
		fixture.Equal(s, "failures", step.Failures, 1)
		s.Tried(l.RunID, 1, 1)
	}},
	{Name: "retries use the policy that the step began with", Run: func(s *fixture.F) {
		l := s.Held()
		s.Begin(l, "pay", fixture.StepPolicy(engine.RetryPolicy{
			MaximumAttempts: 3, InitialIntervalMS: 20_000, Coefficient: 3, Jitter: -1}))
		for n, wait := range []time.Duration{20 * time.Second, time.Minute} {
			v := s.Fail(l, "pay", "no")
			s.SameTime(fmt.Sprintf("retry at of attempt %d", n+1), v.RetryAt, s.Now.Add(wait))
			s.Now = v.RetryAt
			l = s.Claim("w1").Lease
			s.Begin(l, "pay")
		}
		fixture.Equal(s, "the third is tried again", s.Fail(l, "pay", "no").Retry, false)
	}},
	{Name: "a step cannot begin before its retry is due", Run: func(s *fixture.F) {
		l := s.Held()
		v := s.Fail(l, "pay", "no", fixture.Holding)
		s.Now = v.RetryAt.Add(-time.Microsecond)
		_, err := s.TryBegin(l, "pay")
		s.Refused(err, engine.ErrPrecondition, "BeginStep too early")
		fixture.Equal(s, "attempts", len(s.Attempts(l.RunID, "pay")), 1)
		s.Now = v.RetryAt
		fixture.Equal(s, "attempt number", s.Begin(l, "pay").Attempt, 2)
	}},
	{Name: "a pending retry that the code drops does not block its run", Run: func(s *fixture.F) {
		l := s.Held(fixture.WithPolicy(engine.RetryPolicy{MaximumAttempts: 5, InitialIntervalMS: 1000}))
		s.Fail(l, "pay", "no", fixture.ForGood)
		s.Fail(l, "pay elsewhere", "no", fixture.ForGood)
		s.Now = s.FailRun(l, "not paid").RetryAt
		l = s.Claim("w1").Lease
		v := s.Fail(l, "pay", "still no")
		s.SameTime("available at, while the first step waits",
			s.Status(l.RunID, engine.RunPending).AvailableAt, v.RetryAt)
		s.Now = v.RetryAt
		l = s.Claim("w1").Lease
		s.Complete(l, "pay", "paid") // so the code does not need "pay elsewhere"
		s.Sleep(l, "nap", time.Hour)
		s.Parked(l.RunID, "timer:nap", s.Now.Add(time.Hour))
		s.Now = s.Now.Add(time.Hour)
		s.Finish(s.Claim("w1").Lease, "done")
	}},
	{Name: "a failure without BeginStep is an attempt", Run: func(s *fixture.F) {
		l := s.Held()
		policy := engine.RetryPolicy{MaximumAttempts: 2, InitialIntervalMS: 20, Jitter: -1}
		id := s.ID()
		began := s.Now.Add(-time.Second)
		v := s.Fail(l, "pay", "no", func(p *engine.FailStepParams) {
			p.ID, p.RetryPolicy, p.StartedAt = id, &policy, began
		})
		s.SameTime("retry at", v.RetryAt, s.Now.Add(20*time.Millisecond))
		step := s.Step(l.RunID, "pay")
		fixture.Equal(s, "id", step.ID, id)
		fixture.Equal(s, "status", step.Status, engine.StepPending)
		fixture.Equal(s, "attempt number", step.Attempt, 1)
		fixture.Equal(s, "failures", step.Failures, 1)
		s.SameTime("started at", step.StartedAt, began)
		fixture.Equal(s, "policy", fixture.PolicyText(step.RetryPolicy), fixture.PolicyText(&policy))
		fixture.Equal(s, "steps of the run", s.Run(l.RunID).Steps, 1)
	}},
	{Name: "a second failure without BeginStep counts on", Run: func(s *fixture.F) {
		l := s.Held()
		s.Now = s.Fail(l, "pay", "no").RetryAt
		l = s.Claim("w1").Lease
		v := s.Fail(l, "pay", "no")
		fixture.Equal(s, "verdict", v, engine.AfterStepFailed(nil, nil, 2, fixture.Boom("no"), s.Now, 0.5))
		step := s.Step(l.RunID, "pay")
		fixture.Equal(s, "attempt number", step.Attempt, 2)
		fixture.Equal(s, "failures", step.Failures, 2)
	}},
	{Name: "a step without budget fails for good and its code goes on", Run: func(s *fixture.F) {
		l := s.Held()
		for n := 1; n < engine.DefaultAttempts; n++ {
			s.Begin(l, "pay")
			s.Now = s.Fail(l, "pay", "no").RetryAt
			l = s.Claim("w1").Lease
		}
		s.Begin(l, "pay")
		v := s.Fail(l, "pay", "no")
		fixture.Equal(s, "verdict", v, engine.Verdict{Settled: 1})
		step := s.Step(l.RunID, "pay")
		fixture.Equal(s, "status", step.Status, engine.StepFailed)
		fixture.Equal(s, "failures", step.Failures, engine.DefaultAttempts)
		fixture.Equal(s, "attempts", len(s.Attempts(l.RunID, "pay")), engine.DefaultAttempts)
		s.SameTime("finished at", step.FinishedAt, s.Now)
		s.Status(l.RunID, engine.RunRunning)
		s.Tried(l.RunID, 1, engine.DefaultAttempts-1)
		s.Complete(l, "refund", "done")
	}},
	{Name: "a non-retryable failure is final at once", Run: func(s *fixture.F) {
		l := s.Held(fixture.WithPolicy(engine.RetryPolicy{
			MaximumAttempts: 10, NonRetryable: []string{"fatal", "card declined"}}))
		fixture.Equal(s, "by its flag", s.Fail(l, "a", "no", fixture.ForGood), engine.Verdict{Settled: 1})
		fixture.Equal(s, "by its message", s.Fail(l, "b", "card declined: 51"), engine.Verdict{Settled: 2})
		fixture.Equal(s, "by its type", s.Fail(l, "c", "x", func(p *engine.FailStepParams) {
			p.Failure.Type = "fatal"
		}), engine.Verdict{Settled: 3})
		s.Tried(l.RunID, 1, 0)
		s.Status(l.RunID, engine.RunRunning)
	}},
	{Name: "a step's own policy overrides the run's", Run: func(s *fixture.F) {
		run := engine.RetryPolicy{MaximumAttempts: 2, InitialIntervalMS: 1000, Jitter: -1}
		own := engine.RetryPolicy{MaximumAttempts: -1, InitialIntervalMS: 10, Coefficient: 3, MaximumIntervalMS: 80,
			Jitter: -1}
		l := s.Held(fixture.WithPolicy(run))
		for _, ms := range []int64{10, 30, 80, 80} {
			s.Begin(l, "pay", fixture.StepPolicy(own))
			v := s.Fail(l, "pay", "no")
			s.SameTime("retry at", v.RetryAt, s.Now.Add(time.Duration(ms)*time.Millisecond))
			s.Now = v.RetryAt
			l = s.Claim("w1").Lease
		}
		s.SameTime("retry at by the run's policy", s.Fail(l, "ship", "no", fixture.Holding).RetryAt,
			s.Now.Add(time.Second))
	}},
	{Name: "a failure's own delay is used", Run: func(s *fixture.F) {
		l := s.Held()
		v := s.Fail(l, "pay", "busy", func(p *engine.FailStepParams) { p.Failure.RetryAfterMS = 12345 })
		s.SameTime("retry at", v.RetryAt, s.Now.Add(12345*time.Millisecond))
		s.SameTime("available at", s.Run(l.RunID).AvailableAt, v.RetryAt)
	}},
	{Name: "jitter moves the delay", Run: func(s *fixture.F) {
		l := s.Held()
		for i, roll := range []float64{0, 0.25, 0.999} {
			name := string(rune('a' + i))
			v := s.Fail(l, name, "no", fixture.Holding, func(p *engine.FailStepParams) { p.Jitter = roll })
			s.SameTime("retry at", v.RetryAt, engine.AfterStepFailed(
				nil, nil, 1, fixture.Boom("no"), s.Now, roll).RetryAt)
		}
	}},
	{Name: "interruptions do not use the retry budget", Run: func(s *fixture.F) {
		l := s.Held(fixture.WithPolicy(engine.RetryPolicy{MaximumAttempts: 2, Jitter: -1}))
		for range 4 {
			s.Begin(l, "pay")
			s.Release(l, false)
			l = s.Claim("w1").Lease
		}
		s.Begin(l, "pay")
		v := s.Fail(l, "pay", "no")
		fixture.Equal(s, "first failure is retried", v.Retry, true)
		s.SameTime("after the first delay", v.RetryAt, s.Now.Add(engine.DefaultInitialInterval))
		s.Now = v.RetryAt
		l = s.Claim("w1").Lease
		s.Begin(l, "pay")
		s.Lose("w1")
		l = s.Claim("w1").Lease
		fixture.Equal(s, "attempt number", s.Begin(l, "pay").Attempt, 7)
		fixture.Equal(s, "second failure", s.Fail(l, "pay", "no"), engine.Verdict{Settled: 1})
		fixture.Equal(s, "failures", s.Step(l.RunID, "pay").Failures, 2)
		s.Tried(l.RunID, 1, 1)
	}},
	{Name: "a held failure keeps the lease for parallel steps", Run: func(s *fixture.F) {
		l := s.Held()
		s.Begin(l, "a")
		s.Begin(l, "b")
		v := s.Fail(l, "a", "no", fixture.Holding)
		s.Status(l.RunID, engine.RunRunning)
		s.Tried(l.RunID, 1, 1)
		s.Complete(l, "b", "done")
		s.Release(l, true)
		run := s.Status(l.RunID, engine.RunPending)
		s.SameTime("available at", run.AvailableAt, v.RetryAt)
		s.Tried(l.RunID, 1, 1)
	}},
	{Name: "a failure without Hold interrupts parallel steps", Run: func(s *fixture.F) {
		l := s.Held()
		s.Begin(l, "a")
		s.Begin(l, "b")
		s.Fail(l, "a", "no")
		s.Failure("error of the sibling", s.Step(l.RunID, "b").Error, engine.InterruptedFailure())
		s.Failure("error of the step", s.Step(l.RunID, "a").Error, fixture.Boom("no"))
	}},
	{Name: "the earliest of several retries wakes the run", Run: func(s *fixture.F) {
		l := s.Held()
		after := func(ms int64) func(*engine.FailStepParams) {
			return func(p *engine.FailStepParams) { p.Failure.RetryAfterMS = ms }
		}
		s.Fail(l, "a", "no", fixture.Holding, after(3000))
		v := s.Fail(l, "b", "no", fixture.Holding, after(1000))
		s.Fail(l, "c", "no", after(2000))
		s.SameTime("available at", s.Run(l.RunID).AvailableAt, v.RetryAt)
		s.Tried(l.RunID, 1, 3)
		s.Now = v.RetryAt
		l = s.Claim("w1").Lease
		_, err := s.TryBegin(l, "a")
		s.Refused(err, engine.ErrPrecondition, "BeginStep of one that is not due")
		s.Begin(l, "b")
	}},
	{Name: "repeating a failure returns the first verdict", Run: func(s *fixture.F) {
		l := s.Held()
		s.Begin(l, "pay")
		v := s.Fail(l, "pay", "no")
		s.Pass(time.Millisecond)
		again := func(when string) {
			s.Helper()
			fixture.Equal(s, "verdict "+when, s.Fail(l, "pay", "no"), fixture.Repeated(v))
		}
		again("while PENDING")
		s.Tried(l.RunID, 1, 1)
		fixture.Equal(s, "failures", s.Step(l.RunID, "pay").Failures, 1)
		s.Now = v.RetryAt
		next := s.Claim("w1").Lease
		again("after the next claim")
		s.Begin(next, "pay")
		again("while the next attempt runs")
		s.Complete(next, "pay", "paid")
		again("after the next attempt's result")
		s.Finish(next, "done")
		again("after the end")
		fixture.Equal(s, "attempts", len(s.Attempts(l.RunID, "pay")), 2)
		_, err := s.TryFail(l, "pay", "something else")
		s.Refused(err, engine.ErrConflict, "FailStep with other content")
	}},
	{Name: "repeating a failure after the run's end returns its verdict",
		Run: func(s *fixture.F) {
			l := s.Held()
			v := s.Fail(l, "pay", "no")
			s.Cancel(l.RunID)
			fixture.Equal(s, "verdict after the end", s.Fail(l, "pay", "no"), fixture.Repeated(v))
		}},
	{Name: "repeating a final failure changes nothing", Run: func(s *fixture.F) {
		l := s.Held()
		s.Fail(l, "pay", "no", fixture.ForGood)
		fixture.Equal(s, "verdict", s.Fail(l, "pay", "no", fixture.ForGood), engine.Verdict{Settled: 1})
		fixture.Equal(s, "failures", s.Step(l.RunID, "pay").Failures, 1)
		_, err := s.TryFail(l, "pay", "other", fixture.ForGood)
		s.Refused(err, engine.ErrConflict, "FailStep with other content")
		_, err = s.TryComplete(l, "pay", "paid")
		s.Refused(err, engine.ErrConflict, "CompleteStep")
		s.Cancel(l.RunID)
		fixture.Equal(s, "verdict after the end", s.Fail(l, "pay", "no", fixture.ForGood),
			engine.Verdict{Settled: 1})
	}},
	{Name: "the same failure of the next attempt counts again", Run: func(s *fixture.F) {
		l := s.Held()
		s.Begin(l, "pay")
		s.Now = s.Fail(l, "pay", "no", fixture.Holding).RetryAt
		s.Begin(l, "pay")
		v := s.Fail(l, "pay", "no", fixture.Holding)
		fixture.Equal(s, "verdict", v, engine.AfterStepFailed(nil, nil, 2, fixture.Boom("no"), s.Now, 0.5))
		fixture.Equal(s, "failures", s.Step(l.RunID, "pay").Failures, 2)
		s.Tried(l.RunID, 1, 2)
	}},
	{Name: "the failure of a retry that began too early counts", Run: func(s *fixture.F) {
		for _, message := range []string{"no", "something else"} {
			l := s.HeldAgain()
			first := s.Now.Add(-time.Second)
			v := s.Fail(l, "pay", "no", fixture.Holding, fixture.StartedAt(first))
			s.Now = v.RetryAt.Add(-20 * time.Millisecond) // the worker has another clock, or this one was set back
			second := s.Fail(l, "pay", message, fixture.Holding, fixture.StartedAt(s.Now))
			fixture.Equal(s, "verdict", second, engine.AfterStepFailed(nil, nil, 2, fixture.Boom(message), s.Now, 0.5))
			fixture.Equal(s, "failures", s.Step(l.RunID, "pay").Failures, 2)
			fixture.Equal(s, "verdict again", s.Fail(l, "pay", message, fixture.Holding, fixture.StartedAt(s.Now)),
				fixture.Repeated(second))
			fixture.Equal(s, "failures", s.Step(l.RunID, "pay").Failures, 2)
			s.Finish(l, "done")
		}
	}},
	{Name: "a repeated BeginStep and FailStep count once", Run: func(s *fixture.F) {
		l := s.Held()
		began := s.Now
		s.Begin(l, "pay", fixture.BeganAt(began))
		s.Pass(time.Second)
		v := s.Fail(l, "pay", "no", fixture.Holding, fixture.StartedAt(began))
		s.Now = v.RetryAt.Add(time.Minute)
		begun, err := s.TryBegin(l, "pay", fixture.BeganAt(began))
		s.Must(err, "BeginStep")
		fixture.Equal(s, "execute", begun.Execute, false)
		fixture.Equal(s, "status", begun.Step.Status, engine.StepPending)
		fixture.Equal(s, "verdict", s.Fail(l, "pay", "no", fixture.Holding, fixture.StartedAt(began)),
			fixture.Repeated(v))
		fixture.Equal(s, "attempts", len(s.Attempts(l.RunID, "pay")), 1)
		fixture.Equal(s, "failures", s.Step(l.RunID, "pay").Failures, 1)
		fixture.Equal(s, "attempt of the retry", s.Begin(l, "pay", fixture.BeganAt(s.Now)).Attempt, 2)
	}},
	{Name: "a failure with another StartedAt is recognized when repeated",
		Run: func(s *fixture.F) {
			l := s.Held()
			s.Begin(l, "pay")
			s.Pass(time.Second)
			v := s.Fail(l, "pay", "no", fixture.Holding, fixture.StartedAt(s.Now))
			fixture.Equal(s, "verdict", s.Fail(l, "pay", "no", fixture.Holding, fixture.StartedAt(s.Now)),
				fixture.Repeated(v))
			fixture.Equal(s, "failures", s.Step(l.RunID, "pay").Failures, 1)
		}},
	{Name: "a retry without delay may begin at the same time", Run: func(s *fixture.F) {
		l := s.Held()
		v := s.Fail(l, "pay", "no", fixture.Holding, fixture.StartedAt(s.Now.Add(time.Hour)),
			func(p *engine.FailStepParams) { p.Failure.RetryAfterMS = 1 })
		s.Now = v.RetryAt
		fixture.Equal(s, "attempt", s.Begin(l, "pay", fixture.BeganAt(s.Now.Add(time.Hour))).Attempt, 2)
	}},
	{Name: "a step due at its claim stays due if the clock goes back",
		Run: func(s *fixture.F) {
			l := s.Held(fixture.WithPolicy(engine.RetryPolicy{MaximumAttempts: 5, InitialIntervalMS: 1000, Jitter: -1}))
			s.Fail(l, "pay", "no", fixture.ForGood)
			child := s.Child(l, "ship")
			s.Cancel(child)
			s.Now = s.FailRun(l, "no").RetryAt
			l = s.Claim("w1").Lease
			s.Now = s.Now.Add(-20 * time.Millisecond)
			fixture.Equal(s, "attempt", s.Begin(l, "pay").Attempt, 2)
			fixture.Equal(s, "another child", s.Child(l, "ship") != child, true)
		}},
	{Name: "a run that waits for its retry is not woken by its steps", Run: func(s *fixture.F) {
		l := s.Held(fixture.WithPolicy(engine.RetryPolicy{MaximumAttempts: 3, InitialIntervalMS: 60_000}))
		s.Await(l, "approval", "go", fixture.HoldingOn)
		again := s.FailRun(l, "no").RetryAt
		s.Signal(l.RunID, "go", "!")
		s.SameTime("available at", s.Status(l.RunID, engine.RunPending).AvailableAt, again)
		s.ClaimNothing("w1")
	}},
	{Name: "a step of a lost worker can fail without a new BeginStep", Run: func(s *fixture.F) {
		l := s.Held()
		s.Begin(l, "pay")
		s.Lose("w1")
		l = s.Claim("w1").Lease
		fixture.Equal(s, "retry", s.Fail(l, "pay", "declined").Retry, true)
		step := s.Step(l.RunID, "pay")
		fixture.Equal(s, "attempt", step.Attempt, 2)
		fixture.Equal(s, "failures", step.Failures, 1)
		s.Tried(l.RunID, 1, 1)
	}},
}
