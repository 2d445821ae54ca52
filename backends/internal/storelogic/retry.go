package storelogic

import (
	"slices"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// RetryRun makes a new run from one that did not complete.
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

// leaveRetry records what the retry asked for and its answer, because the new run does not show
// from which step it was retried.
func (u *unitOfWork) leaveRetry(p *engine.RetryRunParams, answer engine.ID) error {
	if p.RequestID == "" {
		return nil
	}
	return u.tx.LeaveRequest(retryRequest(p), answer)
}

// retryRequest encodes what the retry asks for, for LeaveRequest. It has no type, so no start can
// repeat it.
func retryRequest(p *engine.RetryRunParams) *engine.StartRun {
	var input *engine.Payload
	if p.Input != nil {
		input = &engine.Payload{Data: append([]byte{}, p.Input.Data...)} // nil and empty are the same
		if len(p.Input.Metadata) > 0 {
			input.Metadata = p.Input.Metadata
		}
	}
	what := []any{p.RunID, p.FromStep, p.Restart, input}
	if p.KeepAll { // older versions recorded nothing for it
		what = append(what, p.KeepAll)
	}
	content := digest(what)
	return &engine.StartRun{Run: engine.Run{Namespace: p.Namespace, RequestID: p.RequestID, CreatedAt: p.Now,
		Input: engine.Payload{Data: []byte(content)}}}
}

// retriedBefore returns the first answer to the request with Repeated set, if there was one.
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
	if first != nil && first.Type == "" { // older versions recorded nothing, or the start that they would have made
		same = first.Input.Equal(retryRequest(p).Input) // of a run that the retry continued as, too
	}
	if !same {
		return engine.Started{}, requestConflict(id)
	}
	return engine.Started{RunID: id, Existed: known == nil || known.RequestID != p.RequestID, Repeated: true}, nil
}

// requestConflict is the error for a request_id that was used for something else.
func requestConflict(run engine.ID) error {
	return &engine.Error{Kind: engine.KindConflict, Subject: "run", SubjectID: run.String(),
		Message: "this request was made before with other content: it started run " + run.String()}
}

func endedBadly(s engine.RunStatus) bool { return s.Ended() && s != engine.RunCompleted }

// notNow refuses what a run's status does not allow. For a run that continued, it names the run it
// continued as.
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

// reopen updates a CHILD step that failed only because its run ended to the child's present state:
// open while the child is open, or COMPLETED. It returns false if there is nothing to keep,
// also if the child is being cancelled.
func (u *unitOfWork) reopen(step *engine.Step) (bool, error) {
	child, err := u.newestOf(step.ChildRunID)
	if err != nil || child == nil {
		return false, err
	}
	switch {
	case !child.Status.Ended() && !child.CancelRequestedAt.IsZero():
		return false, nil // it will end as CANCELLED
	case !child.Status.Ended():
		step.Status, step.Error, step.FinishedAt, step.Settled = engine.StepRunning, nil, time.Time{}, 0
		return true, nil
	case child.Status == engine.RunCompleted:
		output, err := u.outputOf(child)
		step.Status, step.Error = engine.StepCompleted, nil
		step.Output, step.FinishedAt = engine.ChildOutput(output, step.ChildRunID, child.ID), child.FinishedAt
		step.Settled = engine.Unsettled
		return err == nil, err
	}
	return false, nil
}

// newestOf returns the last run that a run continued as, or the run itself; nil if it is gone.
func (u *unitOfWork) newestOf(id engine.ID) (*Run, error) {
	for {
		run, err := u.find("", id)
		if err != nil || run == nil || run.ContinuedAs.IsZero() {
			return run, err
		}
		id = run.ContinuedAs
	}
}

// startWith makes a run that begins with steps and signals of another run.
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
	run.TiedTo = run.TiedTo || len(signals) > 0
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

// adopt makes a result a step of run and counts it. It has no token, because no lease of run wrote
// it.
func adopt(step *engine.Step, run *Run, sequence int64) {
	step.ID, step.RunID = engine.DerivedID(run.CreatedAt, run.ID, "step:"+step.Name), run.ID
	step.Sequence, step.Token, step.Awaited = sequence, engine.Token{}, 0
	keepPlace(step, run)
	run.Steps++
	run.Bytes += int64(step.Input.Size() + step.Output.Size())
}

// keepPlace keeps the place of a copied step in the order of results. The code of the run need not
// reach the step.
func keepPlace(step *engine.Step, run *Run) {
	if step.Settled == engine.Unsettled && step.Latest {
		unsettled(step)
	}
	run.Settled = max(run.Settled, step.Settled)
	run.OwedFrom = max(run.OwedFrom, step.BegunIn+1)
}

// adoptChild makes the open child of a step a child of run; it was a child of another run before.
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

// retryDetail describes the retry for the audit event.
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
		detail += ", keeping all results"
	}
	return detail
}
