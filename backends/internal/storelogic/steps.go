package storelogic

import (
	"cmp"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// BeginStep returns what is recorded of the step, or says that its code must run.
func BeginStep(tx Tx, p engine.BeginStepParams) (engine.Begun, error) {
	u := begin(tx, p.Now)
	run, current, err := u.held(p.Lease)
	if err != nil {
		return engine.Begun{}, err
	}
	if !current {
		return engine.Begun{}, engine.LeaseLost(run.ID, run.Status)
	}
	prev, err := tx.Attempt(run.ID, engine.StepRef{Name: p.Name})
	if err != nil {
		return engine.Begun{}, err
	}
	if prev != nil {
		switch {
		case prev.Kind != p.Kind:
			return engine.Begun{}, engine.StepConflict(prev.Name, prev.Status)
		case prev.Status == engine.StepRunning:
			return engine.Begun{Step: *prev, Execute: true}, nil
		case heardBefore(prev, &p):
			return engine.Begun{Step: *prev}, nil
		case tooEarly(run, prev, u.now):
			return engine.Begun{}, notBefore(prev)
		case !toRunAgain(prev):
			return engine.Begun{Step: *prev}, nil
		}
	}
	size := p.Input.Size()
	if run.Bytes+int64(size) > engine.MaxRunBytes {
		return engine.Begun{}, tooManyBytes("input", run.Bytes, size)
	}
	step, fresh, err := next(run, prev, p.Name, p.Branch, p.ID, engine.Micros(p.StartedAt), u.now)
	if err != nil {
		return engine.Begun{}, err
	}
	step.Kind, step.Input = p.Kind, p.Input
	if p.RetryPolicy != nil {
		step.RetryPolicy = p.RetryPolicy
	}
	if p.Kind == engine.StepFunction {
		limit := cmp.Or(p.StartToClose, run.Timeouts.StartToClose, engine.DefaultStepTimeout)
		step.TimeoutAt = engine.Micros(u.now.Add(limit + p.Margin)) // not from StartedAt, the worker's clock
		u.notifyTimer()
	}
	if err := u.put(run, prev, &step); err != nil {
		return engine.Begun{}, err
	}
	u.count(run, fresh, size)
	return engine.Begun{Step: step, Execute: true}, u.flush()
}

// CompleteStep records the step's result, unless it has one.
func CompleteStep(tx Tx, p engine.CompleteStepParams) (engine.Step, error) {
	u := begin(tx, p.Now)
	run, current, err := u.held(p.Lease)
	if err != nil {
		return engine.Step{}, err
	}
	if !current {
		return u.completeStepAgain(run, &p)
	}
	prev, err := u.attempt(run, p.Step)
	if err != nil {
		return engine.Step{}, err
	}
	if prev != nil {
		switch {
		case prev.Kind != engine.StepFunction:
			return engine.Step{}, notByCode(prev)
		case prev.Status == engine.StepCompleted && prev.Token == p.Lease.Token && prev.Output.Equal(p.Output):
			return *prev, nil
		case !prev.Latest, !prev.Open() && !prev.Interrupted():
			return engine.Step{}, engine.StepConflict(prev.Name, prev.Status)
		}
	}
	size := p.Output.Size()
	if run.Bytes+int64(size) > engine.MaxRunBytes {
		return engine.Step{}, tooManyBytes("output", run.Bytes, size)
	}
	step, fresh, err := next(run, prev, p.Step.Name, p.Branch, p.ID, engine.Micros(p.StartedAt), u.now)
	if err != nil {
		return engine.Step{}, err
	}
	step.Status, step.Output, step.FinishedAt, step.TimeoutAt = engine.StepCompleted, p.Output, u.now, time.Time{}
	u.settle(run, &step)
	if step.Name == engine.CancelledStep {
		if err := u.forgetOpen(run); err != nil {
			return engine.Step{}, err
		}
	}
	if err := u.put(run, prev, &step); err != nil {
		return engine.Step{}, err
	}
	u.count(run, fresh, size)
	u.progress(run)
	if err := u.yield(run); err != nil {
		return engine.Step{}, err
	}
	return step, u.flush()
}

// attempt returns the attempt that ref names: by id, or the latest of the step of that name; nil if
// there is none.
func (u *unitOfWork) attempt(run *Run, ref engine.StepRef) (*engine.Step, error) {
	step, err := u.tx.Attempt(run.ID, ref)
	if err == nil && step == nil && ref.Name == "" {
		err = engine.StepNotFound(ref)
	}
	return step, err
}

// toRunAgain says whether another attempt follows this one, which is not running.
func toRunAgain(prev *engine.Step) bool {
	return prev.Status == engine.StepPending || prev.Interrupted()
}

// next returns the attempt that a report is about: the running one or, if none runs, a new one.
// fresh is 1 for a new step.
func next(run *Run, prev *engine.Step, name, branch string, id engine.ID, startedAt, now time.Time) (step engine.Step,
	fresh int, err error) {
	if prev != nil && prev.Status == engine.StepRunning {
		return *prev, 0, nil
	}
	step = engine.Step{
		ID: id, RunID: run.ID, Name: name, Kind: engine.StepFunction, Status: engine.StepRunning, Attempt: 1,
		Latest:   true,
		Sequence: run.Steps + 1, Token: run.Token, WorkerID: run.Holder, CreatedAt: now, StartedAt: startedAt,
		Branch: branch, BegunIn: run.OwedFrom,
	}
	if startedAt.IsZero() {
		step.StartedAt = now
	}
	if prev == nil {
		if run.Steps >= engine.MaxSteps {
			return step, 0, engine.TooLarge("step", "the run has %d steps already, at most %d are allowed", run.Steps,
				engine.MaxSteps)
		}
		return step, 1, nil
	}
	step.Name, step.Kind, step.Attempt, step.Failures = prev.Name, prev.Kind, prev.Attempt+1, prev.Failures
	step.Sequence, step.RetryPolicy = prev.Sequence, prev.RetryPolicy
	return step, 0, nil
}

// put writes an attempt: over prev if it is the same attempt, otherwise as a new one, and prev is
// no longer the latest.
func (u *unitOfWork) put(run *Run, prev, step *engine.Step) error {
	step.Token, step.WorkerID = run.Token, run.Holder
	u.change(run)
	u.forgetDivergences(run)
	if prev != nil && prev.ID == step.ID {
		return u.tx.SaveStep(step)
	}
	if prev != nil {
		if err := u.tx.Supersede(prev.ID); err != nil {
			return err
		}
	}
	return u.tx.InsertSteps([]engine.Step{*step})
}

// count adds to the run's counts.
func (u *unitOfWork) count(run *Run, steps, bytes int) {
	u.change(run)
	run.Steps += int64(steps)
	run.Bytes += int64(bytes)
}

// tooEarly says whether the step must not be tried yet. A step that was due when its run was
// claimed stays due, because the clock may have been set back since.
func tooEarly(run *Run, step *engine.Step, now time.Time) bool {
	return step.Status == engine.StepPending && step.RetryAt.After(now) && step.RetryAt.After(run.ClaimedAt)
}

func notBefore(step *engine.Step) error {
	return &engine.Error{Kind: engine.KindPrecondition, Subject: "step", SubjectID: step.Name,
		Message: "step " + step.Name + " must not be tried again before " + step.RetryAt.Format(time.RFC3339Nano)}
}

// notByCode refuses a report about a step that has no code of its own.
func notByCode(step *engine.Step) error {
	ends := "time"
	switch step.Kind {
	case engine.StepSignal:
		ends = "its signal or its limit"
	case engine.StepChild:
		ends = "the end of its run"
	}
	return &engine.Error{Kind: engine.KindPrecondition, Subject: "step", SubjectID: step.Name,
		Message: "step " + step.Name + " is a " + step.Kind.String() + ": only " + ends + " ends it"}
}

// tooManyBytes refuses what would take a run over its limit.
func tooManyBytes(field string, bytes int64, size int) error {
	return engine.TooLarge(field, "would take the run to %d bytes, at most %d are allowed", bytes+int64(size),
		engine.MaxRunBytes)
}
