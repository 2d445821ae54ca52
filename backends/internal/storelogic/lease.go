package storelogic

import (
	"time"

	"github.com/kagzi/kagzi/engine"
)

// free ends the lease of a run that goes on: it waits as p says for whoever claims it next.
func (u *unitOfWork) free(run *Run, p engine.Parked) error {
	if err := u.dropLease(run); err != nil {
		return err
	}
	if run.Steps > 0 {
		if err := u.tx.InterruptSteps(run.ID, engine.InterruptedFailure(), u.now); err != nil {
			return err
		}
	}
	u.place(run, p)
	return nil
}

// progress notes that a result was recorded under the run's lease.
func (u *unitOfWork) progress(run *Run) {
	run.Progressed = true
	u.acquit(run)
}

// acquit has the run, which has shown that it did not kill its worker, be no suspect any more: the
// worker may take another in its place.
func (u *unitOfWork) acquit(run *Run) {
	if !run.Suspect.Is() {
		return
	}
	u.change(run)
	run.Suspect = engine.Suspect{}
	u.tx.Notify(engine.Notification{Kind: engine.NotifySlot, Namespace: run.Namespace, Name: run.Queue})
}

// dropLease takes the run's lease from it, if it has one. Results that were recorded under it start
// the count of losses anew, and timers that ran out are over.
func (u *unitOfWork) dropLease(run *Run) error {
	u.change(run)
	if run.Token.IsZero() {
		return nil
	}
	if run.Progressed {
		run.LeaseLosses = 0
	}
	if run.Suspect.Is() && (run.Progressed || !run.ClaimedAt.After(engine.SuspectSince(u.now))) {
		run.Suspect = engine.Suspect{}
	}
	run.Token, run.Holder, run.WorkerID, run.Progressed = engine.Token{}, "", "", false
	u.tx.Notify(engine.Notification{Kind: engine.NotifySlot, Namespace: run.Namespace, Name: run.Queue})
	u.freeSlot(run)
	if run.Steps == 0 {
		return nil
	}
	return u.tx.WakeSteps(run.ID, u.now)
}

// place says where a run stands that no worker holds.
func (u *unitOfWork) place(run *Run, p engine.Parked) {
	u.change(run)
	run.Status, run.WaitingFor = p.Status, p.WaitingFor
	at := engine.Micros(p.AvailableAt)
	if run.Paused || run.Gated {
		run.HeldAt = at
		return
	}
	run.AvailableAt = at
	if !at.IsZero() {
		u.notifyQueue(&run.Run)
	}
}

// dueNow is where a run stands that goes on at once.
func (u *unitOfWork) dueNow() engine.Parked {
	return engine.Parked{Status: engine.RunPending, AvailableAt: u.now}
}

// due has a run that no worker holds go on at once. One that was due before keeps its place.
func (u *unitOfWork) due(run *Run) {
	p := u.dueNow()
	at := run.AvailableAt
	if run.Paused || run.Gated {
		at = run.HeldAt
	}
	if !at.IsZero() && at.Before(u.now) {
		p.AvailableAt = at
	}
	u.place(run, p)
}

// park ends the lease of a run whose code waits, until the earliest of what it waits for.
func (u *unitOfWork) park(run *Run) error {
	u.acquit(run)
	if untold(run) {
		return u.free(run, u.dueNow())
	}
	steps, err := u.tx.Waiting(run.ID)
	if err != nil {
		return err
	}
	return u.free(run, engine.Park(steps, run.ClaimedAt, u.now))
}

// untold says that cancellation was asked for while a worker held the run, so that the code which
// now waits may not know: its next claim tells it.
func untold(run *Run) bool {
	return !run.CancelRequestedAt.IsZero() && !run.Token.IsZero() && run.ClaimedAt.Before(run.CancelRequestedAt)
}

// delay ends the lease of a run that is not to be tried again before at, whatever its code awaited.
func (u *unitOfWork) delay(run *Run, at time.Time) error {
	if run.Steps > 0 && at.After(u.now) {
		if err := u.forgetAwaited(run); err != nil {
			return err
		}
	}
	return u.free(run, engine.Parked{Status: engine.RunPending, AvailableAt: at})
}

func (u *unitOfWork) forgetAwaited(run *Run) error {
	steps, err := u.tx.Waiting(run.ID)
	if err != nil {
		return err
	}
	return u.told(steps...)
}

// told has ended steps no longer awaited, for the code that awaited them is being answered: no
// later park is to be cut short by them.
func (u *unitOfWork) told(steps ...engine.Step) error {
	var awaited []engine.ID
	for _, s := range steps {
		if s.Awaited != 0 {
			awaited = append(awaited, s.ID)
		}
	}
	if len(awaited) == 0 {
		return nil
	}
	return u.tx.SetAwaited(awaited, 0)
}

// lose ends the lease of a run whose worker was lost.
func (u *unitOfWork) lose(run *Run, loss engine.Loss) error {
	v := engine.AfterLeaseLost(engine.LostRun{ID: run.ID, Losses: run.LeaseLosses, Progressed: run.Progressed,
		Suspect: run.Suspect, ClaimedAt: run.ClaimedAt}, loss, u.now)
	run.LeaseLosses, run.Progressed = v.Losses, false
	if v.Failed {
		failure := engine.CrashedFailure()
		effects := u.sideEffects()
		effects.Failed = append(effects.Failed, run.ID)
		return u.end(run, engine.RunFailed, &failure, engine.Token{})
	}
	if err := u.delay(run, v.AvailableAt); err != nil {
		return err
	}
	run.Suspect = v.Suspect
	return nil
}

// freeSlot notes that the run leaves a slot of its concurrency key, or its place at the head of the line, to another.
func (u *unitOfWork) freeSlot(run *Run) {
	if run.ConcurrencyKey != "" {
		u.slots = append(u.slots, run)
	}
}

// openGates lets the first in the line of the run's concurrency key through, one of each lane and
// limit. Where limits differ, who finds no room by its own does not keep back those who do; it is
// passed by them, and by new arrivals, until the key has room by its limit too.
func (u *unitOfWork) openGates(run *Run) error {
	first, err := u.tx.FirstGated(run.Namespace, run.Type, run.ConcurrencyKey)
	if err != nil {
		return err
	}
	for _, id := range first {
		gated, err := u.run("", id)
		if err != nil {
			return err
		}
		gated.Gated = false
		at := gated.HeldAt
		gated.HeldAt = time.Time{}
		u.place(gated, engine.Parked{Status: gated.Status, AvailableAt: at, WaitingFor: gated.WaitingFor})
	}
	return u.save()
}
