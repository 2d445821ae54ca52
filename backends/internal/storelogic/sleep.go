package storelogic

import (
	"strconv"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// Sleep sets the timer and parks the run.
func Sleep(tx Tx, p engine.SleepParams) error {
	p.Until, p.Duration = engine.Micros(p.Until), p.Duration.Truncate(time.Microsecond)
	if !p.Until.IsZero() {
		p.Duration = 0
	}
	u := begin(tx, p.Now)
	run, current, err := u.held(p.Lease)
	if err != nil {
		return err
	}
	if !current {
		return u.sleepAgain(run, &p)
	}
	prev, err := u.attempt(run, p.Step)
	if err != nil {
		return err
	}
	switch {
	case prev != nil && prev.Kind == engine.StepSleep && tooEarly(run, prev, u.now):
		return notBefore(prev)
	case prev == nil || prev.Kind == engine.StepSleep && (unset(prev) || toRunAgain(prev)):
		if err := u.setTimer(run, prev, &p); err != nil {
			return err
		}
	case prev.Kind != engine.StepSleep || prev.Status != engine.StepRunning || !sameTimer(prev, &p):
		return engine.StepConflict(prev.Name, prev.Status)
	case prev.Token != p.Lease.Token && !p.Hold:
		// The attempt keeps the token of the lease that set the timer, so this lease needs a
		// receipt.
		if err := tx.LeaveReceipt(run.ID, p.Lease.Token, sleepReceipt(&p)); err != nil {
			return err
		}
	}
	if !p.Hold {
		if err := u.park(run); err != nil {
			return err
		}
	}
	return u.flush()
}

// unset says whether the timer was begun but has no end yet.
func unset(step *engine.Step) bool { return step.Status == engine.StepRunning && step.WakeAt.IsZero() }

// setTimer makes the step a RUNNING SLEEP with an end.
func (u *unitOfWork) setTimer(run *Run, prev *engine.Step, p *engine.SleepParams) error {
	step, fresh, err := next(run, prev, p.Step.Name, p.ID, time.Time{}, u.now)
	if err != nil {
		return err
	}
	step.Kind, step.Duration, step.WakeAt = engine.StepSleep, p.Duration, p.Until
	if p.Until.IsZero() {
		step.StartedAt = u.now
		step.WakeAt = engine.Micros(u.now.Add(p.Duration + p.Margin))
	}
	u.count(run, fresh, 0)
	return u.put(run, prev, &step)
}

func sameTimer(step *engine.Step, p *engine.SleepParams) bool {
	if p.Until.IsZero() {
		return step.Duration == p.Duration
	}
	return step.WakeAt.Equal(p.Until)
}

func sleepReceipt(p *engine.SleepParams) Receipt {
	end := strconv.FormatInt(p.Duration.Microseconds(), 10)
	if !p.Until.IsZero() {
		end = p.Until.Format(time.RFC3339Nano)
	}
	return Receipt{Verb: sleepVerb, Content: p.Step.String() + " " + end}
}

// sleepAgain answers a Sleep whose lease has ended, as every Sleep that took effect ends its lease.
func (u *unitOfWork) sleepAgain(run *Run, p *engine.SleepParams) error {
	step, err := u.writtenUnder(run, p.Lease, p.Step)
	if err != nil {
		return err
	}
	rec, err := u.tx.Receipt(run.ID, p.Lease.Token)
	switch {
	case err != nil:
		return err
	case rec.repeats(sleepReceipt(p)):
		return nil
	case step == nil || step.Kind == engine.StepSleep && step.WakeAt.IsZero() || step.Kind != engine.StepSleep &&
		cutShort(step):
		return engine.LeaseLost(run.ID, run.Status)
	case step.Kind == engine.StepSleep && sameTimer(step, p):
		return nil
	}
	return engine.StepConflict(step.Name, step.Status)
}
