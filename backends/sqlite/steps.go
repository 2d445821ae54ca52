package sqlite

import (
	"cmp"
	"context"
	_ "embed"
	"time"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/complete_new_step.sql
var completeNewStepSQL string

//go:embed sql/count_step.sql
var countStepSQL string

// CompleteStep is one insert when the step is new, as nearly every step is: its code ran, and now it is reported. The run's
// counts follow before the commit (tally). Only when that did not apply does it look at what there is.
func (s *Store) CompleteStep(ctx context.Context, p engine.CompleteStepParams) (engine.Step, error) {
	p.Now, p.StartedAt = engine.Micros(p.Now), engine.Micros(p.StartedAt)
	size := p.Output.Size()
	return write(ctx, s, "CompleteStep", size, func(t *tx) (engine.Step, error) {
		if p.Step.ID.IsZero() {
			step, made, err := t.completeNewStep(&p, size)
			if err != nil || made {
				return step, err
			}
		}
		return t.completeStep(&p, size)
	})
}

// completeNewStep is the fast path. Where it does not apply, nothing is written.
func (t *tx) completeNewStep(p *engine.CompleteStepParams, size int) (engine.Step, bool, error) {
	step := engine.Step{
		ID: p.ID, RunID: p.Lease.RunID, Name: p.Step.Name, Kind: engine.StepFunction, Status: engine.StepCompleted, Attempt: 1, Latest: true,
		Output: p.Output, Token: p.Lease.Token, CreatedAt: p.Now, StartedAt: p.StartedAt, FinishedAt: p.Now,
	}
	if step.StartedAt.IsZero() {
		step.StartedAt = p.Now
	}
	lease, err := t.lease(p.Lease)
	if err != nil || lease == nil || lease.steps >= engine.MaxSteps || lease.bytes+int64(size) > engine.MaxRunBytes {
		return engine.Step{}, false, err
	}
	step.Sequence, step.WorkerID = lease.steps+1, lease.worker
	made, err := t.conn.exec(t.ctx, &completeNewStepSQL, idArg("step_id", p.ID), idArg("run_id", p.Lease.RunID), text("name", p.Step.Name),
		num("sequence", step.Sequence), blob("output", p.Output.Data), text("output_meta", encodeMap(p.Output.Metadata)),
		tokenArg("token", p.Lease.Token), text("worker_id", step.WorkerID), instant("started_at", step.StartedAt), instant("now", p.Now))
	if err != nil || made == 0 {
		return engine.Step{}, false, err
	}
	t.wrote = true
	t.tally.add(lease, size)
	t.ringRun(p.Lease.RunID)
	return step, true, nil
}

// count adds to what the run has recorded, in its lease.
func (t *tx) count(run engine.ID, steps, bytes int, progressed bool) error {
	t.forget(run)
	_, err := t.exec(&countStepSQL, idArg("run_id", run), num("steps", steps), num("bytes", bytes), flag("progressed", progressed))
	return err
}

// completeStep looks at the step's latest attempt.
func (t *tx) completeStep(p *engine.CompleteStepParams, size int) (engine.Step, error) {
	run, current, err := t.held(p.Lease)
	if err != nil {
		return engine.Step{}, err
	}
	if !current {
		return t.completeStepAgain(p)
	}
	prev, err := t.attempt(p.Lease.RunID, p.Step)
	if err != nil {
		return engine.Step{}, err
	}
	if prev != nil {
		switch {
		case prev.Status == engine.StepCompleted && prev.Kind != engine.StepSleep && prev.Token == p.Lease.Token && prev.Output.Equal(p.Output):
			return *prev, nil
		case prev.Kind == engine.StepSleep:
			return engine.Step{}, sleepOnly(prev.Name)
		case !prev.Latest, !prev.Open() && !prev.Interrupted():
			return engine.Step{}, engine.StepConflict(prev.Name, prev.Status)
		}
	}
	if run.bytes+int64(size) > engine.MaxRunBytes {
		return engine.Step{}, tooManyBytes("output", run.bytes, size)
	}
	step, fresh, err := next(&run, prev, p.Step.Name, p.ID, p.StartedAt, p.Now)
	if err != nil {
		return engine.Step{}, err
	}
	step.Status, step.Output, step.FinishedAt, step.TimeoutAt = engine.StepCompleted, p.Output, p.Now, time.Time{}
	if err := t.put(&run, prev, &step); err != nil {
		return engine.Step{}, err
	}
	return step, t.count(run.id, fresh, size, true)
}

// next is the attempt that a report is about: the one that runs or, where none does, a new one. fresh is 1 when the step
// itself is new.
func next(run *runState, prev *engine.Step, name string, id engine.ID, startedAt, now time.Time) (step engine.Step, fresh int, err error) {
	if prev != nil && prev.Status == engine.StepRunning {
		return *prev, 0, nil
	}
	step = engine.Step{
		ID: id, RunID: run.id, Name: name, Kind: engine.StepFunction, Status: engine.StepRunning, Attempt: 1, Latest: true,
		Sequence: run.steps + 1, Token: run.token, WorkerID: run.worker, CreatedAt: now, StartedAt: startedAt,
	}
	if startedAt.IsZero() {
		step.StartedAt = now
	}
	if prev == nil {
		if run.steps >= engine.MaxSteps {
			return step, 0, engine.TooLarge("step", "the run has %d steps already, at most %d are allowed", run.steps, engine.MaxSteps)
		}
		return step, 1, nil
	}
	step.Name, step.Kind, step.Attempt, step.Failures = prev.Name, prev.Kind, prev.Attempt+1, prev.Failures
	step.Sequence, step.RetryPolicy = prev.Sequence, prev.RetryPolicy
	return step, 0, nil
}

//go:embed sql/insert_step.sql
var insertStepSQL string

//go:embed sql/supersede_step.sql
var supersedeStepSQL string

//go:embed sql/update_step.sql
var updateStepSQL string

// put writes an attempt: over prev when it is the same, otherwise as a new one, with prev the latest no longer.
func (t *tx) put(run *runState, prev, step *engine.Step) error {
	step.Token, step.WorkerID = run.token, run.worker
	t.ringRun(run.id)
	if prev != nil && prev.ID == step.ID {
		return t.update(step)
	}
	if prev != nil {
		if _, err := t.exec(&supersedeStepSQL, idArg("step_id", prev.ID)); err != nil {
			return err
		}
	}
	_, err := t.exec(&insertStepSQL,
		idArg("step_id", step.ID), idArg("run_id", step.RunID), text("name", step.Name), num("kind", step.Kind), num("status", step.Status),
		num("attempt", step.Attempt), num("failures", step.Failures), num("sequence", step.Sequence),
		blob("input", step.Input.Data), text("input_meta", encodeMap(step.Input.Metadata)),
		blob("output", step.Output.Data), text("output_meta", encodeMap(step.Output.Metadata)), text("error", encodeFailure(step.Error)),
		tokenArg("token", step.Token), text("worker_id", step.WorkerID), instant("created_at", step.CreatedAt),
		instant("started_at", step.StartedAt), instant("finished_at", step.FinishedAt), instant("timeout_at", step.TimeoutAt),
		instant("retry_at", step.RetryAt), instant("wake_at", step.WakeAt), length("duration_us", step.Duration),
		text("retry_policy", encodePolicy(step.RetryPolicy)))
	return err
}

// update writes what can change of an attempt.
func (t *tx) update(step *engine.Step) error {
	_, err := t.exec(&updateStepSQL,
		idArg("step_id", step.ID), num("status", step.Status), num("failures", step.Failures),
		blob("output", step.Output.Data), text("output_meta", encodeMap(step.Output.Metadata)), text("error", encodeFailure(step.Error)),
		arg{Name: "token", Value: step.Token[:]}, text("worker_id", step.WorkerID), instant("started_at", step.StartedAt),
		instant("finished_at", step.FinishedAt), instant("timeout_at", step.TimeoutAt), instant("retry_at", step.RetryAt),
		instant("wake_at", step.WakeAt), length("duration_us", step.Duration))
	return err
}

//go:embed sql/get_attempt.sql
var getAttemptSQL string

//go:embed sql/get_latest_attempt.sql
var getLatestAttemptSQL string

// attempt finds what ref names: an attempt by its id, else the latest of the step of that name; nil when it has not begun.
func (t *tx) attempt(run engine.ID, ref engine.StepRef) (*engine.Step, error) {
	if !ref.ID.IsZero() {
		step, err := t.oneStep(&getAttemptSQL, idArg("step_id", ref.ID), idArg("run_id", run))
		if err != nil || step != nil {
			return step, err
		}
		if ref.Name == "" {
			return nil, engine.StepNotFound(ref)
		}
	}
	return t.oneStep(&getLatestAttemptSQL, idArg("run_id", run), text("name", ref.Name))
}

func (t *tx) oneStep(statement *string, args ...arg) (*engine.Step, error) {
	var step engine.Step
	found, err := t.found(statement, func(r *row) (err error) {
		step, err = readStep(r)
		return err
	}, args...)
	if err != nil || !found {
		return nil, err
	}
	return &step, nil
}

// BeginStep says what is known about the step, or that its code is to run.
func (s *Store) BeginStep(ctx context.Context, p engine.BeginStepParams) (engine.Begun, error) {
	p.Now, p.StartedAt = engine.Micros(p.Now), engine.Micros(p.StartedAt)
	size := p.Input.Size()
	return write(ctx, s, "BeginStep", size, func(t *tx) (engine.Begun, error) {
		run, current, err := t.held(p.Lease)
		if err != nil {
			return engine.Begun{}, err
		}
		if !current {
			return engine.Begun{}, t.lost(p.Lease)
		}
		prev, err := t.attempt(run.id, engine.StepRef{Name: p.Name})
		if err != nil {
			return engine.Begun{}, err
		}
		if prev != nil {
			switch {
			case prev.Kind != p.Kind:
				return engine.Begun{}, engine.StepConflict(prev.Name, prev.Status)
			case prev.Status == engine.StepRunning:
				return engine.Begun{Step: *prev, Execute: true}, nil
			case prev.Status == engine.StepPending && prev.RetryAt.After(p.Now):
				return engine.Begun{}, tooEarly(prev)
			case !prev.Open() && !prev.Interrupted():
				return engine.Begun{Step: *prev}, nil
			}
		}
		if run.bytes+int64(size) > engine.MaxRunBytes {
			return engine.Begun{}, tooManyBytes("input", run.bytes, size)
		}
		step, fresh, err := next(&run, prev, p.Name, p.ID, p.StartedAt, p.Now)
		if err != nil {
			return engine.Begun{}, err
		}
		step.Kind, step.Input = p.Kind, p.Input
		if p.RetryPolicy != nil {
			step.RetryPolicy = p.RetryPolicy
		}
		if p.Kind != engine.StepSleep {
			limit := cmp.Or(p.StartToClose, run.stepLimit, engine.DefaultStepTimeout)
			step.TimeoutAt = engine.Micros(step.StartedAt.Add(limit))
			t.ring(engine.Ring{Kind: engine.RingTimer})
		}
		if err := t.put(&run, prev, &step); err != nil {
			return engine.Begun{}, err
		}
		return engine.Begun{Step: step, Execute: true}, t.count(run.id, fresh, size, false)
	})
}

func tooEarly(step *engine.Step) error {
	return &engine.Error{Kind: engine.KindPrecondition, Subject: "step", SubjectID: step.Name,
		Message: "step " + step.Name + " is not to be tried again before " + step.RetryAt.Format(time.RFC3339Nano)}
}

func sleepOnly(name string) error {
	return &engine.Error{Kind: engine.KindPrecondition, Subject: "step", SubjectID: name,
		Message: "step " + name + " is a SLEEP: only time ends it"}
}

// FailStep records the failure and what follows from it.
func (s *Store) FailStep(ctx context.Context, p engine.FailStepParams) (engine.Verdict, error) {
	p.Now, p.StartedAt = engine.Micros(p.Now), engine.Micros(p.StartedAt)
	return write(ctx, s, "FailStep", p.Failure.Size(), func(t *tx) (v engine.Verdict, err error) {
		run, current, err := t.held(p.Lease)
		if err != nil {
			return v, err
		}
		if !current {
			return t.failStepAgain(&p)
		}
		prev, err := t.attempt(run.id, p.Step)
		if err != nil {
			return v, err
		}
		if prev != nil {
			if refusal, repeated := failsAgain(prev, &p); repeated {
				return verdictOf(prev), nil
			} else if refusal != nil {
				return v, refusal
			}
		}
		step, fresh, err := next(&run, prev, p.Step.Name, p.ID, p.StartedAt, p.Now)
		if err != nil {
			return v, err
		}
		if p.RetryPolicy != nil && step.RetryPolicy == nil {
			step.RetryPolicy = p.RetryPolicy
		}
		v = fail(&run, &step, p.Failure, p.Now, p.Roll)
		if err := t.put(&run, prev, &step); err != nil {
			return v, err
		}
		size := p.Failure.Size()
		run.bytes += int64(size)
		run.steps += int64(fresh)
		if v.Retry && !p.Hold {
			return v, t.park(&run, p.Now)
		}
		if err := t.count(run.id, fresh, size, false); err != nil || !v.Retry {
			return v, err
		}
		return v, t.setAttempts(&run)
	})
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
func (t *tx) setAttempts(run *runState) error {
	_, err := t.exec(&setAttemptsSQL, idArg("run_id", run.id), num("attempts", run.attempts))
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
