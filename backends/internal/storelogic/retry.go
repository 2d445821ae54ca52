package storelogic

import (
	"slices"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// RetryRun makes a new run out of one that has ended badly.
func RetryRun(tx Tx, p engine.RetryRunParams) (engine.Started, error) {
	u := begin(tx, p.Now)
	p.Now = u.now
	if p.RequestID != "" {
		answer, err := u.retriedBefore(&p)
		if err != nil || answer.Repeated {
			return answer, err
		}
	}
	run, err := u.run(p.Namespace, p.RunID)
	if err != nil {
		return engine.Started{}, err
	}
	if !endedBadly(run.Status) {
		return engine.Started{}, notNow(run, "be retried")
	}
	steps, err := u.kept(run, &p)
	if err != nil {
		return engine.Started{}, err
	}
	if run.Input, _, err = tx.Payloads(run.ID); err != nil {
		return engine.Started{}, err
	}
	start := engine.RetryOf(&run.Run, &p)
	active, err := tx.OpenRetry(run.ID)
	switch {
	case err != nil:
		return engine.Started{}, err
	case !active.IsZero():
		return engine.Started{RunID: active, Existed: true}, u.leaveRetry(&p, active)
	}
	if err := u.enabled(run.Namespace); err != nil {
		return engine.Started{}, err
	}
	if start.Origin == engine.OriginUser {
		if err := u.externalIDFree(run.Namespace, start.ExternalID); err != nil {
			return engine.Started{}, err
		}
	}
	signals, err := tx.Unconsumed(run.ID)
	if err != nil {
		return engine.Started{}, err
	}
	if err := u.startWith(start, steps, signals); err != nil {
		return engine.Started{}, err
	}
	if err := u.leaveRetry(&p, p.ID); err != nil {
		return engine.Started{}, err
	}
	if err := u.audit(p.By, p.AuditID, "RetryWorkflow", onRun(run), p.Reason, retryDetail(&p)); err != nil {
		return engine.Started{}, err
	}
	return engine.Started{RunID: p.ID}, u.flush()
}

// leaveRetry remembers what the retry asked for, and its answer: the new run does not tell from which step it goes on.
func (u *unitOfWork) leaveRetry(p *engine.RetryRunParams, answer engine.ID) error {
	if p.RequestID == "" {
		return nil
	}
	return u.tx.LeaveRequest(retryRequest(p), answer)
}

// retryRequest stands for what the retry asks for, for LeaveRequest: as it has no type, no start repeats it.
func retryRequest(p *engine.RetryRunParams) *engine.StartRun {
	var input *engine.Payload
	if p.Input != nil {
		input = &engine.Payload{Data: append([]byte{}, p.Input.Data...)} // nil and empty are the same
		if len(p.Input.Metadata) > 0 {
			input.Metadata = p.Input.Metadata
		}
	}
	what := []any{p.RunID, p.FromStep, p.Restart, input}
	if p.KeepAll { // what servers of before left has no place for it
		what = append(what, p.KeepAll)
	}
	content := digest(what)
	return &engine.StartRun{Run: engine.Run{Namespace: p.Namespace, RequestID: p.RequestID, CreatedAt: p.Now,
		Input: engine.Payload{Data: []byte(content)}}}
}

// retriedBefore is the first answer to the request, Repeated if there was one.
func (u *unitOfWork) retriedBefore(p *engine.RetryRunParams) (engine.Started, error) {
	id, err := u.tx.Requested(p.Namespace, p.RequestID)
	if err != nil || id.IsZero() {
		return engine.Started{}, err
	}
	known, err := u.find(p.Namespace, id)
	if err != nil {
		return engine.Started{}, err
	}
	first, err := u.tx.LeftRequest(p.Namespace, p.RequestID)
	if err != nil {
		return engine.Started{}, err
	}
	same := known != nil && known.RetriedFrom == p.RunID
	if first != nil && first.Type == "" { // servers of before left nothing, or the start that they would have made
		same = first.Input.Equal(retryRequest(p).Input) // that of a run that the retry continued as, too
	}
	if !same {
		return engine.Started{}, requestConflict(id)
	}
	return engine.Started{RunID: id, Existed: known == nil || known.RequestID != p.RequestID, Repeated: true}, nil
}

// requestConflict is the answer to a request_id that was used for something else.
func requestConflict(run engine.ID) error {
	return &engine.Error{Kind: engine.KindConflict, Subject: "run", SubjectID: run.String(),
		Message: "this request was made before with other content: it started run " + run.String()}
}

func endedBadly(s engine.RunStatus) bool { return s.Ended() && s != engine.RunCompleted }

// notNow refuses what a run's status does not allow. For one that continued, it tells as which run.
func notNow(run *Run, what string) error {
	e := &engine.Error{Kind: engine.KindPrecondition, Subject: "run", SubjectID: run.ID.String(), Status: run.Status,
		ContinuedAs: run.ContinuedAs,
		Message:     "run " + run.ID.String() + " cannot " + what + ": it is " + run.Status.String()}
	if !run.ContinuedAs.IsZero() {
		e.Message += " and continued as run " + run.ContinuedAs.String()
	}
	return e
}

// kept returns the attempts that the new run begins with, by sequence: COMPLETED ones, and CHILD
// steps whose child is still open.
func (u *unitOfWork) kept(run *Run, p *engine.RetryRunParams) ([]engine.Step, error) {
	if p.Restart {
		return nil, nil
	}
	var from *engine.Step
	if p.FromStep != "" {
		ref := engine.StepRef{Name: p.FromStep}
		step, err := u.tx.Attempt(run.ID, ref)
		if err != nil {
			return nil, err
		}
		if step == nil {
			return nil, engine.StepNotFound(ref)
		}
		from = step
	}
	steps, err := u.tx.Results(run.ID)
	if err != nil {
		return nil, err
	}
	if from != nil {
		steps = slices.DeleteFunc(steps, func(s engine.Step) bool { return s.Sequence >= from.Sequence })
	} else if late := begunAfterFailure(run, steps); len(late) > 0 && !p.KeepAll {
		return nil, engine.RetryWouldKeep(run.ID, run.Status, late)
	}
	var kept []engine.Step
	for _, s := range steps {
		keep := s.Status == engine.StepCompleted
		if !keep && s.Kind == engine.StepChild && s.Error != nil && s.Error.Equal(engine.RunEndedFailure()) {
			if keep, err = u.reopen(&s); err != nil {
				return nil, err
			}
		}
		if keep {
			kept = append(kept, s)
		}
	}
	return kept, nil
}

// begunAfterFailure returns the names of the FUNCTION and CHILD steps that the code began after a
// step had failed for good, or after it was told to stop. steps are by sequence.
func begunAfterFailure(run *Run, steps []engine.Step) (names []string) {
	var failed *engine.Step
	for i := range steps {
		s := &steps[i]
		if s.Status == engine.StepFailed && !cutShort(s) && (failed == nil || s.FinishedAt.Before(failed.FinishedAt)) {
			failed = s
		}
	}
	for i := range steps {
		s := &steps[i]
		afterFailure := failed != nil && s.Sequence > failed.Sequence && !s.CreatedAt.Before(failed.FinishedAt)
		afterStop := !run.CancelRequestedAt.IsZero() && s.CreatedAt.After(run.CancelRequestedAt)
		if (afterFailure || afterStop) && (s.Kind == engine.StepFunction || s.Kind == engine.StepChild) &&
			!strings.HasPrefix(s.Name, engine.OwnStepPrefix) {
			names = append(names, s.Name)
		}
	}
	return names
}

// reopen gives a CHILD step that only the end of its run has ended what has become of its child
// since: it is open while the child is, or COMPLETED. It is false when there is nothing to keep.
func (u *unitOfWork) reopen(step *engine.Step) (bool, error) {
	child, err := u.newestOf(step.ChildRunID)
	if err != nil || child == nil {
		return false, err
	}
	switch {
	case !child.Status.Ended():
		step.Status, step.Error, step.FinishedAt = engine.StepRunning, nil, time.Time{}
		return true, nil
	case child.Status == engine.RunCompleted:
		output, err := u.outputOf(child)
		step.Status, step.Error = engine.StepCompleted, nil
		step.Output, step.FinishedAt = engine.ChildOutput(output, step.ChildRunID, child.ID), child.FinishedAt
		return err == nil, err
	}
	return false, nil
}

// newestOf returns the run that a run has continued as in the end, itself if it did not; nil when it is gone.
func (u *unitOfWork) newestOf(id engine.ID) (*Run, error) {
	for {
		run, err := u.find("", id)
		if err != nil || run == nil || run.ContinuedAs.IsZero() {
			return run, err
		}
		id = run.ContinuedAs
	}
}

// startWith makes a run that begins with steps and signals of another.
func (u *unitOfWork) startWith(start engine.StartRun, steps []engine.Step, signals []engine.Signal) error {
	if err := u.insert(&start); err != nil {
		return err
	}
	if len(steps) == 0 && len(signals) == 0 {
		return nil
	}
	run, err := u.run(start.Namespace, start.ID)
	if err != nil {
		return err
	}
	for i := range steps {
		adopt(&steps[i], run, int64(i+1))
		if steps[i].Open() {
			if err := u.adoptChild(&steps[i], run); err != nil {
				return err
			}
		}
	}
	for i := range signals {
		signals[i].RunID, signals[i].Sequence = run.ID, int64(i+1)
		run.Bytes += int64(signals[i].Payload.Size())
	}
	u.change(run)
	if len(steps) > 0 {
		if err := u.tx.InsertSteps(steps); err != nil {
			return err
		}
	}
	if len(signals) == 0 {
		return nil
	}
	return u.tx.InsertSignals(signals)
}

// adopt makes a result a step of run, which counts it. No lease of run has written it.
func adopt(step *engine.Step, run *Run, sequence int64) {
	step.ID, step.RunID = engine.DerivedID(run.CreatedAt, run.ID, "step:"+step.Name), run.ID
	step.Sequence, step.Token, step.Awaited = sequence, engine.Token{}, 0
	run.Steps++
	run.Bytes += int64(step.Input.Size() + step.Output.Size())
}

// adoptChild makes the open child of a step, which was the step's of another run before, the run's.
func (u *unitOfWork) adoptChild(step *engine.Step, run *Run) error {
	child, err := u.newestOf(step.ChildRunID)
	if err != nil {
		return err
	}
	run.TiedTo = true
	child.ParentRunID, child.ParentStepID = run.ID, step.ID
	u.tx.Notify(engine.Notification{Kind: engine.NotifyRun, ID: child.ID})
	return u.tx.SetParent(child.ID, run.ID, step.ID)
}

// retryDetail says what the retry was, for the audit.
func retryDetail(p *engine.RetryRunParams) string {
	detail := "as " + p.ID.String()
	switch {
	case p.Restart && p.Input != nil:
		detail += ", restarted with another input"
	case p.Restart:
		detail += ", restarted"
	case p.FromStep != "":
		detail += ", from step " + p.FromStep
	case p.KeepAll:
		detail += ", with all that was recorded"
	}
	return detail
}
