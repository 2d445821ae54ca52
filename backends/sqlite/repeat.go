package sqlite

import (
	_ "embed"

	"github.com/kagzi/kagzi/engine"
)

// Writes about steps whose lease is over. They change nothing; what this file decides is the answer.

//go:embed sql/get_attempt_of_lease.sql
var getAttemptOfLeaseSQL string

// trace is what the lease has left at the step, nil if nothing, and the answer for a write that has not counted.
func (t *tx) trace(l engine.Lease, ref engine.StepRef) (step *engine.Step, lost error, err error) {
	run, err := t.runState(l.Namespace, l.RunID)
	if err != nil {
		return nil, nil, err
	}
	lost = engine.LeaseLost(run.id, run.status)
	if !ref.ID.IsZero() {
		step, err = t.oneStep(&getAttemptSQL, idArg("step_id", ref.ID), idArg("run_id", l.RunID))
	}
	if err == nil && step == nil && ref.Name != "" {
		step, err = t.oneStep(&getAttemptOfLeaseSQL, idArg("run_id", l.RunID), text("name", ref.Name), tokenArg("token", l.Token))
	}
	if step != nil && step.Token != l.Token {
		step = nil
	}
	return step, lost, err
}

// lost is the answer for a write that cannot have counted.
func (t *tx) lost(l engine.Lease) error {
	run, err := t.runState(l.Namespace, l.RunID)
	if err != nil {
		return err
	}
	return engine.LeaseLost(run.id, run.status)
}

// endedOtherwise is the answer to a report of the run's end under a lease that is over: a conflict if the lease ended with
// another report.
func (t *tx) endedOtherwise(l engine.Lease, run *runState, rec receipt) error {
	if rec.verb != "" && rec.verb != sleepVerb || !l.Token.IsZero() && run.finalToken == l.Token {
		return runConflict(run.id, run.status)
	}
	return engine.LeaseLost(run.id, run.status)
}

// ended says that it was not the step's code that ended the attempt: a lost lease, the run's end or a timeout did.
func ended(step *engine.Step) bool {
	return step.Error != nil && (step.Interrupted() || step.Error.Equal(engine.RunEndedFailure()) || step.Error.Equal(engine.StepTimedOutFailure()))
}

func (t *tx) completeStepAgain(p *engine.CompleteStepParams) (engine.Step, error) {
	step, lost, err := t.trace(p.Lease, p.Step)
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

func (t *tx) failStepAgain(p *engine.FailStepParams) (engine.Verdict, error) {
	step, lost, err := t.trace(p.Lease, p.Step)
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
