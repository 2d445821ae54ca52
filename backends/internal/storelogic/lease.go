package storelogic

import (
	"slices"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// free ends the lease of a run that has not ended. The run waits for its next claim as p says.
func (u *unitOfWork) free(run *Run, p engine.Parked) error {
	u.dropLease(run)
	if run.Steps > 0 {
		if err := u.tx.InterruptSteps(run.ID, engine.InterruptedFailure(), u.now); err != nil {
			return err
		}
	}
	if run.Pausing {
		u.pause(run)
	}
	u.place(run, p)
	return nil
}

// progress records that a result was recorded under the run's lease.
func (u *unitOfWork) progress(run *Run) {
	run.Progressed = true
	u.clearSuspect(run)
}

// clearSuspect ends the suspicion against a run that has recorded, parked or failed. Its worker may
// then take another suspect.
func (u *unitOfWork) clearSuspect(run *Run) {
	if !run.Suspect.Is() {
		return
	}
	u.change(run)
	run.Suspect = engine.Suspect{}
	u.tx.Notify(engine.Notification{Kind: engine.NotifySlot, Namespace: run.Namespace, Name: run.Queue})
}

// dropLease removes the run's lease, if it has one. Results that were recorded under it reset the
// count of losses.
func (u *unitOfWork) dropLease(run *Run) {
	u.change(run)
	if run.Token.IsZero() {
		return
	}
	if run.Progressed {
		run.LeaseLosses = 0
	}
	if run.Suspect.Is() && (run.Progressed || !run.ClaimedAt.After(engine.SuspectSince(u.now))) {
		run.Suspect = engine.Suspect{}
	}
	run.Token, run.Holder, run.WorkerID, run.Progressed = engine.Token{}, "", "", false
	run.FinalToken = engine.Token{}
	u.tx.Notify(engine.Notification{Kind: engine.NotifySlot, Namespace: run.Namespace, Name: run.Queue})
	if run.LeaseKey() != "" {
		u.freePlace(run)
	}
}

// place sets the status and due time of a run that no worker holds.
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
		if len(run.Divergences) > 0 {
			u.tx.Notify(engine.Notification{Kind: engine.NotifyDiverged})
		}
	}
}

// dueNow returns the placement of a run that is due at once.
func (u *unitOfWork) dueNow() engine.Parked {
	return engine.Parked{Status: engine.RunPending, AvailableAt: u.now}
}

// due makes a run that no worker holds due now. One that was due before keeps its place.
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

// suspend ends the lease of a run whose holder says that its code waits. The run keeps the token, so
// that a worker which keeps the code in memory is known to miss nothing.
func (u *unitOfWork) suspend(run *Run) error {
	token := run.Token
	err := u.park(run)
	run.FinalToken = token
	return err
}

// park ends the lease of a run whose code waits, until the earliest event that it waits for.
func (u *unitOfWork) park(run *Run) error {
	u.clearSuspect(run)
	if untold(run) {
		return u.free(run, u.dueNow())
	}
	steps, err := u.tx.Waiting(run.ID)
	if err != nil {
		return err
	}
	came, err := u.signalCame(run, steps)
	if err != nil {
		return err
	}
	if came {
		return u.free(run, u.dueNow())
	}
	return u.free(run, engine.Park(steps, run.ClaimedAt, u.now))
}

// signalCame says whether a signal that the code awaits has come: while a worker holds the run, a
// signal only waits.
func (u *unitOfWork) signalCame(run *Run, steps []engine.Step) (bool, error) {
	for i := range steps {
		step := &steps[i]
		if step.Awaited <= 0 || !awaits(step, step.SignalName) || u.silent == step.ID {
			continue
		}
		if signal, err := u.signalFor(run, step); err != nil || signal != nil {
			return signal != nil, err
		}
	}
	return false, nil
}

// untold says whether cancellation was requested while a worker held the run. The code that now
// waits may not know, so the next claim tells it.
func untold(run *Run) bool {
	return !run.CancelRequestedAt.IsZero() && !run.Token.IsZero() && run.ClaimedAt.Before(run.CancelRequestedAt)
}

// delay ends the lease of a run that must not be tried again before at, whatever its code awaits.
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

// forgetOpen clears Awaited of the open steps of a run.
func (u *unitOfWork) forgetOpen(run *Run) error {
	steps, err := u.tx.Waiting(run.ID)
	if err != nil {
		return err
	}
	return u.told(slices.DeleteFunc(steps, func(s engine.Step) bool { return !s.Open() })...)
}

// told clears Awaited of steps whose result is being returned to the code, so that they do not cut a
// later park short. An unsettled result becomes AwaitedByNone.
func (u *unitOfWork) told(steps ...engine.Step) error {
	var told, untold []engine.ID
	for _, s := range steps {
		switch {
		case s.Awaited == 0:
		case s.Settled != engine.Unsettled:
			told = append(told, s.ID)
		case s.Awaited > 0:
			untold = append(untold, s.ID)
		}
	}
	if len(untold) > 0 {
		if err := u.tx.SetAwaited(untold, engine.AwaitedByNone); err != nil {
			return err
		}
	}
	if len(told) == 0 {
		return nil
	}
	return u.tx.SetAwaited(told, 0)
}

// lose ends the lease of a run whose worker was lost.
func (u *unitOfWork) lose(run *Run, loss engine.Loss) error {
	v := engine.AfterLeaseLost(engine.LostRun{ID: run.ID, Type: run.Type, Losses: run.LeaseLosses,
		Progressed: run.Progressed, Suspect: run.Suspect, ClaimedAt: run.ClaimedAt}, loss, u.now)
	run.LeaseLosses, run.Progressed = v.Losses, false
	if v.Failed {
		failure := engine.CrashedAfter(v.Losses)
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

// freePlace records that the run leaves a place of its concurrency key, or its turn to take one, to
// another run.
func (u *unitOfWork) freePlace(run *Run) {
	if run.ConcurrencyKey != "" {
		u.places = append(u.places, run)
	}
}

// openGates makes the first waiting run of the concurrency key due, for each lane and limit. Where
// limits differ, a run whose own limit is reached does not block runs with a higher limit: these,
// and new arrivals, pass it until the key has a free place by its limit too.
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
