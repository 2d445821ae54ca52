package storelogic

import (
	"cmp"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// end is the end of a run, whoever wanted it, with all that it concerns but what close comes to; token is the lease's under which
// its code reported it.
func (b *book) end(run *Run, status engine.RunStatus, failure *engine.Failure, token engine.Token) error {
	worker := run.Holder
	if run.Token.IsZero() {
		b.freeSlot(run)
	}
	if err := b.dropLease(run); err != nil {
		return err
	}
	if run.Steps > 0 {
		if err := b.tx.EndSteps(run.ID, engine.RunEndedFailure(), b.now); err != nil {
			return err
		}
	}
	run.Status, run.Error, run.FinishedAt = status, failure, b.now
	run.AvailableAt, run.WaitingFor = time.Time{}, ""
	run.Paused, run.Gated, run.HeldAt = false, false, time.Time{}
	run.WorkerID, run.FinalToken = worker, token
	b.ended = append(b.ended, run)
	b.tx.Ring(engine.Notification{Kind: engine.NotifyEnd, ID: run.ID})
	if !run.ContinuedAs.IsZero() {
		return nil // that one goes on: its children, its parent and its schedule have nothing to do yet
	}
	if err := b.handle(run); err != nil {
		return err
	}
	if err := b.tellParent(run); err != nil {
		return err
	}
	return b.closeChildren(run)
}

// tellParent gives the run's result to the step that started it, if that is a CHILD that still runs.
func (b *book) tellParent(child *Run) error {
	if child.ParentRunID.IsZero() || child.ParentStepID.IsZero() {
		return nil
	}
	parent, err := b.find(child.Namespace, child.ParentRunID)
	if err != nil || parent == nil || parent.Status.Ended() {
		return err
	}
	step, err := b.tx.Attempt(parent.ID, engine.StepRef{ID: child.ParentStepID})
	if err != nil || step == nil || step.Kind != engine.StepChild || step.Status != engine.StepRunning || !started(step, child) {
		return err
	}
	output, err := b.outputOf(child)
	if err != nil {
		return err
	}
	finishChild(step, child, parent, output)
	step.FinishedAt = b.now
	if err := b.tx.SaveStep(step); err != nil {
		return err
	}
	b.change(parent)
	return b.happened(parent, step)
}

// started says that the step did start the run, or the one that the run continues. It has to be asked, because whoever starts a run may
// name any step as the one that did. A continuation has a step only where this was asked of the run before it (parentStep).
func started(step *engine.Step, run *Run) bool {
	return step.ChildRunID == run.ID || !run.ContinuedFrom.IsZero()
}

// outputOf is the output of a run that has COMPLETED.
func (b *book) outputOf(run *Run) (engine.Payload, error) {
	if run.Status != engine.RunCompleted {
		return engine.Payload{}, nil
	}
	_, output, err := b.tx.Payloads(run.ID)
	return output, err
}

// finishChild ends a CHILD step as its run has ended, and counts what that records in the parent.
func finishChild(step *engine.Step, child, parent *Run, output engine.Payload) {
	output = engine.ChildOutput(output, step.ChildRunID, child.ID)
	fits := parent.Bytes+int64(output.Size()) <= engine.MaxRunBytes
	if child.Status == engine.RunCompleted && fits {
		step.Status, step.Output = engine.StepCompleted, output
		parent.Bytes += int64(output.Size())
		return
	}
	failure := engine.ChildFailure(&child.Run)
	if child.Status == engine.RunCompleted {
		failure = engine.ChildTooLarge(&child.Run)
	}
	step.Status, step.Error = engine.StepFailed, &failure
	parent.Bytes += int64(failure.Size())
}

// happened has a parked run go on when the step that has just ended is what its code awaited.
func (b *book) happened(run *Run, step *engine.Step) error {
	if !run.Token.IsZero() || step.Awaited == 0 {
		return nil
	}
	if step.Awaited > 1 {
		open, err := b.tx.NextOfGroup(run.ID, step.Awaited)
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
	b.due(run)
	return nil
}

func waitingForChild(step *engine.Step) string { return "child:" + step.ChildRunID.String() }

// closeChildren ends the open children that are not to outlive the run, and theirs in turn.
func (b *book) closeChildren(parent *Run) error {
	ids, err := b.tx.OpenChildren(parent.ID)
	if err != nil {
		return err
	}
	reason := "the parent run " + parent.ID.String() + " has ended: it is " + parent.Status.String()
	for _, id := range ids {
		child, err := b.find("", id)
		if err != nil {
			return err
		}
		if child == nil || child.Status.Ended() {
			continue
		}
		status := engine.RunCancelled
		if child.ParentClose == engine.CloseTerminate {
			status = engine.RunTerminated
		}
		failure := engine.EndedByFailure(status, reason)
		b.ringWorker(child.Holder)
		b.aside().Stopped++
		if err := b.end(child, status, &failure, engine.Token{}); err != nil {
			return err
		}
	}
	return nil
}

// handle starts the handlers of a run that has failed.
func (b *book) handle(run *Run) error {
	if run.Status != engine.RunFailed && run.Status != engine.RunTimedOut || run.IsHandler() {
		return nil
	}
	queue, err := b.globalHandlerQueue(run)
	if err != nil || queue == "" && run.OnFailureWorkflow == "" {
		return err
	}
	failed := run.Run
	if failed.Input, _, err = b.tx.Payloads(run.ID); err != nil {
		return err
	}
	if run.OnFailureWorkflow != "" {
		b.aside().Handlers++
		b.start(engine.HandlerOf(&failed, run.OnFailureWorkflow, cmp.Or(run.OnFailureQueue, run.Queue), false, b.now))
	}
	if queue != "" {
		b.aside().Handlers++
		b.start(engine.HandlerOf(&failed, engine.GlobalHandler, queue, true, b.now))
	}
	return nil
}

// globalHandlerQueue is where the namespace's own handler of the run's failure goes; empty when it has none.
func (b *book) globalHandlerQueue(run *Run) (string, error) {
	if run.Type == engine.GlobalHandler {
		return "", nil
	}
	queue, err := b.tx.HandlerQueue(run.Namespace, engine.GlobalHandler)
	if err != nil || queue != "" {
		return queue, err
	}
	namespace, err := b.tx.Namespace(run.Namespace)
	if err != nil || namespace == nil {
		return "", err
	}
	return namespace.FailureQueue, nil
}
