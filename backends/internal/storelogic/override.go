package storelogic

import (
	"time"

	"github.com/kagzi/kagzi/engine"
)

// OverrideStep records the result that a person sets for a step.
func OverrideStep(tx Tx, p engine.OverrideStepParams) (engine.Step, error) {
	u := begin(tx, p.Now)
	run, err := u.run(p.Namespace, p.RunID)
	if err != nil {
		return engine.Step{}, err
	}
	prev, err := u.attempt(run, engine.StepRef{Name: p.Step})
	switch {
	case err != nil:
		return engine.Step{}, err
	case prev != nil && recordedBefore(prev, &p):
		return *prev, nil
	case !run.Paused && !endedBadly(run.Status):
		return engine.Step{},
			notNow(run, "have a step overridden unless it is paused, FAILED, CANCELLED, TIMED_OUT or TERMINATED")
	case prev == nil:
		return engine.Step{}, engine.StepNotFound(engine.StepRef{Name: p.Step})
	case hasResult(prev, &p):
		return *prev, nil
	}
	step, size := overridden(prev, &p, u.now)
	run.OwedFrom++
	if !run.Status.Ended() {
		run.FinalToken = engine.Token{} // a worker that keeps the code does not know the result
	}
	if run.Bytes+int64(size) > engine.MaxRunBytes {
		return engine.Step{}, tooManyBytes("result", run.Bytes, size)
	}
	if err := u.supersede(prev); err != nil {
		return engine.Step{}, err
	}
	if err := tx.InsertSteps([]engine.Step{step}); err != nil {
		return engine.Step{}, err
	}
	u.count(run, 0, size)
	u.forgetDivergences(run)
	if run.Paused {
		u.due(run)
	}
	if err := u.audit(p.By, p.AuditID, "OverrideStep", onRun(run), p.Reason, p.Step); err != nil {
		return engine.Step{}, err
	}
	return step, u.flush()
}

// recordedBefore says whether this override was recorded before. It is then answered again, no
// matter what happened to the run since.
func recordedBefore(step *engine.Step, p *engine.OverrideStepParams) bool {
	return step.OverrideReason != "" && step.OverrideReason == p.Reason && step.OverriddenBy == p.By.Name &&
		hasResult(step, p)
}

// hasResult says whether the step has the override's result.
func hasResult(step *engine.Step, p *engine.OverrideStepParams) bool {
	if p.Output != nil {
		return step.Status == engine.StepCompleted && step.Output.Equal(*p.Output)
	}
	return step.Status == engine.StepFailed && step.Error != nil && step.Error.Equal(*p.Failure)
}

// overridden returns the attempt that replaces prev, and the bytes that it records.
func overridden(prev *engine.Step, p *engine.OverrideStepParams, now time.Time) (engine.Step, int) {
	step := engine.Step{
		ID: p.ID, RunID: prev.RunID, Name: prev.Name, Kind: prev.Kind, Attempt: prev.Attempt + 1,
		Failures: prev.Failures, Latest: true,
		Sequence: prev.Sequence, CreatedAt: now, StartedAt: now, FinishedAt: now, WakeAt: prev.WakeAt,
		Duration:    prev.Duration,
		RetryPolicy: prev.RetryPolicy, SignalName: prev.SignalName, ChildType: prev.ChildType,
		ChildRunID:   prev.ChildRunID,
		OverriddenBy: p.By.Name, OverrideReason: p.Reason,
		Settled: prev.Settled, Branch: prev.Branch, BegunIn: prev.BegunIn,
	}
	if step.Settled == engine.Unsettled || !hadResult(prev) {
		unsettled(&step)
	}
	if p.Output != nil {
		step.Status, step.Output = engine.StepCompleted, *p.Output
		return step, p.Output.Size()
	}
	step.Status, step.Error = engine.StepFailed, p.Failure
	return step, p.Failure.Size()
}

// hadResult says whether the latest attempt had a result for the code; not if the end of the run cut it
// short, or its wait for a retry. A result of an older version has no place in the order of results,
// and what replaces it gets none.
func hadResult(step *engine.Step) bool {
	switch {
	case step.Open(), step.Interrupted():
		return false
	case step.Status == engine.StepFailed:
		return step.RetryAt.IsZero() && !step.Error.Equal(engine.RunEndedFailure())
	}
	return true
}

// supersede closes an attempt that another result replaces.
func (u *unitOfWork) supersede(prev *engine.Step) error {
	if prev.Open() {
		failure := engine.OverriddenFailure()
		prev.Status, prev.Error, prev.FinishedAt = engine.StepFailed, &failure, u.now
		prev.TimeoutAt, prev.Awaited = time.Time{}, 0
		if err := u.tx.SaveStep(prev); err != nil {
			return err
		}
	} else if prev.Awaited != 0 {
		if err := u.tx.SetAwaited([]engine.ID{prev.ID}, 0); err != nil {
			return err
		}
	}
	return u.tx.Supersede(prev.ID)
}
