package storelogic

import (
	"time"

	"github.com/kagzi/kagzi/engine"
)

// CancelRun ends the run as CANCELLED, or tells its code to come to an end.
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
	b := open(tx, p.Now)
	run, err := b.run(p.Namespace, p.RunID)
	switch {
	case err != nil:
		return engine.RunEnd{}, err
	case run.Status == status:
		return engine.RunEnd{Status: status, GraceUntil: run.GraceUntil}, nil
	case run.Status.Ended():
		return engine.RunEnd{}, engine.RunEnded(&run.Run)
	}
	failure := engine.EndedByFailure(status, p.Reason)
	b.ringWorker(run.Holder)
	if err := b.end(run, status, &failure, engine.Token{}); err != nil {
		return engine.RunEnd{}, err
	}
	if err := b.audit(p.By, p.AuditID, method, onRun(run), p.Reason, ""); err != nil {
		return engine.RunEnd{}, err
	}
	return engine.RunEnd{Status: status, Changed: true, GraceUntil: run.GraceUntil}, b.close()
}

// tellToStop is CancelRun with a Grace.
func tellToStop(tx Tx, p engine.EndRunParams) (engine.RunEnd, error) {
	b := open(tx, p.Now)
	run, err := b.run(p.Namespace, p.RunID)
	switch {
	case err != nil:
		return engine.RunEnd{}, err
	case run.Status.Ended() && run.Status != engine.RunCancelled:
		return engine.RunEnd{}, engine.RunEnded(&run.Run)
	}
	until := engine.Micros(b.now.Add(p.Grace))
	if run.Status.Ended() || !run.CancelRequestedAt.IsZero() && !until.Before(run.GraceUntil) {
		return engine.RunEnd{Status: run.Status, GraceUntil: run.GraceUntil}, nil
	}
	run.GraceUntil = until
	if run.CancelRequestedAt.IsZero() {
		b.requestCancel(run, p.Reason)
	}
	b.change(run)
	b.ringWorker(run.Holder)
	b.ringTimer()
	if err := b.audit(p.By, p.AuditID, "CancelWorkflow", onRun(run), p.Reason, "grace "+p.Grace.String()); err != nil {
		return engine.RunEnd{}, err
	}
	return engine.RunEnd{Status: run.Status, Changed: true, GraceUntil: until}, b.close()
}

// requestCancel has the code told: by its worker, or by the next one, for which the run is due.
func (b *book) requestCancel(run *Run, reason string) {
	run.CancelRequestedAt, run.CancelReason, run.TiedTo = b.now, reason, true
	if !run.Token.IsZero() {
		return
	}
	if run.Paused {
		b.unpause(run)
	}
	b.due(run)
}

// PauseRun keeps the run from the workers.
func PauseRun(tx Tx, p engine.SteerParams) (engine.Run, error) {
	b := open(tx, p.Now)
	run, err := b.run(p.Namespace, p.RunID)
	switch {
	case err != nil:
		return engine.Run{}, err
	case run.Status.Ended():
		return engine.Run{}, engine.RunEnded(&run.Run)
	case run.Paused:
		return b.whole(run)
	}
	b.ringWorker(run.Holder)
	if run.Token.IsZero() {
		b.freeSlot(run)
	} else if err := b.free(run, b.dueNow()); err != nil {
		return engine.Run{}, err
	}
	if !run.Gated {
		run.HeldAt = run.AvailableAt
	}
	run.Paused, run.Gated, run.AvailableAt = true, false, time.Time{}
	b.change(run)
	if err := b.audit(p.By, p.AuditID, "PauseWorkflow", onRun(run), p.Reason, ""); err != nil {
		return engine.Run{}, err
	}
	if err := b.close(); err != nil {
		return engine.Run{}, err
	}
	return b.whole(run)
}

// ResumeRun gives the run back to the workers.
func ResumeRun(tx Tx, p engine.SteerParams) (engine.Run, error) {
	b := open(tx, p.Now)
	run, err := b.run(p.Namespace, p.RunID)
	switch {
	case err != nil:
		return engine.Run{}, err
	case run.Status.Ended():
		return engine.Run{}, engine.RunEnded(&run.Run)
	case !run.Paused:
		return b.whole(run)
	}
	b.unpause(run)
	if err := b.audit(p.By, p.AuditID, "ResumeWorkflow", onRun(run), p.Reason, ""); err != nil {
		return engine.Run{}, err
	}
	if err := b.close(); err != nil {
		return engine.Run{}, err
	}
	return b.whole(run)
}

func (b *book) unpause(run *Run) {
	run.Paused, run.AvailableAt, run.HeldAt = false, run.HeldAt, time.Time{}
	b.change(run)
	b.ringQueue(&run.Run)
}

// PinRun keeps the run from Prune, or lets it go.
func PinRun(tx Tx, p engine.PinRunParams) (engine.Run, error) {
	b := open(tx, p.Now)
	run, err := b.run(p.Namespace, p.RunID)
	if err != nil {
		return engine.Run{}, err
	}
	if run.Pinned == p.Pinned {
		return b.whole(run)
	}
	run.Pinned = p.Pinned
	b.change(run)
	detail := "unpinned"
	if p.Pinned {
		detail = "pinned"
	}
	if err := b.audit(p.By, p.AuditID, "PinWorkflow", onRun(run), p.Reason, detail); err != nil {
		return engine.Run{}, err
	}
	if err := b.close(); err != nil {
		return engine.Run{}, err
	}
	return b.whole(run)
}

// whole is the run as it stands, with its payloads.
func (b *book) whole(run *Run) (whole engine.Run, err error) {
	whole = run.Run
	whole.Input, whole.Output, err = b.tx.Payloads(run.ID)
	return whole, err
}
