package storelogic

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/kagzi/kagzi/engine"
)

// Writes whose lease is over. They change nothing; this file decides their answer.

// The operations that leave receipts, as stored in the column verb.
const (
	sleepVerb         = "Sleep"
	awaitSignalVerb   = "AwaitSignal"
	awaitChildrenVerb = "AwaitChildren"
	failRunVerb       = "FailRun"
	releaseVerb       = "Release"
)

// repeats says whether both are receipts of the same write.
func (r Receipt) repeats(other Receipt) bool {
	return r.Verb == other.Verb && r.Content == other.Content
}

// writtenUnder returns the attempt of the step that this lease wrote; nil if none.
func (u *unitOfWork) writtenUnder(run *Run, l engine.Lease, ref engine.StepRef) (step *engine.Step, err error) {
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

// endedOtherwise answers a report of the run's end whose lease is over: a conflict if the lease
// ended with another report.
func endedOtherwise(run *Run, l engine.Lease, rec Receipt) error {
	if rec.Verb == failRunVerb || rec.Verb == releaseVerb || finishedUnder(run, l) {
		return &engine.Error{Kind: engine.KindConflict, Subject: "run", SubjectID: run.ID.String(), Status: run.Status,
			Message: "run " + run.ID.String() + " already has another reported result under this lease: it is " +
				run.Status.String()}
	}
	return engine.LeaseLost(run.ID, run.Status)
}

// finishedUnder says whether the code reported the end of the run under this lease.
func finishedUnder(run *Run, l engine.Lease) bool {
	return run.Status.Ended() && !l.Token.IsZero() && run.FinalToken == l.Token
}

// cutShort says whether the attempt was ended by a lost lease, the run's end or a timeout instead
// of the step's code.
func cutShort(step *engine.Step) bool {
	return step.Error != nil && (step.Interrupted() || step.Error.Equal(engine.RunEndedFailure()) ||
		step.Error.Equal(engine.StepTimedOutFailure()))
}

func (u *unitOfWork) completeStepAgain(run *Run, p *engine.CompleteStepParams) (engine.Step, error) {
	step, err := u.writtenUnder(run, p.Lease, p.Step)
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
	step, err := u.writtenUnder(run, p.Lease, p.Step)
	switch {
	case err != nil:
		return engine.Verdict{}, err
	case step == nil:
		return engine.Verdict{}, engine.LeaseLost(run.ID, run.Status)
	case step.Error != nil && step.Error.Equal(p.Failure):
		return verdictOf(step), nil
	case cutShort(step) && step.Failures > 0 && !step.RetryAt.IsZero() && step.Error.Equal(engine.RunEndedFailure()):
		// it waited for its retry when the run ended; older versions recorded no more than that
		return verdictOf(step), nil
	case cutShort(step):
		return engine.Verdict{}, engine.LeaseLost(run.ID, run.Status)
	}
	return engine.Verdict{}, engine.StepConflict(step.Name, step.Status)
}

// asked says whether the run is the one that a start asks for: same type, queue, external id and
// input. If the run is gone, the answer is unknown.
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

// digest returns a hash that represents a value in a receipt.
func digest(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic("storelogic: " + err.Error()) // numbers, strings and ids always encode
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
