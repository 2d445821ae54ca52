package postgres

import (
	"context"
	_ "embed"

	"github.com/kagzi/kagzi/engine"
)

// Writes about steps whose lease is over. They change nothing; what this file decides is the answer.

//go:embed sql/get_attempt_of_lease.sql
var getAttemptOfLeaseSQL string

// trace is what the lease has left at the step, nil if nothing, and the answer for a write that has not counted.
func (t *tx) trace(ctx context.Context, run *runState, l engine.Lease, ref engine.StepRef) (step *engine.Step, lost error, err error) {
	lost = engine.LeaseLost(run.id, run.status)
	if !ref.ID.IsZero() {
		step, err = t.oneStep(ctx, getAttemptSQL, args{"step_id": [16]byte(ref.ID), "run_id": [16]byte(l.RunID)})
	}
	if err == nil && step == nil && ref.Name != "" {
		step, err = t.oneStep(ctx, getAttemptOfLeaseSQL, args{"run_id": [16]byte(l.RunID), "name": ref.Name, "token": [16]byte(l.Token)})
	}
	if step != nil && (step.Token != l.Token || l.Token.IsZero()) {
		step = nil
	}
	return step, lost, err
}

// endedOtherwise is the answer to a report of the run's end under a lease that is over: a conflict if the lease ended with
// another report.
func endedOtherwise(l engine.Lease, run *runState, rec receipt) error {
	if rec.verb != "" && rec.verb != sleepVerb || !l.Token.IsZero() && run.finalToken == l.Token {
		return runConflict(run.id, run.status)
	}
	return engine.LeaseLost(run.id, run.status)
}

// ended says that it was not the step's code that ended the attempt: a lost lease, the run's end or a timeout did.
func ended(step *engine.Step) bool {
	return step.Error != nil && (step.Interrupted() || step.Error.Equal(engine.RunEndedFailure()) || step.Error.Equal(engine.StepTimedOutFailure()))
}

func (t *tx) completeStepAgain(ctx context.Context, run *runState, p *engine.CompleteStepParams) (engine.Step, error) {
	step, lost, err := t.trace(ctx, run, p.Lease, p.Step)
	switch {
	case err != nil:
		return engine.Step{}, err
	case step == nil:
		return engine.Step{}, lost
	case step.Kind == engine.StepSleep:
		return engine.Step{}, engine.StepConflict(step.Name, step.Status)
	case step.Status == engine.StepCompleted && step.Output.Equal(p.Output):
		return *step, nil
	case ended(step):
		return engine.Step{}, lost
	}
	return engine.Step{}, engine.StepConflict(step.Name, step.Status)
}

func (t *tx) failStepAgain(ctx context.Context, run *runState, p *engine.FailStepParams) (engine.Verdict, error) {
	step, lost, err := t.trace(ctx, run, p.Lease, p.Step)
	switch {
	case err != nil:
		return engine.Verdict{}, err
	case step == nil:
		return engine.Verdict{}, lost
	case step.Error != nil && step.Error.Equal(p.Failure):
		return verdictOf(step), nil
	case ended(step) && step.Failures > 0 && !step.RetryAt.IsZero() && step.Error.Equal(engine.RunEndedFailure()):
		return verdictOf(step), nil // it waited for its retry when the run ended
	case ended(step):
		return engine.Verdict{}, lost
	}
	return engine.Verdict{}, engine.StepConflict(step.Name, step.Status)
}

func (t *tx) beginStepAgain(ctx context.Context, run *runState, p *engine.BeginStepParams) (engine.Begun, error) {
	step, lost, err := t.trace(ctx, run, p.Lease, engine.StepRef{Name: p.Name})
	switch {
	case err != nil:
		return engine.Begun{}, err
	case step == nil:
		return engine.Begun{}, lost
	case step.Kind != p.Kind:
		return engine.Begun{}, engine.StepConflict(step.Name, step.Status)
	case step.Status == engine.StepCompleted || step.Status == engine.StepFailed && !ended(step):
		return engine.Begun{Step: *step}, nil
	}
	return engine.Begun{}, lost
}
