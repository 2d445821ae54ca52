package storelogic

import "github.com/kagzi/kagzi/engine"

// CompleteRun ends the run with its output, and makes the next run if it continues.
func CompleteRun(tx Tx, p engine.CompleteRunParams) (engine.Completed, error) {
	u := begin(tx, p.Now)
	run, current, err := u.held(p.Lease)
	if err != nil {
		return engine.Completed{}, err
	}
	if !current {
		return u.completeRunAgain(run, &p)
	}
	if err := u.alone(run, p.Unreached); err != nil {
		return engine.Completed{}, err
	}
	run.Unreached = p.Unreached
	size := p.Output.Size()
	if run.Bytes+int64(size) > engine.MaxRunBytes {
		return engine.Completed{}, tooManyBytes("output", run.Bytes, size)
	}
	status, failure := engine.RunCompleted, cancellation(run)
	if failure != nil {
		status = engine.RunCancelled
	}
	if err := u.returnSignals(run, p.Unreceived); err != nil {
		return engine.Completed{}, err
	}
	if p.ContinueAs != nil && failure == nil {
		next := engine.Continuation(&run.Run, *p.ContinueAs, u.now)
		if next.ExternalID != run.ExternalID && next.Origin == engine.OriginUser {
			if err := u.externalIDFree(run.Namespace, next.ExternalID); err != nil {
				return engine.Completed{}, err
			}
		}
		if next.ParentStepID, err = u.parentStep(run); err != nil {
			return engine.Completed{}, err
		}
		if !next.ParentStepID.IsZero() && !(next.SharesKey(&run.Run) && next.ConcurrencyScope == run.ConcurrencyScope) {
			parent, err := u.find(run.Namespace, run.ParentRunID)
			if err == nil && parent != nil {
				err = u.placeForDescendant(&next.Run, parent)
			}
			if err != nil {
				return engine.Completed{}, err
			}
		}
		if err := u.passSignals(run, &next); err != nil {
			return engine.Completed{}, err
		}
		if err := u.passChildren(run, next.ID); err != nil {
			return engine.Completed{}, err
		}
		run.ContinuedAs = next.ID
		u.start(next)
		if run.Pausing {
			u.toPause = append(u.toPause, next.ID)
		}
	}
	u.count(run, 0, size)
	if size > 0 {
		if err := tx.SaveOutput(run.ID, p.Output); err != nil {
			return engine.Completed{}, err
		}
	}
	if err := u.end(run, status, failure, p.Lease.Token); err != nil {
		return engine.Completed{}, err
	}
	return engine.Completed{Status: status, ContinuedAs: run.ContinuedAs}, u.flush()
}

// returnSignals makes signals unconsumed again that the code has not received. They count for the run
// beside the results of these steps, which do not change.
func (u *unitOfWork) returnSignals(run *Run, steps []string) error {
	if len(steps) == 0 {
		return nil
	}
	before, err := u.tx.MeasureUnconsumed(run.ID)
	if err != nil {
		return err
	}
	if err := u.tx.ReturnSignals(run.ID, steps); err != nil {
		return err
	}
	after, err := u.tx.MeasureUnconsumed(run.ID)
	u.count(run, 0, int(after-before))
	return err
}

// parentStep returns the step that started the run, which passes to the run that it continues as;
// zero if none.
func (u *unitOfWork) parentStep(run *Run) (engine.ID, error) {
	if run.ParentStepID.IsZero() {
		return engine.ID{}, nil
	}
	step, err := u.tx.Attempt(run.ParentRunID, engine.StepRef{ID: run.ParentStepID})
	if err != nil || step == nil || !started(step, run) {
		return engine.ID{}, err
	}
	return run.ParentStepID, nil
}

