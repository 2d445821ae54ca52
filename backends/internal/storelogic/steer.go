package storelogic

import (
	"time"

	"github.com/kagzi/kagzi/engine"
)

// CancelRun ends the run as CANCELLED or, with a Grace, asks its code to stop.
func CancelRun(tx Tx, p engine.EndRunParams) (engine.RunEnd, error) {
	if p.Grace > 0 {
		return tellToStop(tx, p)
	}
	return endByPerson(tx, p, engine.RunCancelled, "CancelWorkflow")
}

// TerminateRun ends the run as TERMINATED.
func TerminateRun(tx Tx, p engine.EndRunParams) (engine.RunEnd, error) {
	return endByPerson(tx, p, engine.RunTerminated, "TerminateWorkflow")
}

func endByPerson(tx Tx, p engine.EndRunParams, status engine.RunStatus, method string) (engine.RunEnd, error) {
	u := begin(tx, p.Now)
	run, err := u.run(p.Namespace, p.RunID)
	switch {
	case err != nil:
		return engine.RunEnd{}, err
	case run.Status == status:
		return engine.RunEnd{Status: status, GraceUntil: run.GraceUntil}, nil
	case run.Status.Ended():
		return engine.RunEnd{}, engine.RunEnded(&run.Run)
	}
	return u.endAtOnce(run, p, status, method)
}

func (u *unitOfWork) endAtOnce(run *Run, p engine.EndRunParams, status engine.RunStatus,
	method string) (engine.RunEnd, error) {
	failure := engine.EndedByFailure(status, p.Reason)
	u.notifyWorker(run.Holder)
	if err := u.end(run, status, &failure, engine.Token{}); err != nil {
		return engine.RunEnd{}, err
	}
	if err := u.audit(p.By, p.AuditID, method, onRun(run), p.Reason, ""); err != nil {
		return engine.RunEnd{}, err
	}
	return engine.RunEnd{Status: status, Changed: true, GraceUntil: run.GraceUntil}, u.flush()
}

// tellToStop is CancelRun with a Grace.
func tellToStop(tx Tx, p engine.EndRunParams) (engine.RunEnd, error) {
	u := begin(tx, p.Now)
	run, err := u.run(p.Namespace, p.RunID)
	if err != nil {
		return engine.RunEnd{}, err
	}
	until := engine.Micros(u.now.Add(p.Grace + p.Margin))
	switch {
	case run.Status.Ended() && run.Status != engine.RunCancelled:
		return engine.RunEnd{}, engine.RunEnded(&run.Run)
	case run.Status.Ended() || !sooner(run, until):
		return engine.RunEnd{Status: run.Status, GraceUntil: run.GraceUntil}, nil
	case run.NeverRan():
		return u.endAtOnce(run, p, engine.RunCancelled, "CancelWorkflow")
	}
	if err := u.askToStop(run, until, p.Reason); err != nil {
		return engine.RunEnd{}, err
	}
	if err := u.audit(p.By, p.AuditID, "CancelWorkflow", onRun(run), p.Reason, "grace "+p.Grace.String()); err != nil {
		return engine.RunEnd{}, err
	}
	return engine.RunEnd{Status: run.Status, Changed: true, GraceUntil: until}, u.flush()
}

// sooner reports whether a request to stop by until changes something: it is the first, or it leaves less
// time than the one before.
func sooner(run *Run, until time.Time) bool {
	return run.CancelRequestedAt.IsZero() || until.Before(run.GraceUntil)
}

// askToStop asks the code of an open run to stop by until, and with it the code of the children that
// are cancelled with the run: they get the same time to clean up.
func (u *unitOfWork) askToStop(run *Run, until time.Time, reason string) error {
	run.GraceUntil = until
	if run.CancelRequestedAt.IsZero() {
		u.requestCancel(run, reason)
	}
	u.change(run)
	u.notifyWorker(run.Holder)
	u.notifyTimer()
	children, err := u.openChildren(run)
	if err != nil {
		return err
	}
	for _, child := range children {
		if child.ParentClose != engine.CloseCancel || !sooner(child, until) {
			continue
		}
		if err := u.askChild(child, until, "the parent run "+run.ID.String()+" is being cancelled"); err != nil {
			return err
		}
	}
	return nil
}

// askChild is askToStop for a child. One that never ran ends.
func (u *unitOfWork) askChild(child *Run, until time.Time, reason string) error {
	if child.NeverRan() {
		return u.stopChild(child, engine.RunCancelled, reason)
	}
	return u.askToStop(child, until, reason)
}

// stopChild ends a child because of its parent.
func (u *unitOfWork) stopChild(child *Run, status engine.RunStatus, reason string) error {
	failure := engine.EndedByFailure(status, reason)
	u.notifyWorker(child.Holder)
	u.sideEffects().Stopped++
	return u.end(child, status, &failure, engine.Token{})
}

// requestCancel asks the run's code to stop: through its worker or, if no worker has it, through
// the next claim, for which it makes the run due.
func (u *unitOfWork) requestCancel(run *Run, reason string) {
	run.CancelRequestedAt, run.CancelReason, run.TiedTo = u.now, reason, true
	if run.Pausing = false; !run.Token.IsZero() {
		return
	}
	if run.Paused {
		u.unpause(run)
	}
	u.due(run)
}

