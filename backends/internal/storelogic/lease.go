package storelogic

import (
	"time"

	"github.com/kagzi/kagzi/engine"
)

// free ends the lease of a run that has not ended. The run waits for its next claim as p says.
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

// dropLease removes the run's lease, if it has one. Results that were recorded under it reset the
// count of losses, and timers that have passed are completed.
func (u *unitOfWork) dropLease(run *Run) error {
	u.change(run)
	if run.Token.IsZero() {
		return nil
	}
	if run.Progressed {
		run.LeaseLosses = 0
	}
	run.Token, run.Holder, run.WorkerID, run.Progressed = engine.Token{}, "", "", false
	u.tx.Notify(engine.Notification{Kind: engine.NotifySlot, Namespace: run.Namespace, Name: run.Queue})
	u.freeSlot(run)
	if run.Steps == 0 {
		return nil
	}
	return u.tx.WakeSteps(run.ID, u.now)
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

// park ends the lease of a run whose code waits, until the earliest event that it waits for.
func (u *unitOfWork) park(run *Run) error {
	if untold(run) {
		return u.free(run, u.dueNow())
	}
	steps, err := u.tx.Waiting(run.ID)
	if err != nil {
		return err
	}
	return u.free(run, engine.Park(steps, run.ClaimedAt, u.now))
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

// told clears Awaited of ended steps whose result is being returned to the code, so that they do
// not cut a later park short.
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
func (u *unitOfWork) lose(run *Run) error {
	v := engine.AfterLeaseLost(run.LeaseLosses, run.Progressed, u.now)
	run.LeaseLosses, run.Progressed = v.Losses, false
	if v.Failed {
		failure := engine.CrashedFailure()
		effects := u.sideEffects()
		effects.Failed = append(effects.Failed, run.ID)
		return u.end(run, engine.RunFailed, &failure, engine.Token{})
	}
	return u.delay(run, v.AvailableAt)
}

// freeSlot records that the run leaves a slot of its concurrency key, or its place at the head of
// the queue for one, to another run.
func (u *unitOfWork) freeSlot(run *Run) {
	if run.ConcurrencyKey != "" {
		u.slots = append(u.slots, run)
	}
}

// openGates makes the first waiting run of the concurrency key due, for each lane and limit. Where
// limits differ, a run whose own limit is reached does not block runs with a higher limit: these,
// and new arrivals, pass it until the key has a free slot by its limit too.
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
