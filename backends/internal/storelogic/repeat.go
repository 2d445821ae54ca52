package storelogic

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/kagzi/kagzi/engine"
)

// Writes under a lease that is over. They change nothing; what this file decides is the answer.

// The operations that leave receipts, as column verb has them.
const (
	sleepVerb         = "Sleep"
	awaitSignalVerb   = "AwaitSignal"
	awaitChildrenVerb = "AwaitChildren"
	failRunVerb       = "FailRun"
	releaseVerb       = "Release"
)

// repeats says that the two stand for the same write.
func (r Receipt) repeats(other Receipt) bool {
	return r.Verb == other.Verb && r.Content == other.Content
}

// trace is what the lease has left at the step, nil if nothing.
func (u *unitOfWork) trace(run *Run, l engine.Lease, ref engine.StepRef) (step *engine.Step, err error) {
	if !ref.ID.IsZero() {
		step, err = u.tx.Attempt(run.ID, engine.StepRef{ID: ref.ID})
	}
	if err == nil && step == nil && ref.Name != "" {
		step, err = u.tx.AttemptOf(run.ID, ref.Name, l.Token)
	}
	if step != nil && step.Token != l.Token {
		step = nil
	}
	return step, err
}

// endedOtherwise is the answer to a report of the run's end under a lease that is over: a conflict
// if the lease ended with another report.
func endedOtherwise(run *Run, l engine.Lease, rec Receipt) error {
	if rec.Verb == failRunVerb || rec.Verb == releaseVerb || finishedUnder(run, l) {
		return &engine.Error{Kind: engine.KindConflict, Subject: "run", SubjectID: run.ID.String(), Status: run.Status,
			Message: "run " + run.ID.String() + " was already reported otherwise under this lease: it is " +
				run.Status.String()}
	}
	return engine.LeaseLost(run.ID, run.Status)
}

// finishedUnder says that it was this lease whose code reported the end of the run.
func finishedUnder(run *Run, l engine.Lease) bool {
	return !l.Token.IsZero() && run.FinalToken == l.Token
}

// cutShort says that it was not the step's code that ended the attempt: a lost lease, the run's end or a timeout did.
func cutShort(step *engine.Step) bool {
	return step.Error != nil && (step.Interrupted() || step.Error.Equal(engine.RunEndedFailure()) ||
		step.Error.Equal(engine.StepTimedOutFailure()))
}

func (u *unitOfWork) completeStepAgain(run *Run, p *engine.CompleteStepParams) (engine.Step, error) {
	step, err := u.trace(run, p.Lease, p.Step)
	switch {
	case err != nil:
		return engine.Step{}, err
	case step == nil:
		return engine.Step{}, engine.LeaseLost(run.ID, run.Status)
	case step.Kind != engine.StepFunction:
		return engine.Step{}, engine.StepConflict(step.Name, step.Status)
	case step.Status == engine.StepCompleted && step.Output.Equal(p.Output):
		return *step, nil
	case cutShort(step):
		return engine.Step{}, engine.LeaseLost(run.ID, run.Status)
	}
	return engine.Step{}, engine.StepConflict(step.Name, step.Status)
}

func (u *unitOfWork) failStepAgain(run *Run, p *engine.FailStepParams) (engine.Verdict, error) {
	step, err := u.trace(run, p.Lease, p.Step)
	switch {
	case err != nil:
		return engine.Verdict{}, err
	case step == nil:
		return engine.Verdict{}, engine.LeaseLost(run.ID, run.Status)
	case step.Error != nil && step.Error.Equal(p.Failure):
		return verdictOf(step), nil
	case cutShort(step) && step.Failures > 0 && !step.RetryAt.IsZero() && step.Error.Equal(engine.RunEndedFailure()):
		// it waited for its retry when the run ended, under a version that recorded no more than that
		return verdictOf(step), nil
	case cutShort(step):
		return engine.Verdict{}, engine.LeaseLost(run.ID, run.Status)
	}
	return engine.Verdict{}, engine.StepConflict(step.Name, step.Status)
}

// asked says that a run is the one that a start asks for, by what a start is known by: its type,
// queue, external id and input. Of a run that is gone nobody can tell.
func (u *unitOfWork) asked(id engine.ID, start *engine.Run) (bool, error) {
	known, err := u.find("", id)
	if err != nil || known == nil {
		return err == nil, err
	}
	if known.Type != start.Type || known.Queue != start.Queue || known.ExternalID != start.ExternalID {
		return false, nil
	}
	input, _, err := u.tx.Payloads(id)
	return err == nil && input.Equal(start.Input), err
}

// digest stands for a value in a receipt.
func digest(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic("storelogic: " + err.Error()) // numbers, strings and ids always encode
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
