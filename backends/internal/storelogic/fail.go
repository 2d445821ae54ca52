package storelogic

import (
	"time"

	"github.com/kagzi/kagzi/engine"
)

// FailStep records the failure and what follows from it.
func FailStep(tx Tx, p engine.FailStepParams) (v engine.Verdict, err error) {
	p.StartedAt = engine.Micros(p.StartedAt)
	u := begin(tx, p.Now)
	run, current, err := u.held(p.Lease)
	if err != nil {
		return v, err
	}
	if !current {
		return u.failStepAgain(run, &p)
	}
	prev, err := u.attempt(run, p.Step)
	if err != nil {
		return v, err
	}
	if prev != nil {
		if refusal, repeated := failsAgain(run, prev, &p, u.now); repeated {
			return verdictOf(prev), nil
		} else if refusal != nil {
			return v, refusal
		}
	}
	step, fresh, err := next(run, prev, p.Step.Name, p.Branch, p.ID, p.StartedAt, u.now)
	if err != nil {
		return v, err
	}
	if p.RetryPolicy != nil && step.RetryPolicy == nil {
		step.RetryPolicy = p.RetryPolicy
	}
	if !p.StartedAt.IsZero() {
		step.StartedAt = p.StartedAt // identifies a repetition
	}
	v = fail(run, &step, p.Failure, u.now, p.Margin, p.Jitter)
	if !v.Retry {
		u.settle(run, &step)
		v.Settled = step.Settled
	}
	if err := u.put(run, prev, &step); err != nil {
		return v, err
	}
	u.count(run, fresh, p.Failure.Size())
	u.clearSuspect(run)
	switch {
	case p.Hold:
	case v.Retry:
		err = u.suspend(run)
	default:
		err = u.yield(run)
	}
	if err != nil {
		return v, err
	}
	return v, u.flush()
}

// fail makes the attempt a failed one, and asks the rule what follows.
func fail(run *Run, step *engine.Step, failure engine.Failure, now time.Time, margin time.Duration,
	jitter float64) engine.Verdict {
	step.Failures++
	v := engine.AfterStepFailed(run.RetryPolicy, step.RetryPolicy, step.Failures, failure, now.Add(margin), jitter)
	step.Status, step.Error, step.FinishedAt, step.TimeoutAt = engine.StepFailed, &failure, now, time.Time{}
	if v.Retry {
		step.Status, step.RetryAt = engine.StepPending, v.RetryAt
		run.Attempts++
	}
	return v
}

// failsAgain compares a failure reported under the current lease with the recorded attempt: it is a
// repetition, refused, or new.
func failsAgain(run *Run, prev *engine.Step, p *engine.FailStepParams, now time.Time) (refusal error, repeated bool) {
	mine := prev.Token == p.Lease.Token && prev.Error != nil && prev.Error.Equal(p.Failure)
	switch {
	case prev.Kind != engine.StepFunction:
		return notByCode(prev), false
	case prev.Status == engine.StepRunning, prev.Interrupted() && prev.Latest:
		return nil, false
	case prev.Status == engine.StepPending && prev.Latest &&
		(anotherExecution(prev, p.StartedAt) || !mine && !tooEarly(run, prev, now)):
		return nil, false // the failure of the retry, even if the retry began too early by this clock: its code has run
	case mine:
		return nil, true
	}
	return engine.StepConflict(prev.Name, prev.Status), false
}

// anotherExecution says whether a report is about an execution other than the recorded attempt;
// false if it does not tell.
func anotherExecution(prev *engine.Step, startedAt time.Time) bool {
	return !startedAt.IsZero() && !startedAt.Equal(prev.StartedAt)
}

// heardBefore says whether the BeginStep is for the execution whose failure is recorded already:
// the worker got no answer to either call and repeats both. A retry would begin at RetryAt or
// later, by the worker's clock.
func heardBefore(prev *engine.Step, p *engine.BeginStepParams) bool {
	return prev.Status == engine.StepPending && prev.Token == p.Lease.Token &&
		engine.Micros(p.StartedAt).Equal(prev.StartedAt) && prev.StartedAt.Before(prev.RetryAt)
}

// verdictOf returns the answer given when the attempt failed, for repetitions.
func verdictOf(step *engine.Step) engine.Verdict {
	if step.RetryAt.IsZero() || step.Failures == 0 { // no failures: it was final until the run was retried
		return engine.Verdict{Settled: max(step.Settled, 0)}
	}
	return engine.Verdict{Retry: true, RetryAt: step.RetryAt}
}