// passSignals moves unconsumed signals to the run that this one continues as, with their bytes.
func (u *unitOfWork) passSignals(run *Run, next *engine.StartRun) error {
	waiting, _, err := u.tx.CountSignals(run.ID)
	if err != nil || waiting == 0 {
		return err
	}
	bytes, err := u.tx.MeasureUnconsumed(run.ID)
	if err != nil {
		return err
	}
	run.Bytes -= bytes
	next.Bytes += bytes
	u.moved = append(u.moved, run.ID)
	return nil
}

// passChildren makes the open children that end with their parent children of the next run. No step
// waits for them any more, so their results go to no step.
func (u *unitOfWork) passChildren(run *Run, next engine.ID) error {
	children, err := u.openChildren(run)
	if err != nil {
		return err
	}
	for _, child := range children {
		child.ParentRunID, child.ParentStepID = next, engine.ID{}
		if err := u.tx.SetParent(child.ID, next, engine.ID{}); err != nil {
			return err
		}
		u.tx.Notify(engine.Notification{Kind: engine.NotifyRun, ID: child.ID})
	}
	return nil
}

// cancellation returns the error of a run that ends after its code was told to stop; nil if it was
// not.
func cancellation(run *Run) *engine.Failure {
	if run.CancelRequestedAt.IsZero() {
		return nil
	}
	failure := engine.EndedByFailure(engine.RunCancelled, run.CancelReason)
	return &failure
}

// completeRunAgain answers a CompleteRun whose lease is over.
func (u *unitOfWork) completeRunAgain(run *Run, p *engine.CompleteRunParams) (engine.Completed, error) {
	rec, err := u.tx.Receipt(run.ID, p.Lease.Token)
	if err != nil {
		return engine.Completed{}, err
	}
	completed := run.Status == engine.RunCompleted && run.ContinuedAs.IsZero() == (p.ContinueAs == nil)
	cancelled := run.Status == engine.RunCancelled && rec.Verb == ""
	if finishedUnder(run, p.Lease) && (completed || cancelled) {
		same, err := u.sameEnd(run, p)
		if err != nil || same {
			return engine.Completed{Status: run.Status, ContinuedAs: run.ContinuedAs}, err
		}
	}
	return engine.Completed{}, endedOtherwise(run, p.Lease, rec)
}

// sameEnd says whether the run ended with that output and continued as the run that is asked for.
func (u *unitOfWork) sameEnd(run *Run, p *engine.CompleteRunParams) (bool, error) {
	_, output, err := u.tx.Payloads(run.ID)
	if err != nil || !output.Equal(p.Output) {
		return false, err
	}
	if run.ContinuedAs.IsZero() {
		return true, nil
	}
	next := engine.Continuation(&run.Run, *p.ContinueAs, u.now)
	return u.asked(run.ContinuedAs, &next.Run)
}

// FailRun ends the run or schedules its next attempt.
func FailRun(tx Tx, p engine.FailRunParams) (engine.RunVerdict, error) {
	u := begin(tx, p.Now)
	run, current, err := u.held(p.Lease)
	if err != nil {
		return engine.RunVerdict{}, err
	}
	if !current {
		return u.failRunAgain(run, &p)
	}
	if err := u.alone(run, p.Unreached); err != nil {
		return engine.RunVerdict{}, err
	}
	run.Unreached = p.Unreached
	rec := Receipt{Verb: failRunVerb, Content: digest(&p.Failure)}
	if failure := cancellation(run); failure != nil {
		// The run does not keep what the code reported, so the receipt identifies a repetition.
		if err := tx.LeaveReceipt(run.ID, p.Lease.Token, rec); err != nil {
			return engine.RunVerdict{}, err
		}
		return u.failed(run, engine.RunCancelled, failure, &p)
	}
	v := engine.AfterRunFailed(run.OwnPolicy(), run.Failures+1, p.Failure, u.now.Add(p.Margin), p.Jitter)
	if !v.Retry {
		run.Bytes += int64(p.Failure.Size())
		return u.failed(run, engine.RunFailed, &p.Failure, &p)
	}
	run.Attempts++
	run.Failures++
	run.OwedFrom++
	run.Error, run.TiedTo = &p.Failure, true // tied, so that the run's end clears the error
	run.Unreached = nil
	rec.RetryAt = v.RetryAt
	if err := tx.LeaveReceipt(run.ID, p.Lease.Token, rec); err != nil {
		return engine.RunVerdict{}, err
	}
	u.clearSuspect(run)
	u.forgetDivergences(run)
	if err := u.delay(run, v.RetryAt); err != nil {
		return engine.RunVerdict{}, err
	}
	if err := tx.RetrySteps(run.ID, v.RetryAt); err != nil {
		return engine.RunVerdict{}, err
	}
	return engine.RunVerdict{Verdict: v, Status: run.Status, Handler: run.IsHandler()}, u.flush()
}

