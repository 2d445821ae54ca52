package postgres

import (
	"context"
	_ "embed"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// FailStep records the failure and what follows from it.
func (s *Store) FailStep(ctx context.Context, p engine.FailStepParams) (v engine.Verdict, err error) {
	p.Now, p.StartedAt = engine.Micros(p.Now), engine.Micros(p.StartedAt)
	err = s.write("fail a step", func(ctx context.Context, t *tx) (err error) {
		v, err = t.failStep(ctx, &p)
		return err
	})
	if err != nil {
		return engine.Verdict{}, err
	}
	return v, nil
}

func (t *tx) failStep(ctx context.Context, p *engine.FailStepParams) (v engine.Verdict, err error) {
	run, err := t.runState(ctx, p.Lease.Namespace, p.Lease.RunID)
	if err != nil {
		return v, err
	}
	if !run.current(p.Lease) {
		return t.failStepAgain(ctx, run, p)
	}
	prev, err := t.attempt(ctx, run.id, p.Step)
	if err != nil {
		return v, err
	}
	if prev != nil {
		if refusal, repeated := failsAgain(prev, p); repeated {
			return verdictOf(prev), nil
		} else if refusal != nil {
			return v, refusal
		}
	}
	step, fresh, err := next(run, prev, p.Step.Name, p.ID, p.StartedAt, p.Now)
	if err != nil {
		return v, err
	}
	if p.RetryPolicy != nil && step.RetryPolicy == nil {
		step.RetryPolicy = p.RetryPolicy
	}
	v = fail(run, &step, p.Failure, p.Now, p.Roll)
	if err := t.put(ctx, run, prev, &step); err != nil {
		return v, err
	}
	size := p.Failure.Size()
	run.bytes += int64(size)
	run.steps += int64(fresh)
	if v.Retry && !p.Hold {
		return v, t.park(ctx, run, p.Now)
	}
	if err := t.count(ctx, run.id, fresh, size, false); err != nil || !v.Retry {
		return v, err
	}
	return v, t.setAttempts(ctx, run)
}

// fail makes the attempt a failed one, and asks the rule what follows.
func fail(run *runState, step *engine.Step, failure engine.Failure, now time.Time, roll float64) engine.Verdict {
	step.Failures++
	v := engine.AfterStepFailed(run.policy, step.RetryPolicy, step.Failures, failure, now, roll)
	step.Status, step.Error, step.FinishedAt, step.TimeoutAt = engine.StepFailed, &failure, now, time.Time{}
	if v.Retry {
		step.Status, step.RetryAt = engine.StepPending, v.RetryAt
		run.attempts++
	}
	return v
}

//go:embed sql/set_attempts.sql
var setAttemptsSQL string

// setAttempts writes the run's attempts while it stays RUNNING.
func (t *tx) setAttempts(ctx context.Context, run *runState) error {
	_, err := t.exec(ctx, setAttemptsSQL, args{"run_id": [16]byte(run.id), "attempts": run.attempts})
	return err
}

// failsAgain compares a failure that is reported under the current lease with the attempt that is there: it is a
// repetition, it is refused, or it is news.
func failsAgain(prev *engine.Step, p *engine.FailStepParams) (refusal error, repeated bool) {
	mine := prev.Token == p.Lease.Token && prev.Error != nil && prev.Error.Equal(p.Failure)
	conflict := engine.StepConflict(prev.Name, prev.Status)
	switch {
	case prev.Kind == engine.StepSleep:
		return sleepOnly(prev.Name), false
	case prev.Status == engine.StepRunning, prev.Interrupted() && prev.Latest:
		return nil, false
	case prev.Status == engine.StepPending && prev.Latest && !prev.RetryAt.After(p.Now) && !(mine && sameExecution(prev, p)):
		return nil, false // the retry, which failed too
	case mine:
		return nil, true
	}
	return conflict, false
}

// sameExecution says that the report is about the execution that the attempt recorded, as far as it tells.
func sameExecution(prev *engine.Step, p *engine.FailStepParams) bool {
	return p.StartedAt.IsZero() || p.StartedAt.Equal(prev.StartedAt)
}

// verdictOf is what was answered when the attempt failed.
func verdictOf(step *engine.Step) engine.Verdict {
	if step.RetryAt.IsZero() || step.Failures == 0 { // no failures: it was final, until the run was tried again
		return engine.Verdict{}
	}
	return engine.Verdict{Retry: true, RetryAt: step.RetryAt}
}