// PauseRun keeps the run from being claimed, or asks its worker to release it.
func PauseRun(tx Tx, p engine.PauseRunParams) (engine.Run, error) {
	u := begin(tx, p.Now)
	run, err := u.run(p.Namespace, p.RunID)
	switch {
	case err != nil:
		return engine.Run{}, err
	case run.Status.Ended():
		return engine.Run{}, engine.RunEnded(&run.Run)
	case run.Paused, run.Pausing && !run.Token.IsZero() && !p.AtOnce:
		return u.whole(run)
	}
	u.notifyWorker(run.Holder)
	switch {
	case run.Token.IsZero():
		if run.TakesPlace() {
			u.freePlace(run)
		}
		u.pause(run)
	case p.AtOnce:
		run.Pausing = true
		if err := u.free(run, u.dueNow()); err != nil {
			return engine.Run{}, err
		}
	default: // tied, so that the run's end is not the fast one
		run.Pausing, run.TiedTo = true, true
	}
	u.change(run)
	if err := u.audit(p.By, p.AuditID, "PauseWorkflow", onRun(run), p.Reason, ""); err != nil {
		return engine.Run{}, err
	}
	if err := u.flush(); err != nil {
		return engine.Run{}, err
	}
	return u.whole(run)
}

// pause makes a run Paused that no worker holds. Nothing but the pause keeps builds from it then.
func (u *unitOfWork) pause(run *Run) {
	u.forgetDivergences(run)
	if !run.Gated {
		run.HeldAt = run.AvailableAt
	}
	run.Pausing, run.Paused, run.PausedAt = false, true, u.now
	run.Gated, run.AvailableAt = false, time.Time{}
	u.change(run)
}

// yield takes a run that is to be paused from a worker that does not know how to pause, once that
// has recorded something.
func (u *unitOfWork) yield(run *Run) error {
	if !run.Pausing || run.Token.IsZero() {
		return nil
	}
	knows, err := u.tx.PausesRuns(run.Holder)
	if err != nil || knows {
		return err
	}
	u.notifyWorker(run.Holder)
	return u.free(run, u.dueNow())
}

// ResumeRun makes a paused run claimable again, or takes back a request to pause it.
func ResumeRun(tx Tx, p engine.ResumeRunParams) (engine.Run, error) {
	u := begin(tx, p.Now)
	run, err := u.run(p.Namespace, p.RunID)
	if err == nil && p.AcceptDivergence && len(run.Divergences) > 0 {
		run.OwedFrom++
	}
	switch {
	case err != nil:
		return engine.Run{}, err
	case run.Status.Ended():
		return engine.Run{}, engine.RunEnded(&run.Run)
	case run.Paused:
		u.unpause(run)
	case run.Pausing && !run.Token.IsZero():
		run.Pausing = false
		u.forgetDivergences(run)
		u.change(run)
		u.notifyWorker(run.Holder)
	case len(run.Divergences) == 0:
		return u.whole(run)
	default:
		u.forgetDivergences(run)
		if run.Token.IsZero() {
			u.notifyQueue(&run.Run)
		}
	}
	if err := u.audit(p.By, p.AuditID, "ResumeWorkflow", onRun(run), p.Reason, ""); err != nil {
		return engine.Run{}, err
	}
	if err := u.flush(); err != nil {
		return engine.Run{}, err
	}
	return u.whole(run)
}

// unpause ends a pause. The time that it has taken does not count for the run's deadlines. Each build
// may have the run again.
func (u *unitOfWork) unpause(run *Run) {
	u.forgetDivergences(run)
	if taken := u.now.Sub(run.PausedAt); !run.PausedAt.IsZero() && taken > 0 {
		for _, at := range []*time.Time{&run.DeadlineAt, &run.NamedDeadlineAt} {
			if !at.IsZero() {
				*at = at.Add(taken)
			}
		}
	}
	run.Paused, run.PausedAt = false, time.Time{}
	run.AvailableAt, run.HeldAt = run.HeldAt, time.Time{}
	u.change(run)
	u.notifyQueue(&run.Run)
	if !run.ExpiresAt().IsZero() {
		u.notifyTimer()
	}
}

// PinRun sets or clears Pinned.
func PinRun(tx Tx, p engine.PinRunParams) (engine.Run, error) {
	u := begin(tx, p.Now)
	run, err := u.run(p.Namespace, p.RunID)
	if err != nil {
		return engine.Run{}, err
	}
	if run.Pinned == p.Pinned {
		return u.whole(run)
	}
	run.Pinned = p.Pinned
	u.change(run)
	detail := "unpinned"
	if p.Pinned {
		detail = "pinned"
	}
	if err := u.audit(p.By, p.AuditID, "PinWorkflow", onRun(run), p.Reason, detail); err != nil {
		return engine.Run{}, err
	}
	if err := u.flush(); err != nil {
		return engine.Run{}, err
	}
	return u.whole(run)
}

// whole returns the run with its payloads.
func (u *unitOfWork) whole(run *Run) (whole engine.Run, err error) {
	whole = run.Run
	whole.Input, whole.Output, err = u.tx.Payloads(run.ID)
	return whole, err
}