// failed ends the run for good.
func (u *unitOfWork) failed(run *Run, status engine.RunStatus, failure *engine.Failure,
	p *engine.FailRunParams) (engine.RunVerdict, error) {
	if err := u.returnSignals(run, p.Unreceived); err != nil {
		return engine.RunVerdict{}, err
	}
	if err := u.end(run, status, failure, p.Lease.Token); err != nil {
		return engine.RunVerdict{}, err
	}
	return engine.RunVerdict{Status: status, Handler: run.IsHandler()}, u.flush()
}

// failRunAgain answers a FailRun whose lease is over.
func (u *unitOfWork) failRunAgain(run *Run, p *engine.FailRunParams) (engine.RunVerdict, error) {
	rec, err := u.tx.Receipt(run.ID, p.Lease.Token)
	if err != nil {
		return engine.RunVerdict{}, err
	}
	reported := rec.repeats(Receipt{Verb: failRunVerb, Content: digest(&p.Failure)})
	switch {
	case reported && finishedUnder(run, p.Lease):
		return engine.RunVerdict{Status: run.Status, Handler: run.IsHandler()}, nil
	case reported:
		again := engine.Verdict{Retry: true, RetryAt: rec.RetryAt}
		return engine.RunVerdict{Verdict: again, Status: engine.RunPending, Handler: run.IsHandler()}, nil
	case finishedUnder(run, p.Lease) && run.Status == engine.RunFailed && run.Error != nil &&
		run.Error.Equal(p.Failure):
		return engine.RunVerdict{Status: run.Status, Handler: run.IsHandler()}, nil
	}
	return engine.RunVerdict{}, endedOtherwise(run, p.Lease, rec)
}

// Release gives the lease back.
func Release(tx Tx, p engine.ReleaseParams) error {
	rec := Receipt{Verb: releaseVerb, Content: "due"}
	switch {
	case p.Divergence != nil:
		rec.Content = "diverged " + digest(p.Divergence)
	case p.Park:
		rec.Content = "park"
	}
	u := begin(tx, p.Now)
	run, current, err := u.held(p.Lease)
	if err != nil {
		return err
	}
	if !current {
		left, err := tx.Receipt(run.ID, p.Lease.Token)
		if err == nil && !left.repeats(rec) {
			err = endedOtherwise(run, p.Lease, left)
		}
		return err
	}
	if p.Divergence != nil {
		if err := u.diverge(run, *p.Divergence); err != nil {
			return err
		}
	}
	if err := tx.LeaveReceipt(run.ID, p.Lease.Token, rec); err != nil {
		return err
	}
	if p.Park {
		err = u.suspend(run)
	} else {
		err = u.free(run, u.dueNow())
	}
	if err != nil {
		return err
	}
	return u.flush()
}

// SetRunNote writes the run's note.
func SetRunNote(tx Tx, p engine.SetNoteParams) error {
	u := begin(tx, p.Now)
	run, current, err := u.held(p.Lease)
	switch {
	case err != nil:
		return err
	case !current:
		return engine.LeaseLost(run.ID, run.Status)
	case run.Note == p.Note:
		return nil
	}
	run.Note = p.Note
	u.change(run)
	return u.flush()
}
