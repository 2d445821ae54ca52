package storelogic

import (
	"cmp"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// end ends a run for any reason, with what follows for its steps, its parent and its children;
// flush does the rest. token is that of the lease under which the code reported the end.
func (u *unitOfWork) end(run *Run, status engine.RunStatus, failure *engine.Failure, token engine.Token) error {
	worker := run.Holder
	if run.Token.IsZero() || run.LeaseKey() == "" {
		u.freePlace(run)
	}
	u.dropLease(run)
	if run.Steps > 0 {
		if err := u.tx.WakeSteps(run.ID, u.now); err != nil {
			return err
		}
		if err := u.tx.EndSteps(run.ID, engine.RunEndedFailure(), u.now); err != nil {
			return err
		}
	}
	run.Status, run.Error, run.FinishedAt, run.Suspect = status, failure, u.now, engine.Suspect{}
	run.AvailableAt, run.WaitingFor = time.Time{}, ""
	run.Pausing, run.Paused, run.PausedAt = false, false, time.Time{}
	run.Gated, run.HeldAt = false, time.Time{}
	run.WorkerID, run.FinalToken = worker, token
	run.Ending = true
	u.ended = append(u.ended, run)
	u.tx.Notify(engine.Notification{Kind: engine.NotifyEnd, ID: run.ID})
	if !run.ContinuedAs.IsZero() {
		return nil // it continued as another run, so its children, parent and schedule are not affected
	}
	if err := u.handle(run); err != nil {
		return err
	}
	if err := u.tellParent(run); err != nil {
		return err
	}
	return u.closeChildren(run)
}

// tellParent records the run's result in the CHILD step that started it, if that still runs.
func (u *unitOfWork) tellParent(child *Run) error {
	if child.ParentRunID.IsZero() || child.ParentStepID.IsZero() {
		return nil
	}
	parent, err := u.find(child.Namespace, child.ParentRunID)
	if err != nil || parent == nil || parent.Status.Ended() {
		return err
	}
	step, err := u.tx.Attempt(parent.ID, engine.StepRef{ID: child.ParentStepID})
	if err != nil || step == nil || step.Kind != engine.StepChild || step.Status != engine.StepRunning ||
		!started(step, child) {
		return err
	}
	output, err := u.outputOf(child)
	if err != nil {
		return err
	}
	finishChild(step, child, parent, output)
	step.FinishedAt = u.now
	unsettled(step)
	if err := u.tx.SaveStep(step); err != nil {
		return err
	}
	u.change(parent)
	if !parent.Token.IsZero() {
		u.notifyWait(parent, step.Name)
	}
	return u.happened(parent, step)
}

// started says whether the step started the run, or the run that it continues. The check is needed
// because a start may name any step as its parent. A continuation has a parent step only if the run
// before it passed this check (parentStep).
func started(step *engine.Step, run *Run) bool {
	return step.ChildRunID == run.ID || !run.ContinuedFrom.IsZero()
}

// outputOf returns the output of a COMPLETED run.
func (u *unitOfWork) outputOf(run *Run) (engine.Payload, error) {
	if run.Status != engine.RunCompleted {
		return engine.Payload{}, nil
	}
	_, output, err := u.tx.Payloads(run.ID)
	return output, err
}

// finishChild ends a CHILD step as its run ended, and counts the result in the parent.
func finishChild(step *engine.Step, child, parent *Run, output engine.Payload) {
	output = engine.ChildOutput(output, step.ChildRunID, child.ID)
	fits := parent.Bytes+int64(output.Size()) <= engine.MaxRunBytes
	if child.Status == engine.RunCompleted && fits {
		step.Status, step.Output = engine.StepCompleted, output
		parent.Bytes += int64(output.Size())
		return
	}
	failure := engine.ChildFailure(&child.Run)
	if child.Status == engine.RunCancelled && child.ParentClose == engine.CloseCancel &&
		!parent.CancelRequestedAt.IsZero() {
		failure.Metadata[engine.MetaCancelledWithParent] = "true"
	}
	if child.Status == engine.RunCompleted {
		failure = engine.ChildTooLarge(&child.Run)
	}
	step.Status, step.Error = engine.StepFailed, &failure
	parent.Bytes += int64(failure.Size())
}

// happened makes a parked run due if its code awaits the step that has just ended.
func (u *unitOfWork) happened(run *Run, step *engine.Step) error {
	if !run.Token.IsZero() || step.Awaited <= 0 {
		return nil
	}
	if step.Awaited > 1 {
		open, err := u.tx.NextOfGroup(run.ID, step.Awaited)
		if err != nil {
			return err
		}
		if open != nil {
			if run.WaitingFor == waitingForChild(step) {
				run.WaitingFor = waitingForChild(open)
			}
			return nil
		}
	}
	u.due(run)
	return nil
}

func waitingForChild(step *engine.Step) string { return "child:" + step.ChildRunID.String() }

// closeChildren ends the open children that end with the run, and their children in turn. If the run
// ended within its grace, children that are cancelled have the rest of it to clean up.
func (u *unitOfWork) closeChildren(parent *Run) error {
	children, err := u.openChildren(parent)
	if err != nil {
		return err
	}
	reason := "the parent run " + parent.ID.String() + " has ended: it is " + parent.Status.String()
	for _, child := range children {
		if child.ParentClose == engine.CloseCancel && leavesGrace(parent, u.now) {
			if sooner(child, parent.GraceUntil) {
				if err := u.askChild(child, parent.GraceUntil, reason); err != nil {
					return err
				}
			}
			continue
		}
		status := engine.RunCancelled
		if child.ParentClose == engine.CloseTerminate {
			status = engine.RunTerminated
		}
		if err := u.stopChild(child, status, reason); err != nil {
			return err
		}
	}
	return nil
}

// openChildren returns the open children that end with the run.
func (u *unitOfWork) openChildren(parent *Run) (open []*Run, err error) {
	ids, err := u.tx.OpenChildren(parent.ID)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		child, err := u.find("", id)
		if err != nil {
			return nil, err
		}
		if child != nil && !child.Status.Ended() {
			open = append(open, child)
		}
	}
	return open, nil
}

