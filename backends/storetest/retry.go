package storetest

import (
	"fmt"
	"time"

	"github.com/kagzi/kagzi/engine"
)

var retryCases = []testCase{
	{"a step that fails waits for its retry, and its run with it", func(s *stage) {
		l := s.held()
		first := s.begin(l, "pay")
		s.pass(time.Second)
		v := s.fail(l, "pay", "no money")
		want := engine.AfterStepFailed(nil, nil, 1, boom("no money"), s.now, 0.5)
		equal(s, "verdict", v, want)

		step := s.step(l.RunID, "pay")
		equal(s, "attempt", step.ID, first.ID)
		equal(s, "status", step.Status, engine.StepPending)
		equal(s, "failures", step.Failures, 1)
		s.sameTime("retry at of the step", step.RetryAt, want.RetryAt)
		s.sameTime("timeout at", step.TimeoutAt, time.Time{})
		s.failure("error", step.Error, boom("no money"))
		run := s.status(l.RunID, engine.RunPending)
		equal(s, "attempts of the run", run.Attempts, 2)
		equal(s, "failures of the run", run.Failures, 0)
		equal(s, "worker", run.WorkerID, "")
		s.sameTime("available at", run.AvailableAt, want.RetryAt)
		equal(s, "bytes", run.Bytes, int64(len("input")+boom("no money").Size()))
		s.sameTime("next due", s.claimNothing("w1").NextDue, want.RetryAt)
	}},
	{"the next attempt counts on from the last", func(s *stage) {
		l := s.held()
		s.begin(l, "pay")
		v := s.fail(l, "pay", "first")
		s.now = v.RetryAt
		task := s.claim("w1")
		equal(s, "status in the history", task.History[0].Status, engine.StepPending)
		second := s.begin(task.Lease, "pay")
		equal(s, "attempt number", second.Attempt, 2)
		equal(s, "failures", second.Failures, 1)
		equal(s, "sequence", second.Sequence, 1)
		all := s.attempts(l.RunID, "pay")
		equal(s, "status of the first attempt", all[0].Status, engine.StepFailed)
		equal(s, "first is the latest", all[0].Latest, false)
		s.sameTime("retry at of the first attempt", all[0].RetryAt, v.RetryAt)

		s.complete(task.Lease, "pay", "paid")
		step := s.step(l.RunID, "pay")
		equal(s, "attempt number", step.Attempt, 2)
		equal(s, "failures", step.Failures, 1)
		equal(s, "attempts of the run", s.run(l.RunID).Attempts, 2)
	}},
	{"the next attempt goes by the policy that the step began with", func(s *stage) {
		l := s.held()
		s.begin(l, "pay", stepPolicy(engine.RetryPolicy{MaximumAttempts: 3, InitialIntervalMS: 20_000, Coefficient: 3, Jitter: -1}))
		for n, wait := range []time.Duration{20 * time.Second, time.Minute} {
			v := s.fail(l, "pay", "no")
			s.sameTime(fmt.Sprintf("retry at of attempt %d", n+1), v.RetryAt, s.now.Add(wait))
			s.now = v.RetryAt
			l = s.claim("w1").Lease
			s.begin(l, "pay")
		}
		equal(s, "the third is tried again", s.fail(l, "pay", "no").Retry, false)
	}},
	{"a step cannot begin before its retry is due", func(s *stage) {
		l := s.held()
		v := s.fail(l, "pay", "no", holding)
		s.now = v.RetryAt.Add(-time.Microsecond)
		_, err := s.tryBegin(l, "pay")
		s.refused(err, engine.ErrPrecondition, "BeginStep too early")
		equal(s, "attempts", len(s.attempts(l.RunID, "pay")), 1)
		s.now = v.RetryAt
		equal(s, "attempt number", s.begin(l, "pay").Attempt, 2)
	}},
	{"a retry that the code has no use for any more keeps its run from nothing", func(s *stage) {
		l := s.held(withPolicy(engine.RetryPolicy{MaximumAttempts: 5, InitialIntervalMS: 1000}))
		s.fail(l, "pay", "no", forGood)
		s.fail(l, "pay elsewhere", "no", forGood)
		s.now = s.failRun(l, "not paid").RetryAt
		l = s.claim("w1").Lease
		v := s.fail(l, "pay", "still no")
		s.sameTime("available at, while the first step waits", s.status(l.RunID, engine.RunPending).AvailableAt, v.RetryAt)
		s.now = v.RetryAt
		l = s.claim("w1").Lease
		s.complete(l, "pay", "paid") // so that nobody pays elsewhere
		s.sleep(l, "nap", time.Hour)
		s.parked(l.RunID, "timer:nap", s.now.Add(time.Hour))
		s.now = s.now.Add(time.Hour)
		s.finish(s.claim("w1").Lease, "done")
	}},
	{"a failure that was never announced is an attempt too", func(s *stage) {
		l := s.held()
		policy := engine.RetryPolicy{MaximumAttempts: 2, InitialIntervalMS: 20, Jitter: -1}
		id := s.id()
		began := s.now.Add(-time.Second)
		v := s.fail(l, "pay", "no", func(p *engine.FailStepParams) { p.ID, p.RetryPolicy, p.StartedAt = id, &policy, began })
		s.sameTime("retry at", v.RetryAt, s.now.Add(20*time.Millisecond))
		step := s.step(l.RunID, "pay")
		equal(s, "id", step.ID, id)
		equal(s, "status", step.Status, engine.StepPending)
		equal(s, "attempt number", step.Attempt, 1)
		equal(s, "failures", step.Failures, 1)
		s.sameTime("started at", step.StartedAt, began)
		equal(s, "policy", policyText(step.RetryPolicy), policyText(&policy))
		equal(s, "steps of the run", s.run(l.RunID).Steps, 1)
	}},
	{"a second failure that was never announced counts on", func(s *stage) {
		l := s.held()
		s.now = s.fail(l, "pay", "no").RetryAt
		l = s.claim("w1").Lease
		v := s.fail(l, "pay", "no")
		equal(s, "verdict", v, engine.AfterStepFailed(nil, nil, 2, boom("no"), s.now, 0.5))
		step := s.step(l.RunID, "pay")
		equal(s, "attempt number", step.Attempt, 2)
		equal(s, "failures", step.Failures, 2)
	}},
	{"when its budget is used up a step has failed for good and its code goes on", func(s *stage) {
		l := s.held()
		for n := 1; n < engine.DefaultAttempts; n++ {
			s.begin(l, "pay")
			s.now = s.fail(l, "pay", "no").RetryAt
			l = s.claim("w1").Lease
		}
		s.begin(l, "pay")
		v := s.fail(l, "pay", "no")
		equal(s, "verdict", v, engine.Verdict{})
		step := s.step(l.RunID, "pay")
		equal(s, "status", step.Status, engine.StepFailed)
		equal(s, "failures", step.Failures, engine.DefaultAttempts)
		equal(s, "attempts", len(s.attempts(l.RunID, "pay")), engine.DefaultAttempts)
		s.sameTime("finished at", step.FinishedAt, s.now)
		run := s.status(l.RunID, engine.RunRunning)
		equal(s, "attempts of the run", run.Attempts, engine.DefaultAttempts)
		s.complete(l, "refund", "done")
	}},
	{"a failure that must not be retried is final at once", func(s *stage) {
		l := s.held(withPolicy(engine.RetryPolicy{MaximumAttempts: 10, NonRetryable: []string{"fatal", "card declined"}}))
		equal(s, "by its flag", s.fail(l, "a", "no", forGood), engine.Verdict{})
		equal(s, "by its message", s.fail(l, "b", "card declined: 51"), engine.Verdict{})
		equal(s, "by its type", s.fail(l, "c", "x", func(p *engine.FailStepParams) { p.Failure.Type = "fatal" }), engine.Verdict{})
		equal(s, "attempts of the run", s.run(l.RunID).Attempts, 1)
		s.status(l.RunID, engine.RunRunning)
	}},
	{"a step's own policy goes before the run's", func(s *stage) {
		run := engine.RetryPolicy{MaximumAttempts: 2, InitialIntervalMS: 1000, Jitter: -1}
		own := engine.RetryPolicy{MaximumAttempts: -1, InitialIntervalMS: 10, Coefficient: 3, MaximumIntervalMS: 80, Jitter: -1}
		l := s.held(withPolicy(run))
		for _, ms := range []int64{10, 30, 80, 80} {
			s.begin(l, "pay", stepPolicy(own))
			v := s.fail(l, "pay", "no")
			s.sameTime("retry at", v.RetryAt, s.now.Add(time.Duration(ms)*time.Millisecond))
			s.now = v.RetryAt
			l = s.claim("w1").Lease
		}
		s.sameTime("retry at by the run's policy", s.fail(l, "ship", "no", holding).RetryAt, s.now.Add(time.Second))
	}},
	{"the failure's own wish for a delay is kept", func(s *stage) {
		l := s.held()
		v := s.fail(l, "pay", "busy", func(p *engine.FailStepParams) { p.Failure.RetryAfterMS = 12345 })
		s.sameTime("retry at", v.RetryAt, s.now.Add(12345*time.Millisecond))
		s.sameTime("available at", s.run(l.RunID).AvailableAt, v.RetryAt)
	}},
	{"luck moves the delay by the jitter", func(s *stage) {
		l := s.held()
		for i, roll := range []float64{0, 0.25, 0.999} {
			name := string(rune('a' + i))
			v := s.fail(l, name, "no", holding, func(p *engine.FailStepParams) { p.Roll = roll })
			s.sameTime("retry at", v.RetryAt, engine.AfterStepFailed(nil, nil, 1, boom("no"), s.now, roll).RetryAt)
		}
	}},
	{"interruptions between failures take nothing from the budget", func(s *stage) {
		l := s.held(withPolicy(engine.RetryPolicy{MaximumAttempts: 2, Jitter: -1}))
		for range 4 {
			s.begin(l, "pay")
			s.release(l, false)
			l = s.claim("w1").Lease
		}
		s.begin(l, "pay")
		v := s.fail(l, "pay", "no")
		equal(s, "first failure is retried", v.Retry, true)
		s.sameTime("after the first delay", v.RetryAt, s.now.Add(engine.DefaultInitialInterval))
		s.now = v.RetryAt
		l = s.claim("w1").Lease
		s.begin(l, "pay")
		s.lose("w1")
		l = s.claim("w1").Lease
		equal(s, "attempt number", s.begin(l, "pay").Attempt, 7)
		equal(s, "second failure", s.fail(l, "pay", "no"), engine.Verdict{})
		equal(s, "failures", s.step(l.RunID, "pay").Failures, 2)
		equal(s, "attempts of the run", s.run(l.RunID).Attempts, 2)
	}},
	{"a held failure keeps the lease for the siblings", func(s *stage) {
		l := s.held()
		s.begin(l, "a")
		s.begin(l, "b")
		v := s.fail(l, "a", "no", holding)
		run := s.status(l.RunID, engine.RunRunning)
		equal(s, "attempts of the run", run.Attempts, 2)
		s.complete(l, "b", "done")
		s.release(l, true)
		run = s.status(l.RunID, engine.RunPending)
		s.sameTime("available at", run.AvailableAt, v.RetryAt)
		equal(s, "attempts of the run", run.Attempts, 2)
	}},
	{"a retry that is not held interrupts the siblings", func(s *stage) {
		l := s.held()
		s.begin(l, "a")
		s.begin(l, "b")
		s.fail(l, "a", "no")
		s.failure("error of the sibling", s.step(l.RunID, "b").Error, engine.InterruptedFailure())
		s.failure("error of the step", s.step(l.RunID, "a").Error, boom("no"))
	}},
	{"of several retries the earliest wakes the run", func(s *stage) {
		l := s.held()
		after := func(ms int64) func(*engine.FailStepParams) {
			return func(p *engine.FailStepParams) { p.Failure.RetryAfterMS = ms }
		}
		s.fail(l, "a", "no", holding, after(3000))
		v := s.fail(l, "b", "no", holding, after(1000))
		s.fail(l, "c", "no", after(2000))
		s.sameTime("available at", s.run(l.RunID).AvailableAt, v.RetryAt)
		equal(s, "attempts of the run", s.run(l.RunID).Attempts, 4)
		s.now = v.RetryAt
		l = s.claim("w1").Lease
		_, err := s.tryBegin(l, "a")
		s.refused(err, engine.ErrPrecondition, "BeginStep of one that is not due")
		s.begin(l, "b")
	}},
	{"a repeated failure is quiet and gets the first verdict", func(s *stage) {
		l := s.held()
		s.begin(l, "pay")
		v := s.fail(l, "pay", "no")
		s.pass(time.Millisecond)
		again := func(when string) {
			s.Helper()
			equal(s, "verdict "+when, s.fail(l, "pay", "no"), repeated(v))
		}
		again("while PENDING")
		equal(s, "attempts of the run", s.run(l.RunID).Attempts, 2)
		equal(s, "failures", s.step(l.RunID, "pay").Failures, 1)
		s.now = v.RetryAt
		next := s.claim("w1").Lease
		again("after the next claim")
		s.begin(next, "pay")
		again("while the next attempt runs")
		s.complete(next, "pay", "paid")
		again("after the next attempt's result")
		s.finish(next, "done")
		again("after the end")
		equal(s, "attempts", len(s.attempts(l.RunID, "pay")), 2)
		_, err := s.tryFail(l, "pay", "something else")
		s.refused(err, engine.ErrConflict, "FailStep with other content")
	}},
	{"a repeated failure gets the first verdict also when the run ended while it waited", func(s *stage) {
		l := s.held()
		v := s.fail(l, "pay", "no")
		s.cancel(l.RunID)
		equal(s, "verdict after the end", s.fail(l, "pay", "no"), repeated(v))
	}},
	{"a repeated final failure is quiet", func(s *stage) {
		l := s.held()
		s.fail(l, "pay", "no", forGood)
		equal(s, "verdict", s.fail(l, "pay", "no", forGood), engine.Verdict{})
		equal(s, "failures", s.step(l.RunID, "pay").Failures, 1)
		_, err := s.tryFail(l, "pay", "other", forGood)
		s.refused(err, engine.ErrConflict, "FailStep with other content")
		_, err = s.tryComplete(l, "pay", "paid")
		s.refused(err, engine.ErrConflict, "CompleteStep")
		s.cancel(l.RunID)
		equal(s, "verdict after the end", s.fail(l, "pay", "no", forGood), engine.Verdict{})
	}},
	{"the same failure of the next attempt is a failure of its own", func(s *stage) {
		l := s.held()
		s.begin(l, "pay")
		s.now = s.fail(l, "pay", "no", holding).RetryAt
		s.begin(l, "pay")
		v := s.fail(l, "pay", "no", holding)
		equal(s, "verdict", v, engine.AfterStepFailed(nil, nil, 2, boom("no"), s.now, 0.5))
		equal(s, "failures", s.step(l.RunID, "pay").Failures, 2)
		equal(s, "attempts of the run", s.run(l.RunID).Attempts, 3)
	}},
	{"a retry that began too early by this clock has failed all the same", func(s *stage) {
		for _, message := range []string{"no", "something else"} {
			l := s.heldAgain()
			first := s.now.Add(-time.Second)
			v := s.fail(l, "pay", "no", holding, startedAt(first))
			s.now = v.RetryAt.Add(-20 * time.Millisecond) // the worker has another clock, or this one was set back
			second := s.fail(l, "pay", message, holding, startedAt(s.now))
			equal(s, "verdict", second, engine.AfterStepFailed(nil, nil, 2, boom(message), s.now, 0.5))
			equal(s, "failures", s.step(l.RunID, "pay").Failures, 2)
			equal(s, "verdict again", s.fail(l, "pay", message, holding, startedAt(s.now)), repeated(second))
			equal(s, "failures", s.step(l.RunID, "pay").Failures, 2)
			s.finish(l, "done")
		}
	}},
	{"a beginning and a failure that are told again count once, however late", func(s *stage) {
		l := s.held()
		began := s.now
		s.begin(l, "pay", beganAt(began))
		s.pass(time.Second)
		v := s.fail(l, "pay", "no", holding, startedAt(began))
		s.now = v.RetryAt.Add(time.Minute)
		begun, err := s.tryBegin(l, "pay", beganAt(began))
		s.must(err, "BeginStep")
		equal(s, "execute", begun.Execute, false)
		equal(s, "status", begun.Step.Status, engine.StepPending)
		equal(s, "verdict", s.fail(l, "pay", "no", holding, startedAt(began)), repeated(v))
		equal(s, "attempts", len(s.attempts(l.RunID, "pay")), 1)
		equal(s, "failures", s.step(l.RunID, "pay").Failures, 1)
		equal(s, "attempt of the retry", s.begin(l, "pay", beganAt(s.now)).Attempt, 2)
	}},
	{"a failure that tells another beginning than was announced is known by it when it comes again", func(s *stage) {
		l := s.held()
		s.begin(l, "pay")
		s.pass(time.Second)
		v := s.fail(l, "pay", "no", holding, startedAt(s.now))
		equal(s, "verdict", s.fail(l, "pay", "no", holding, startedAt(s.now)), repeated(v))
		equal(s, "failures", s.step(l.RunID, "pay").Failures, 1)
	}},
	{"a retry without a delay may begin in the moment in which the last attempt began", func(s *stage) {
		l := s.held()
		v := s.fail(l, "pay", "no", holding, startedAt(s.now.Add(time.Hour)), func(p *engine.FailStepParams) { p.Failure.RetryAfterMS = 1 })
		s.now = v.RetryAt
		equal(s, "attempt", s.begin(l, "pay", beganAt(s.now.Add(time.Hour))).Attempt, 2)
	}},
	{"what was due when its run was claimed is not too early although the clock is set back", func(s *stage) {
		l := s.held(withPolicy(engine.RetryPolicy{MaximumAttempts: 5, InitialIntervalMS: 1000, Jitter: -1}))
		s.fail(l, "pay", "no", forGood)
		child := s.child(l, "ship")
		s.cancel(child)
		s.now = s.failRun(l, "no").RetryAt
		l = s.claim("w1").Lease
		s.now = s.now.Add(-20 * time.Millisecond)
		equal(s, "attempt", s.begin(l, "pay").Attempt, 2)
		equal(s, "another child", s.child(l, "ship") != child, true)
	}},
	{"a run that waits to be tried again is not made due by what its code awaited", func(s *stage) {
		l := s.held(withPolicy(engine.RetryPolicy{MaximumAttempts: 3, InitialIntervalMS: 60_000}))
		s.await(l, "approval", "go", holdingOn)
		again := s.failRun(l, "no").RetryAt
		s.signal(l.RunID, "go", "!")
		s.sameTime("available at", s.status(l.RunID, engine.RunPending).AvailableAt, again)
		s.claimNothing("w1")
	}},
	{"a step that a lost worker left behind can fail without being begun again", func(s *stage) {
		l := s.held()
		s.begin(l, "pay")
		s.lose("w1")
		l = s.claim("w1").Lease
		equal(s, "retry", s.fail(l, "pay", "declined").Retry, true)
		step := s.step(l.RunID, "pay")
		equal(s, "attempt", step.Attempt, 2)
		equal(s, "failures", step.Failures, 1)
		equal(s, "attempts of the run", s.run(l.RunID).Attempts, 2)
	}},
}
