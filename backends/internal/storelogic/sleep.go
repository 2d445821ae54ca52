package storelogic

import (
	"strconv"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// Sleep sets the timer and parks the run, or completes the step if its time has passed.
func Sleep(tx Tx, p engine.SleepParams) (engine.Step, error) {
	p.Until, p.Duration = engine.Micros(p.Until), p.Duration.Truncate(time.Microsecond)
	if !p.Until.IsZero() {
		p.Duration = 0
	}
	u := begin(tx, p.Now)
	run, current, err := u.held(p.Lease)
	if err != nil {
		return engine.Step{}, err
	}
	if !current {
		return u.sleepAgain(run, &p)
	}
	prev, err := u.attempt(run, p.Step)
	if err != nil {
		return engine.Step{}, err
	}
	if p.Over {
		return u.overSleep(run, prev, &p)
	}
	stays := p.Hold || p.Stay
	switch {
	case prev == nil:
	case prev.Kind != engine.StepSleep:
		return engine.Step{}, engine.StepConflict(prev.Name, prev.Status)
	case tooEarly(run, prev, u.now):
		return engine.Step{}, notBefore(prev)
	case unset(prev), toRunAgain(prev):
	case prev.Status == engine.StepCompleted && stays && sameTimer(prev, &p):
		return u.returned(run, prev)
	case prev.Status != engine.StepRunning || !sameTimer(prev, &p):
		return engine.Step{}, engine.StepConflict(prev.Name, prev.Status)
	case outOfTime(prev, u.now):
		wake(prev)
		return u.endSleep(run, prev, prev, stays)
	default:
		return u.sleepOn(run, prev, &p)
	}
	step, err := u.setTimer(run, prev, &p)
	if err != nil {
		return engine.Step{}, err
	}
	if outOfTime(&step, u.now) {
		step.Status, step.FinishedAt = engine.StepCompleted, u.now
		return u.endSleep(run, prev, &step, stays)
	}
	if err := u.put(run, prev, &step); err != nil {
		return engine.Step{}, err
	}
	return u.parkAsleep(run, &step, p.Hold)
}

// overSleep records that a timer which the holder has in hand has ended.
func (u *unitOfWork) overSleep(run *Run, prev *engine.Step, p *engine.SleepParams) (engine.Step, error) {
	switch {
	case prev == nil:
		return engine.Step{}, engine.StepNotFound(p.Step)
	case prev.Kind == engine.StepSleep && prev.Status == engine.StepCompleted:
		return u.returned(run, prev)
	case prev.Kind != engine.StepSleep || prev.Status != engine.StepRunning || unset(prev):
		return engine.Step{}, engine.StepConflict(prev.Name, prev.Status)
	}
	wake(prev)
	if prev.WakeAt.After(u.now) { // the holder's clock is ahead
		prev.FinishedAt = u.now
	}
	return u.endSleep(run, prev, prev, true)
}

// endSleep writes a SLEEP step that has ended under the lease, which ends too unless it stays.
func (u *unitOfWork) endSleep(run *Run, prev, step *engine.Step, stays bool) (engine.Step, error) {
	u.settle(run, step)
	u.progress(run)
	if err := u.keepAnswer(run, prev); err != nil {
		return engine.Step{}, err
	}
	if err := u.put(run, prev, step); err != nil {
		return engine.Step{}, err
	}
	if !stays {
		if err := u.free(run, u.dueNow()); err != nil {
			return engine.Step{}, err
		}
	}
	return *step, u.flush()
}

// keepAnswer leaves a receipt for another lease that set the timer and was ended by that: its token is
// about to be overwritten.
func (u *unitOfWork) keepAnswer(run *Run, set *engine.Step) error {
	if set == nil || set.Token == run.Token || set.Token.IsZero() || unset(set) {
		return nil
	}
	rec, err := u.tx.Receipt(run.ID, set.Token)
	if err != nil || rec.Verb != "" {
		return err
	}
	p := engine.SleepParams{Duration: set.Duration, Until: set.WakeAt}
	if set.Duration > 0 {
		p.Until = time.Time{}
	}
	return u.tx.LeaveReceipt(run.ID, set.Token, sleepReceipt(set.Name, &p))
}

// returned returns a step that has ended, to the code of the run.
func (u *unitOfWork) returned(run *Run, step *engine.Step) (engine.Step, error) {
	if err := u.tell(run, step); err != nil {
		return engine.Step{}, err
	}
	return *step, u.flush()
}

// sleepOn waits for a timer that was set before.
func (u *unitOfWork) sleepOn(run *Run, step *engine.Step, p *engine.SleepParams) (engine.Step, error) {
	if step.Token != p.Lease.Token && !p.Hold {
		// The attempt keeps the token of the lease that set the timer, so this lease needs a
		// receipt.
		if err := u.tx.LeaveReceipt(run.ID, p.Lease.Token, sleepReceipt(step.Name, p)); err != nil {
			return engine.Step{}, err
		}
	}
	return u.parkAsleep(run, step, p.Hold)
}

// parkAsleep parks the run unless the lease is held.
func (u *unitOfWork) parkAsleep(run *Run, step *engine.Step, hold bool) (engine.Step, error) {
	if !hold {
		if err := u.suspend(run); err != nil {
			return engine.Step{}, err
		}
	}
	return *step, u.flush()
}

// unset says whether the timer was begun but has no end yet.
func unset(step *engine.Step) bool { return step.Status == engine.StepRunning && step.WakeAt.IsZero() }

// setTimer returns the attempt as a RUNNING SLEEP with an end.
func (u *unitOfWork) setTimer(run *Run, prev *engine.Step, p *engine.SleepParams) (engine.Step, error) {
	step, fresh, err := next(run, prev, p.Step.Name, p.Branch, p.ID, time.Time{}, u.now)
	if err != nil {
		return step, err
	}
	step.Kind, step.Duration, step.WakeAt = engine.StepSleep, p.Duration, p.Until
	if p.Until.IsZero() {
		step.StartedAt = u.now
		step.WakeAt = engine.Micros(u.now.Add(p.Duration + p.Margin))
	}
	u.count(run, fresh, 0)
	return step, nil
}

func sameTimer(step *engine.Step, p *engine.SleepParams) bool {
	if p.Until.IsZero() {
		return step.Duration == p.Duration
	}
	return step.WakeAt.Equal(p.Until)
}

func sleepReceipt(step string, p *engine.SleepParams) Receipt {
	end := strconv.FormatInt(p.Duration.Microseconds(), 10)
	if !p.Until.IsZero() {
		end = p.Until.Format(time.RFC3339Nano)
	}
	return Receipt{Verb: sleepVerb, Content: step + " " + end}
}

// sleepAgain answers a Sleep whose lease has ended, as most that take effect end their lease.
func (u *unitOfWork) sleepAgain(run *Run, p *engine.SleepParams) (engine.Step, error) {
	rec, err := u.tx.Receipt(run.ID, p.Lease.Token)
	if err != nil {
		return engine.Step{}, err
	}
	if rec.Verb == sleepVerb && !p.Over {
		set, err := u.attempt(run, p.Step)
		if err != nil {
			return engine.Step{}, err
		}
		if set != nil && rec.repeats(sleepReceipt(set.Name, p)) {
			return asParked(set), nil
		}
	}
	step, err := u.writtenUnder(run, p.Lease, p.Step)
	switch {
	case err != nil:
		return engine.Step{}, err
	case step == nil || step.Kind == engine.StepSleep && step.WakeAt.IsZero() || step.Kind != engine.StepSleep &&
		cutShort(step):
		return engine.Step{}, engine.LeaseLost(run.ID, run.Status)
	case p.Over && step.Kind == engine.StepSleep && step.Status != engine.StepCompleted:
		return engine.Step{}, engine.LeaseLost(run.ID, run.Status)
	case step.Kind == engine.StepSleep && (p.Over || p.Hold && sameTimer(step, p)):
		return *step, nil
	case step.Kind == engine.StepSleep && sameTimer(step, p):
		return asParked(step), nil
	}
	return engine.Step{}, engine.StepConflict(step.Name, step.Status)
}

// asParked returns a SLEEP as it was when it parked the run. What became of it since is the matter of a
// later lease: a result would tell the caller that its own continues.
func asParked(set *engine.Step) engine.Step {
	step := *set
	step.Status, step.Settled, step.FinishedAt, step.Error = engine.StepRunning, 0, time.Time{}, nil
	return step
}
