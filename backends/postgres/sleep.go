package postgres

import (
	"context"
	"strconv"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// Sleep sets the timer and parks the run.
func (s *Store) Sleep(ctx context.Context, p engine.SleepParams) error {
	p.Now, p.Until, p.Duration = engine.Micros(p.Now), engine.Micros(p.Until), p.Duration.Truncate(time.Microsecond)
	if !p.Until.IsZero() {
		p.Duration = 0
	}
	return s.write("set a timer", func(ctx context.Context, t *tx) error { return t.sleep(ctx, &p) })
}

func (t *tx) sleep(ctx context.Context, p *engine.SleepParams) error {
	run, err := t.runState(ctx, p.Lease.Namespace, p.Lease.RunID)
	if err != nil {
		return err
	}
	if !run.current(p.Lease) {
		return t.sleepAgain(ctx, run, p)
	}
	prev, err := t.attempt(ctx, run.id, p.Step)
	if err != nil {
		return err
	}
	switch {
	case prev == nil || prev.Kind == engine.StepSleep && prev.Status == engine.StepRunning && prev.WakeAt.IsZero():
		if err := t.setTimer(ctx, run, prev, p); err != nil {
			return err
		}
	case prev.Kind != engine.StepSleep || prev.Status != engine.StepRunning || !sameTimer(prev, p):
		return engine.StepConflict(prev.Name, prev.Status)
	case prev.Token != p.Lease.Token && !p.Hold:
		// The attempt remembers the lease that set the timer, so this one needs a note of its own.
		if err := t.leaveReceipt(ctx, p.Lease, receipt{verb: sleepVerb, content: timerText(p)}); err != nil {
			return err
		}
	}
	if p.Hold {
		return nil
	}
	return t.park(ctx, run, p.Now)
}

// setTimer makes the step a RUNNING SLEEP with an end, and counts it in run.
func (t *tx) setTimer(ctx context.Context, run *runState, prev *engine.Step, p *engine.SleepParams) error {
	step, fresh, err := next(run, prev, p.Step.Name, p.ID, time.Time{}, p.Now)
	if err != nil {
		return err
	}
	step.Kind, step.Duration, step.WakeAt = engine.StepSleep, p.Duration, p.Until
	if p.Until.IsZero() {
		step.StartedAt = p.Now
		step.WakeAt = p.Now.Add(p.Duration)
	}
	if err := t.put(ctx, run, prev, &step); err != nil {
		return err
	}
	run.steps += int64(fresh)
	return t.count(ctx, run.id, fresh, 0, false)
}

func sameTimer(step *engine.Step, p *engine.SleepParams) bool {
	if p.Until.IsZero() {
		return step.Duration == p.Duration
	}
	return step.Duration == 0 && step.WakeAt.Equal(p.Until)
}

// timerText is a Sleep for a receipt.
func timerText(p *engine.SleepParams) string {
	end := strconv.FormatInt(p.Duration.Microseconds(), 10)
	if !p.Until.IsZero() {
		end = p.Until.Format(time.RFC3339Nano)
	}
	return p.Step.String() + " " + end
}

// sleepAgain answers a Sleep whose lease is over, as it is after every Sleep that counted.
func (t *tx) sleepAgain(ctx context.Context, run *runState, p *engine.SleepParams) error {
	step, lost, err := t.trace(ctx, run, p.Lease, p.Step)
	if err != nil {
		return err
	}
	rec, err := t.receipt(ctx, p.Lease)
	switch {
	case err != nil:
		return err
	case rec.verb == sleepVerb && rec.content == timerText(p):
		return nil
	case step == nil || step.Kind == engine.StepSleep && step.WakeAt.IsZero() || step.Kind != engine.StepSleep && ended(step):
		return lost
	case step.Kind == engine.StepSleep && sameTimer(step, p):
		return nil
	}
	return engine.StepConflict(step.Name, step.Status)
}