// leavesGrace reports whether an ended run was asked to stop and has some of its grace left. A cancel
// without grace and a terminate leave none.
func leavesGrace(run *Run, now time.Time) bool {
	atOnce := run.Status == engine.RunTerminated || run.Status == engine.RunCancelled && run.FinalToken.IsZero()
	return !atOnce && run.GraceUntil.After(now)
}

// handle starts the failure handlers of a run.
func (u *unitOfWork) handle(run *Run) error {
	if run.Status != engine.RunFailed && run.Status != engine.RunTimedOut || run.IsHandler() {
		return nil
	}
	queue, err := u.globalHandlerQueue(run)
	if err != nil || queue == "" && run.OnFailureWorkflow == "" {
		return err
	}
	failed := run.Run
	if failed.Input, _, err = u.tx.Payloads(run.ID); err != nil {
		return err
	}
	if run.OnFailureWorkflow != "" {
		u.sideEffects().Handlers++
		u.start(engine.HandlerOf(&failed, run.OnFailureWorkflow, cmp.Or(run.OnFailureQueue, run.Queue), false, u.now))
	}
	if queue != "" {
		u.sideEffects().Handlers++
		u.start(engine.HandlerOf(&failed, engine.GlobalHandler, queue, true, u.now))
	}
	return nil
}

// globalHandlerQueue returns the queue for the namespace's handler of the run's failure; empty if
// it has none.
func (u *unitOfWork) globalHandlerQueue(run *Run) (string, error) {
	if run.Type == engine.GlobalHandler || run.BelowHandler {
		return "", nil
	}
	queue, err := u.tx.HandlerQueue(run.Namespace, engine.GlobalHandler)
	if err != nil || queue != "" {
		return queue, err
	}
	namespace, err := u.tx.Namespace(run.Namespace)
	if err != nil || namespace == nil {
		return "", err
	}
	return namespace.FailureQueue, nil
}
