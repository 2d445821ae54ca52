package runs

import (
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

var FinishCases = []fixture.Case{
	{Name: "a completed run has its output", Run: func(s *fixture.F) {
		l := s.Held()
		s.Complete(l, "pay", "paid")
		s.Pass(time.Second)
		s.Finish(l, "done")
		run := s.Status(l.RunID, engine.RunCompleted)
		s.Payload("output", run.Output, fixture.Text("done"))
		s.Payload("input", run.Input, fixture.Text("input"))
		s.SameTime("finished at", run.FinishedAt, s.Now)
		s.SameTime("available at", run.AvailableAt, time.Time{})
		fixture.Equal(s, "worker", run.WorkerID, "w1")
		fixture.Equal(s, "steps", run.Steps, 1)
		fixture.Equal(s, "leases", len(s.HeldBy("w1")), 0)
		s.ClaimNothing("w1")
	}},
	{Name: "repeating an end returns it, another end is a conflict", Run: func(s *fixture.F) {
		l := s.Held()
		s.Finish(l, "done")
		before := s.Run(l.RunID)
		s.Pass(time.Second)
		s.Finish(l, "done")
		s.Refused(s.TryFinish(l, "other"), engine.ErrConflict, "CompleteRun with another output")
		_, err := s.TryFailRun(l, "no")
		s.Refused(err, engine.ErrConflict, "FailRun")
		s.SameRun(s.Run(l.RunID), before)
	}},
	{Name: "a run without a policy of its own fails at once", Run: func(s *fixture.F) {
		l := s.Held()
		s.Complete(l, "pay", "paid")
		fixture.Equal(s, "verdict", s.FailRun(l, "no"), fixture.FailedForGood)
		run := s.Status(l.RunID, engine.RunFailed)
		s.Failure("error", run.Error, fixture.Boom("no"))
		s.SameTime("finished at", run.FinishedAt, s.Now)
		fixture.Equal(s, "attempts", run.Attempts, 1)
		fixture.Equal(s, "worker", run.WorkerID, "w1")
		fixture.Equal(s, "steps", run.Steps, 1)
		fixture.Equal(s, "repeated verdict", s.FailRun(l, "no"), fixture.FailedForGood)
		_, err := s.TryFailRun(l, "other")
		s.Refused(err, engine.ErrConflict, "FailRun with another error")
		s.Refused(s.TryFinish(l, "done"), engine.ErrConflict, "CompleteRun")
	}},
	{Name: "a run with a policy is tried again after its delay", Run: func(s *fixture.F) {
		policy := engine.RetryPolicy{MaximumAttempts: 3, InitialIntervalMS: 50}
		l := s.Held(fixture.WithPolicy(policy))
		v := s.FailRun(l, "no")
		fixture.Equal(s, "verdict", v.Verdict, engine.AfterRunFailed(&policy, 1, fixture.Boom("no"), s.Now, 0.5))
		run := s.Status(l.RunID, engine.RunPending)
		fixture.Equal(s, "attempts", run.Attempts, 2)
		fixture.Equal(s, "failures", run.Failures, 1)
		fixture.Equal(s, "worker", run.WorkerID, "")
		s.SameTime("available at", run.AvailableAt, v.RetryAt)
		s.Failure("error", run.Error, fixture.Boom("no"))
		s.Now = v.RetryAt
		l = s.Claim("w1").Lease
		s.Failure("error while it is tried again", s.Status(l.RunID, engine.RunRunning).Error, fixture.Boom("no"))
		v = s.FailRun(l, "no")
		fixture.Equal(s, "second verdict", v.Verdict, engine.AfterRunFailed(&policy, 2, fixture.Boom("no"), s.Now, 0.5))
		s.Now = v.RetryAt
		l = s.Claim("w1").Lease
		fixture.Equal(s, "third verdict", s.FailRun(l, "no"), fixture.FailedForGood)
		run = s.Status(l.RunID, engine.RunFailed)
		s.Tried(l.RunID, 3, 0)
	}},
	{Name: "a run that succeeds on its retry has no error", Run: func(s *fixture.F) {
		l := s.Held(fixture.WithPolicy(engine.RetryPolicy{MaximumAttempts: 2}))
		s.Now = s.FailRun(l, "no").RetryAt
		s.Finish(s.Claim("w1").Lease, "done")
		run := s.Status(l.RunID, engine.RunCompleted)
		if run.Error != nil {
			s.Fatalf("error = %v, want none", run.Error)
		}
	}},
	{Name: "a retried run keeps results and gets a new step budget",
		Run: func(s *fixture.F) {
			l := s.Held(fixture.WithPolicy(engine.RetryPolicy{MaximumAttempts: 2, Jitter: -1}))
			done := s.Complete(l, "pay", "paid")
			for range 2 {
				s.Begin(l, "ship")
				if v := s.Fail(l, "ship", "no"); v.Retry {
					s.Now = v.RetryAt
					l = s.Claim("w1").Lease
				}
			}
			fixture.Equal(s, "status of ship", s.Step(l.RunID, "ship").Status, engine.StepFailed)
			s.Begin(l, "pack")
			s.Sleep(l, "nap", time.Hour, fixture.Held)
			v := s.FailRun(l, "no")
			fixture.Equal(s, "retry", v.Retry, true)
			s.Tried(l.RunID, 2, 1)

			s.SameStep(s.Step(l.RunID, "pay"), done)
			ship := s.Step(l.RunID, "ship")
			fixture.Equal(s, "status of ship", ship.Status, engine.StepPending)
			fixture.Equal(s, "failures of ship", ship.Failures, 0)
			s.SameTime("retry at of ship", ship.RetryAt, v.RetryAt)
			fixture.Equal(s, "pack is interrupted", fixture.Ptr(s.Step(l.RunID, "pack")).Interrupted(), true)
			fixture.Equal(s, "status of the timer", s.Step(l.RunID, "nap").Status, engine.StepRunning)

			s.Now = v.RetryAt
			l = s.Claim("w1").Lease
			again := s.Begin(l, "ship")
			fixture.Equal(s, "attempt number", again.Attempt, 3)
			fixture.Equal(s, "failures", again.Failures, 0)
			fixture.Equal(s, "retry of the new budget", s.Fail(l, "ship", "no", fixture.Holding).Retry, true)
			begun, err := s.TryBegin(l, "pay")
			s.Must(err, "BeginStep of a completed step")
			fixture.Equal(s, "execute", begun.Execute, false)
			fixture.Equal(s, "steps", s.Run(l.RunID).Steps, 4)
		}},
	{Name: "only the latest failed attempt of a step runs again", Run: func(s *fixture.F) {
		l := s.Held(fixture.WithPolicy(engine.RetryPolicy{MaximumAttempts: 2}))
		fixture.Equal(s, "retry of the step", s.Fail(l, "pay", "no").Retry, true)
		s.Pass(time.Hour)
		l = s.Claim("w1").Lease
		fixture.Equal(s, "retry of the step", s.Fail(l, "pay", "no").Retry, false)
		fixture.Equal(s, "retry of the run", s.FailRun(l, "no").Retry, true)
		attempts := s.Attempts(l.RunID, "pay")
		fixture.Equal(s, "attempts", len(attempts), 2)
		fixture.Equal(s, "status of the first", attempts[0].Status, engine.StepFailed)
		fixture.Equal(s, "status of the latest", attempts[1].Status, engine.StepPending)
	}},
	{Name: "failures of steps do not use up the run's own budget", Run: func(s *fixture.F) {
		l := s.Held(fixture.WithPolicy(engine.RetryPolicy{MaximumAttempts: 2, Jitter: -1}))
		for _, step := range []string{"a", "b", "c"} {
			s.Fail(l, step, "no", fixture.Holding)
		}
		s.Tried(l.RunID, 1, 3)
		v := s.FailRun(l, "no")
		fixture.Equal(s, "retry", v.Retry, true)
		s.SameTime("after the first delay", v.RetryAt, s.Now.Add(engine.DefaultInitialInterval))
		s.Tried(l.RunID, 2, 3)
	}},
	{Name: "a run's own policy is apart from that of its steps", Run: func(s *fixture.F) {
		times := func(n int) *engine.RetryPolicy {
			return &engine.RetryPolicy{MaximumAttempts: n, InitialIntervalMS: int64(n), Jitter: -1}
		}
		s.Worker("w1")
		for _, c := range []struct {
			what         string
			steps, own   *engine.RetryPolicy
			ofStep, runs int
		}{
			{"neither", nil, nil, engine.DefaultAttempts, 1},
			{"one for both", times(2), nil, 2, 2},
			{"the steps' alone", times(4), times(1), 4, 1},
			{"the run's alone", nil, times(2), engine.DefaultAttempts, 2},
			{"one each", times(2), times(3), 2, 3},
		} {
			l := s.HeldNext(func(r *engine.StartRun) { r.RetryPolicy, r.RunRetryPolicy = c.steps, c.own })
			run, executions := l.RunID, 0
			for attempt := 1; attempt <= c.runs; attempt++ {
				for n := 1; n <= c.ofStep; n++ {
					s.Begin(l, "pay")
					executions++
					if v := s.Fail(l, "pay", "no"); v.Retry != (n < c.ofStep) {
						s.Fatalf("%s: failure %d of the step in attempt %d is %+v", c.what, n, attempt, v)
					} else if v.Retry {
						s.Now = v.RetryAt
						l = s.Claim("w1").Lease
					}
				}
				v := s.FailRun(l, "no")
				if v.Retry != (attempt < c.runs) {
					s.Fatalf("%s: failure %d of the run is %+v", c.what, attempt, v)
				} else if v.Retry {
					if c.own != nil {
						s.SameTime(c.what, v.RetryAt, s.Now.Add(c.own.Backoff(attempt, 0)))
					}
					s.Now = v.RetryAt
					l = s.Claim("w1").Lease
				}
			}
			fixture.Equal(s, c.what+": executions", executions, c.ofStep*c.runs)
			s.Tried(run, c.runs, (c.ofStep-1)*c.runs)
		}
	}},
	{Name: "a non-retryable error ends the run despite its policy", Run: func(s *fixture.F) {
		l := s.Held(fixture.WithPolicy(engine.RetryPolicy{MaximumAttempts: -1}))
		f := fixture.Boom("no")
		f.NonRetryable = true
		v, err := s.Store.FailRun(s.Ctx, engine.FailRunParams{Lease: l, Failure: f, Now: s.Now})
		s.Must(err, "FailRun")
		fixture.Equal(s, "verdict", v, fixture.FailedForGood)
		s.Failure("error", s.Status(l.RunID, engine.RunFailed).Error, f)
	}},
	{Name: "repeating a run's failure returns the first verdict",
		Run: func(s *fixture.F) {
			l := s.Held(fixture.WithPolicy(engine.RetryPolicy{MaximumAttempts: 5}))
			v := s.FailRun(l, "no")
			again := func(when string) {
				s.Helper()
				fixture.Equal(s, "verdict "+when, s.FailRun(l, "no").Verdict, fixture.Repeated(v.Verdict))
			}
			again("while PENDING")
			run := s.Run(l.RunID)
			fixture.Equal(s, "attempts", run.Attempts, 2)
			fixture.Equal(s, "failures", run.Failures, 1)
			_, err := s.TryFailRun(l, "other")
			s.Refused(err, engine.ErrConflict, "FailRun with other content")
			s.Now = v.RetryAt
			next := s.Claim("w1").Lease
			again("while held by another")
			s.Finish(next, "done")
			again("after the end")
			s.Status(l.RunID, engine.RunCompleted)
		}},
	{Name: "a step's final verdict is repeated after a run retry", Run: func(s *fixture.F) {
		l := s.Held(fixture.WithPolicy(engine.RetryPolicy{MaximumAttempts: 5}))
		s.Fail(l, "pay", "no", fixture.ForGood)
		s.FailRun(l, "no")
		fixture.Equal(s, "verdict", s.Fail(l, "pay", "no", fixture.ForGood), engine.Verdict{})
	}},
	{Name: "everything open in a run ends with it", Run: func(s *fixture.F) {
		for i, end := range []func(l engine.Lease){
			func(l engine.Lease) { s.Finish(l, "done") },
			func(l engine.Lease) { s.FailRun(l, "no") },
			func(l engine.Lease) { s.Cancel(l.RunID) },
		} {
			l := s.HeldAgain()
			done := s.Complete(l, "done", "1")
			s.Fail(l, "failed", "no", fixture.ForGood)
			bad := s.Step(l.RunID, "failed")
			s.Begin(l, "running")
			verdict := s.Fail(l, "pending", "no", fixture.Holding)
			waiting := s.Step(l.RunID, "pending")
			s.Sleep(l, "timer", time.Hour, fixture.Held)
			s.Pass(time.Millisecond)
			end(l)
			for _, name := range []string{"running", "timer"} {
				step := s.Step(l.RunID, name)
				fixture.Equal(s, "status of "+name, step.Status, engine.StepFailed)
				s.Failure("error of "+name, step.Error, engine.RunEndedFailure())
				s.SameTime("finished at of "+name, step.FinishedAt, s.Now)
				s.SameTime("timeout at of "+name, step.TimeoutAt, time.Time{})
			}
			waiting.Status = engine.StepFailed // it keeps its error and time
			s.SameStep(s.Step(l.RunID, "pending"), waiting)
			fixture.Equal(s, "verdict again", s.Fail(l, "pending", "no", fixture.Holding), fixture.Repeated(verdict))
			s.SameStep(s.Step(l.RunID, "done"), done)
			s.SameStep(s.Step(l.RunID, "failed"), bad)
			if next := s.ClaimNothing("w1").NextDue; !next.IsZero() {
				s.Fatalf("after end %d something is still due at %s", i, fixture.Clock(next))
			}
		}
	}},
	{Name: "a released run is due at once, with no loss counted", Run: func(s *fixture.F) {
		l := s.Held()
		s.Complete(l, "pay", "paid")
		s.Pass(time.Second)
		s.Release(l, false)
		run := s.Status(l.RunID, engine.RunPending)
		s.SameTime("available at", run.AvailableAt, s.Now)
		fixture.Equal(s, "attempts", run.Attempts, 1)
		fixture.Equal(s, "failures", run.Failures, 0)
		fixture.Equal(s, "losses", run.LeaseLosses, 0)
		fixture.Equal(s, "worker", run.WorkerID, "")
		fixture.Equal(s, "steps", run.Steps, 1)
		fixture.Equal(s, "bytes", run.Bytes, int64(len("input")+len("paid")))
		task := s.Claim("w1")
		fixture.Equal(s, "history", len(task.History), 1)
		fixture.Equal(s, "attempts of the task", task.Run.Attempts, 1)
	}},
	{Name: "a release that does not park ignores timers and retries", Run: func(s *fixture.F) {
		l := s.Held()
		s.Sleep(l, "nap", time.Hour, fixture.Held)
		s.Fail(l, "pay", "no", fixture.Holding)
		s.Release(l, false)
		run := s.Status(l.RunID, engine.RunPending)
		s.SameTime("available at", run.AvailableAt, s.Now)
		fixture.Equal(s, "waiting for", run.WaitingFor, "")
		s.Claim("w1")
		fixture.Equal(s, "status of the timer", s.Step(l.RunID, "nap").Status, engine.StepRunning)
	}},
	{Name: "a repeated release changes nothing", Run: func(s *fixture.F) {
		l := s.Held()
		s.Release(l, false)
		s.Release(l, false)
		next := s.Claim("w1").Lease
		s.Release(l, false)
		s.Status(l.RunID, engine.RunRunning)
		fixture.Equal(s, "holders", len(s.HeldBy("w1")), 1)
		s.Finish(next, "done")
		s.Release(l, false)
		s.Status(l.RunID, engine.RunCompleted)
	}},
	{Name: "the output of an ended run stays what it was", Run: func(s *fixture.F) {
		l := s.Held()
		s.Finish(l, "done")
		before := s.Run(l.RunID)
		s.Pass(time.Minute)
		_ = s.TryFinish(l, "other")
		_ = s.TryFinish(engine.Lease{Namespace: fixture.Space, RunID: l.RunID, Token: s.Token()}, "other")
		_, _ = s.TryFailRun(l, "no")
		_, _ = s.TryComplete(l, "pay", "x")
		_ = s.TryRelease(l, false)
		_, _ = s.Store.CancelRun(s.Ctx, s.EndParams(l.RunID, "x"))
		s.SameRun(s.Run(l.RunID), before)
		fixture.Equal(s, "steps", len(s.Attempts(l.RunID, "")), 0)
	}},
}
