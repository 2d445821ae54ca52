package storetest

import (
	"time"

	"github.com/kagzi/kagzi/engine"
)

var finishCases = []testCase{
	{"a completed run has its output and is over", func(s *stage) {
		l := s.held()
		s.complete(l, "pay", "paid")
		s.pass(time.Second)
		s.finish(l, "done")
		run := s.status(l.RunID, engine.RunCompleted)
		s.payload("output", run.Output, text("done"))
		s.payload("input", run.Input, text("input"))
		s.sameTime("finished at", run.FinishedAt, s.now)
		s.sameTime("available at", run.AvailableAt, time.Time{})
		equal(s, "worker", run.WorkerID, "w1")
		equal(s, "steps", run.Steps, 1)
		equal(s, "leases", len(s.heldBy("w1")), 0)
		s.claimNothing("w1")
	}},
	{"a repeated end is quiet, another end is a conflict", func(s *stage) {
		l := s.held()
		s.finish(l, "done")
		before := s.run(l.RunID)
		s.pass(time.Second)
		s.finish(l, "done")
		s.refused(s.tryFinish(l, "other"), engine.ErrConflict, "CompleteRun with another output")
		_, err := s.tryFailRun(l, "no")
		s.refused(err, engine.ErrConflict, "FailRun")
		s.sameRun(s.run(l.RunID), before)
	}},
	{"a run without a policy of its own fails at once", func(s *stage) {
		l := s.held()
		s.complete(l, "pay", "paid")
		equal(s, "verdict", s.failRun(l, "no"), failedForGood)
		run := s.status(l.RunID, engine.RunFailed)
		s.failure("error", run.Error, boom("no"))
		s.sameTime("finished at", run.FinishedAt, s.now)
		equal(s, "attempts", run.Attempts, 1)
		equal(s, "worker", run.WorkerID, "w1")
		equal(s, "steps", run.Steps, 1)
		equal(s, "repeated verdict", s.failRun(l, "no"), failedForGood)
		_, err := s.tryFailRun(l, "other")
		s.refused(err, engine.ErrConflict, "FailRun with another error")
		s.refused(s.tryFinish(l, "done"), engine.ErrConflict, "CompleteRun")
	}},
	{"a run with a policy is tried again after its delay", func(s *stage) {
		policy := engine.RetryPolicy{MaximumAttempts: 3, InitialIntervalMS: 50}
		l := s.held(withPolicy(policy))
		v := s.failRun(l, "no")
		equal(s, "verdict", v.Verdict, engine.AfterRunFailed(&policy, 1, boom("no"), s.now, 0.5))
		run := s.status(l.RunID, engine.RunPending)
		equal(s, "attempts", run.Attempts, 2)
		equal(s, "failures", run.Failures, 1)
		equal(s, "worker", run.WorkerID, "")
		s.sameTime("available at", run.AvailableAt, v.RetryAt)
		s.failure("error", run.Error, boom("no"))
		s.now = v.RetryAt
		l = s.claim("w1").Lease
		s.failure("error while it is tried again", s.status(l.RunID, engine.RunRunning).Error, boom("no"))
		v = s.failRun(l, "no")
		equal(s, "second verdict", v.Verdict, engine.AfterRunFailed(&policy, 2, boom("no"), s.now, 0.5))
		s.now = v.RetryAt
		l = s.claim("w1").Lease
		equal(s, "third verdict", s.failRun(l, "no"), failedForGood)
		run = s.status(l.RunID, engine.RunFailed)
		equal(s, "attempts", run.Attempts, 3)
	}},
	{"a run that succeeds when it is tried again has no error", func(s *stage) {
		l := s.held(withPolicy(engine.RetryPolicy{MaximumAttempts: 2}))
		s.now = s.failRun(l, "no").RetryAt
		s.finish(s.claim("w1").Lease, "done")
		run := s.status(l.RunID, engine.RunCompleted)
		if run.Error != nil {
			s.Fatalf("error = %v, want none", run.Error)
		}
	}},
	{"a retried run keeps its results and runs its failed steps again with a new budget", func(s *stage) {
		l := s.held(withPolicy(engine.RetryPolicy{MaximumAttempts: 2, Jitter: -1}))
		done := s.complete(l, "pay", "paid")
		for range 2 {
			s.begin(l, "ship")
			if v := s.fail(l, "ship", "no"); v.Retry {
				s.now = v.RetryAt
				l = s.claim("w1").Lease
			}
		}
		equal(s, "status of ship", s.step(l.RunID, "ship").Status, engine.StepFailed)
		s.begin(l, "pack")
		s.sleep(l, "nap", time.Hour, held)
		v := s.failRun(l, "no")
		equal(s, "retry", v.Retry, true)
		equal(s, "attempts", s.run(l.RunID).Attempts, 3)

		s.sameStep(s.step(l.RunID, "pay"), done)
		ship := s.step(l.RunID, "ship")
		equal(s, "status of ship", ship.Status, engine.StepPending)
		equal(s, "failures of ship", ship.Failures, 0)
		s.sameTime("retry at of ship", ship.RetryAt, v.RetryAt)
		equal(s, "pack is interrupted", ptr(s.step(l.RunID, "pack")).Interrupted(), true)
		equal(s, "status of the timer", s.step(l.RunID, "nap").Status, engine.StepRunning)

		s.now = v.RetryAt
		l = s.claim("w1").Lease
		again := s.begin(l, "ship")
		equal(s, "attempt number", again.Attempt, 3)
		equal(s, "failures", again.Failures, 0)
		equal(s, "retry of the new budget", s.fail(l, "ship", "no", holding).Retry, true)
		begun, err := s.tryBegin(l, "pay")
		s.must(err, "BeginStep of a completed step")
		equal(s, "execute", begun.Execute, false)
		equal(s, "steps", s.run(l.RunID).Steps, 4)
	}},
	{"of the attempts of a step that failed the latest alone runs again with its run", func(s *stage) {
		l := s.held(withPolicy(engine.RetryPolicy{MaximumAttempts: 2}))
		equal(s, "retry of the step", s.fail(l, "pay", "no").Retry, true)
		s.pass(time.Hour)
		l = s.claim("w1").Lease
		equal(s, "retry of the step", s.fail(l, "pay", "no").Retry, false)
		equal(s, "retry of the run", s.failRun(l, "no").Retry, true)
		attempts := s.attempts(l.RunID, "pay")
		equal(s, "attempts", len(attempts), 2)
		equal(s, "status of the first", attempts[0].Status, engine.StepFailed)
		equal(s, "status of the latest", attempts[1].Status, engine.StepPending)
	}},
	{"failures of steps do not use up the run's own budget", func(s *stage) {
		l := s.held(withPolicy(engine.RetryPolicy{MaximumAttempts: 2, Jitter: -1}))
		for range 3 {
			s.fail(l, "step-"+string(rune('a'+s.run(l.RunID).Attempts)), "no", holding)
		}
		run := s.run(l.RunID)
		equal(s, "attempts", run.Attempts, 4)
		equal(s, "failures", run.Failures, 0)
		v := s.failRun(l, "no")
		equal(s, "retry", v.Retry, true)
		s.sameTime("after the first delay", v.RetryAt, s.now.Add(engine.DefaultInitialInterval))
		equal(s, "attempts", s.run(l.RunID).Attempts, 5)
	}},
	{"an error that must not be retried ends the run whatever its policy", func(s *stage) {
		l := s.held(withPolicy(engine.RetryPolicy{MaximumAttempts: -1}))
		f := boom("no")
		f.NonRetryable = true
		v, err := s.store.FailRun(s.ctx, engine.FailRunParams{Lease: l, Failure: f, Now: s.now})
		s.must(err, "FailRun")
		equal(s, "verdict", v, failedForGood)
		s.failure("error", s.status(l.RunID, engine.RunFailed).Error, f)
	}},
	{"a repeated failure of a retried run gets the first verdict, whatever has become of it", func(s *stage) {
		l := s.held(withPolicy(engine.RetryPolicy{MaximumAttempts: 5}))
		v := s.failRun(l, "no")
		again := func(when string) {
			s.Helper()
			equal(s, "verdict "+when, s.failRun(l, "no").Verdict, repeated(v.Verdict))
		}
		again("while PENDING")
		run := s.run(l.RunID)
		equal(s, "attempts", run.Attempts, 2)
		equal(s, "failures", run.Failures, 1)
		_, err := s.tryFailRun(l, "other")
		s.refused(err, engine.ErrConflict, "FailRun with other content")
		s.now = v.RetryAt
		next := s.claim("w1").Lease
		again("while held by another")
		s.finish(next, "done")
		again("after the end")
		s.status(l.RunID, engine.RunCompleted)
	}},
	{"a step's final verdict is repeated also after its run was retried", func(s *stage) {
		l := s.held(withPolicy(engine.RetryPolicy{MaximumAttempts: 5}))
		s.fail(l, "pay", "no", forGood)
		s.failRun(l, "no")
		equal(s, "verdict", s.fail(l, "pay", "no", forGood), engine.Verdict{})
	}},
	{"whatever is open when a run ends has ended with it", func(s *stage) {
		for i, end := range []func(l engine.Lease){
			func(l engine.Lease) { s.finish(l, "done") },
			func(l engine.Lease) { s.failRun(l, "no") },
			func(l engine.Lease) { s.cancel(l.RunID) },
		} {
			l := s.heldAgain()
			done := s.complete(l, "done", "1")
			s.fail(l, "failed", "no", forGood)
			bad := s.step(l.RunID, "failed")
			s.begin(l, "running")
			verdict := s.fail(l, "pending", "no", holding)
			waiting := s.step(l.RunID, "pending")
			s.sleep(l, "timer", time.Hour, held)
			s.pass(time.Millisecond)
			end(l)
			for _, name := range []string{"running", "timer"} {
				step := s.step(l.RunID, name)
				equal(s, "status of "+name, step.Status, engine.StepFailed)
				s.failure("error of "+name, step.Error, engine.RunEndedFailure())
				s.sameTime("finished at of "+name, step.FinishedAt, s.now)
				s.sameTime("timeout at of "+name, step.TimeoutAt, time.Time{})
			}
			waiting.Status = engine.StepFailed // as it is: why it failed, and when, is not lost
			s.sameStep(s.step(l.RunID, "pending"), waiting)
			equal(s, "verdict again", s.fail(l, "pending", "no", holding), repeated(verdict))
			s.sameStep(s.step(l.RunID, "done"), done)
			s.sameStep(s.step(l.RunID, "failed"), bad)
			if next := s.claimNothing("w1").NextDue; !next.IsZero() {
				s.Fatalf("after end %d something is still due at %s", i, clock(next))
			}
		}
	}},
	{"a released run is due at once and nothing was counted", func(s *stage) {
		l := s.held()
		s.complete(l, "pay", "paid")
		s.pass(time.Second)
		s.release(l, false)
		run := s.status(l.RunID, engine.RunPending)
		s.sameTime("available at", run.AvailableAt, s.now)
		equal(s, "attempts", run.Attempts, 1)
		equal(s, "failures", run.Failures, 0)
		equal(s, "losses", run.LeaseLosses, 0)
		equal(s, "worker", run.WorkerID, "")
		equal(s, "steps", run.Steps, 1)
		equal(s, "bytes", run.Bytes, int64(len("input")+len("paid")))
		task := s.claim("w1")
		equal(s, "history", len(task.History), 1)
		equal(s, "attempts of the task", task.Run.Attempts, 1)
	}},
	{"a release that does not park ignores timers and retries", func(s *stage) {
		l := s.held()
		s.sleep(l, "nap", time.Hour, held)
		s.fail(l, "pay", "no", holding)
		s.release(l, false)
		run := s.status(l.RunID, engine.RunPending)
		s.sameTime("available at", run.AvailableAt, s.now)
		equal(s, "waiting for", run.WaitingFor, "")
		s.claim("w1")
		equal(s, "status of the timer", s.step(l.RunID, "nap").Status, engine.StepRunning)
	}},
	{"a repeated release is quiet, whatever has become of the run", func(s *stage) {
		l := s.held()
		s.release(l, false)
		s.release(l, false)
		next := s.claim("w1").Lease
		s.release(l, false)
		s.status(l.RunID, engine.RunRunning)
		equal(s, "holders", len(s.heldBy("w1")), 1)
		s.finish(next, "done")
		s.release(l, false)
		s.status(l.RunID, engine.RunCompleted)
	}},
	{"the output of an ended run stays what it was", func(s *stage) {
		l := s.held()
		s.finish(l, "done")
		before := s.run(l.RunID)
		s.pass(time.Minute)
		_ = s.tryFinish(l, "other")
		_ = s.tryFinish(engine.Lease{Namespace: space, RunID: l.RunID, Token: s.token()}, "other")
		_, _ = s.tryFailRun(l, "no")
		_, _ = s.tryComplete(l, "pay", "x")
		_ = s.tryRelease(l, false)
		_, _ = s.store.CancelRun(s.ctx, s.endParams(l.RunID, "x"))
		s.sameRun(s.run(l.RunID), before)
		equal(s, "steps", len(s.attempts(l.RunID, "")), 0)
	}},
}

func ptr[V any](v V) *V { return &v }
