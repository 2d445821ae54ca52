package storelogic

import (
	"slices"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// SignalRun delivers the signal to the step that waits for it, or stores it.
func SignalRun(tx Tx, p engine.SignalRunParams) (engine.Signalled, error) {
	u := begin(tx, p.Now)
	run, err := u.run(p.Namespace, p.RunID)
	if err != nil {
		return engine.Signalled{}, err
	}
	if p.SignalID != "" {
		had, err := tx.SignalByID(run.ID, p.SignalID)
		if err != nil || had != nil {
			return engine.Signalled{Repeated: had != nil}, err
		}
		if !run.ContinuedAs.IsZero() { // the signal may have moved to the run it continued as
			had, err := tx.SignalInChain(run.Chain(), p.SignalID)
			if err != nil || had {
				return engine.Signalled{Repeated: had}, err
			}
		}
	}
	size := p.Payload.Size()
	switch {
	case run.Status.Ended():
		return engine.Signalled{}, engine.RunEnded(&run.Run)
	case run.Bytes+int64(size) > engine.MaxRunBytes:
		return engine.Signalled{}, tooManyBytes("payload", run.Bytes, size)
	}
	steps, err := tx.Waiting(run.ID)
	if err != nil {
		return engine.Signalled{}, err
	}
	waiting, last, err := tx.CountSignals(run.ID)
	if err != nil {
		return engine.Signalled{}, err
	}
	consumer := slices.IndexFunc(steps, func(s engine.Step) bool { return awaits(&s, p.Name) && !outOfTime(&s, u.now) })
	if consumer < 0 && waiting >= engine.MaxSignals {
		return engine.Signalled{}, engine.TooLarge(
			"signal", "%d signals of the run wait already, at most %d are allowed", waiting, engine.MaxSignals)
	}
	signal := engine.Signal{RunID: run.ID, Sequence: last + 1, Name: p.Name, SignalID: p.SignalID, Payload: p.Payload,
		ReceivedAt: u.now}
	u.count(run, 0, size)
	if err := u.deliver(run, &signal, steps, consumer); err != nil {
		return engine.Signalled{}, err
	}
	if err := tx.InsertSignals([]engine.Signal{signal}); err != nil {
		return engine.Signalled{}, err
	}
	return engine.Signalled{}, u.flush()
}

// deliver completes the step at consumer with the signal, if that is one of steps, and times out
// steps whose limit has passed.
func (u *unitOfWork) deliver(run *Run, signal *engine.Signal, steps []engine.Step, consumer int) error {
	for i := range steps {
		step := &steps[i]
		switch {
		case i == consumer:
			signal.StepName = step.Name
			consume(step, signal.Payload, u.now)
		case awaits(step, signal.Name) && outOfTime(step, u.now):
			timeOut(step)
		default:
			continue
		}
		if err := u.tx.SaveStep(step); err != nil {
			return err
		}
		if err := u.happened(run, step); err != nil {
			return err
		}
	}
	return nil
}

// awaits says whether the step waits for a signal of that name.
func awaits(step *engine.Step, signal string) bool {
	return step.Kind == engine.StepSignal && step.Status == engine.StepRunning && step.SignalName == signal
}

// outOfTime says whether the limit of a wait for a signal has passed.
func outOfTime(step *engine.Step, now time.Time) bool {
	return !step.WakeAt.IsZero() && !step.WakeAt.After(now)
}

// consume completes a SIGNAL step. The step keeps the token of the lease that began the wait, which
// identifies that wait.
func consume(step *engine.Step, payload engine.Payload, now time.Time) {
	step.Status, step.Output, step.FinishedAt = engine.StepCompleted, payload, now
}

// timeOut completes a SIGNAL step whose limit has passed.
func timeOut(step *engine.Step) {
	step.Status, step.TimedOut, step.FinishedAt = engine.StepCompleted, true, step.WakeAt
}

// AwaitSignal consumes a signal that was received, or waits for the next.
func AwaitSignal(tx Tx, p engine.AwaitSignalParams) (engine.AwaitedSignal, error) {
	u := begin(tx, p.Now)
	run, current, err := u.held(p.Lease)
	if err != nil {
		return engine.AwaitedSignal{}, err
	}
	if !current {
		return u.awaitSignalAgain(run, &p)
	}
	prev, err := tx.Attempt(run.ID, engine.StepRef{Name: p.Step})
	if err != nil {
		return engine.AwaitedSignal{}, err
	}
	if prev != nil {
		switch {
		case prev.Kind != engine.StepSignal || prev.SignalName != p.Signal:
			return engine.AwaitedSignal{}, engine.StepConflict(prev.Name, prev.Status)
		case tooEarly(run, prev, u.now):
			return engine.AwaitedSignal{}, notBefore(prev)
		case prev.Status != engine.StepRunning && !toRunAgain(prev):
			return engine.AwaitedSignal{Step: *prev}, u.told(*prev)
		}
	}
	step, fresh, err := next(run, prev, p.Step, p.ID, time.Time{}, u.now)
	if err != nil {
		return engine.AwaitedSignal{}, err
	}
	step.Kind, step.SignalName = engine.StepSignal, p.Signal
	signal, err := tx.NextSignal(run.ID, p.Signal)
	if err != nil {
		return engine.AwaitedSignal{}, err
	}
	u.count(run, fresh, 0)
	switch {
	case outOfTime(&step, u.now):
		timeOut(&step)
	case signal != nil:
		consume(&step, signal.Payload, u.now)
		if err := tx.ConsumeSignal(run.ID, signal.Sequence, step.Name); err != nil {
			return engine.AwaitedSignal{}, err
		}
	default:
		return u.waitForSignal(run, prev, &step, &p)
	}
	run.Progressed = true
	if err := u.put(run, prev, &step); err != nil {
		return engine.AwaitedSignal{}, err
	}
	return engine.AwaitedSignal{Step: step}, u.flush()
}

// waitForSignal records the wait and parks the run. A step that waits already keeps its limit, and
// the token of the lease that began the wait.
func (u *unitOfWork) waitForSignal(run *Run, prev, step *engine.Step,
	p *engine.AwaitSignalParams) (engine.AwaitedSignal, error) {
	step.Awaited = 1
	if err := u.putWait(run, prev, step, p.Timeout, p.Margin); err != nil {
		return engine.AwaitedSignal{}, err
	}
	if !p.Hold {
		if err := u.tx.LeaveReceipt(run.ID, p.Lease.Token, awaitSignalReceipt(p)); err != nil {
			return engine.AwaitedSignal{}, err
		}
		if err := u.park(run); err != nil {
			return engine.AwaitedSignal{}, err
		}
	}
	return engine.AwaitedSignal{Step: *step, Waiting: true}, u.flush()
}

func (u *unitOfWork) putWait(run *Run, prev, step *engine.Step, timeout, margin time.Duration) error {
	if prev != nil && prev.ID == step.ID {
		return u.tx.SetAwaited([]engine.ID{step.ID}, step.Awaited)
	}
	if timeout > 0 {
		step.WakeAt = engine.Micros(u.now.Add(timeout + margin))
	}
	return u.put(run, prev, step)
}

func awaitSignalReceipt(p *engine.AwaitSignalParams) Receipt {
	return Receipt{Verb: awaitSignalVerb, Content: p.Step + " " + p.Signal}
}

// awaitSignalAgain answers an AwaitSignal whose lease is over. It waited if this call ended the
// lease, or if the step still waits; otherwise the answer is what the step consumed.
func (u *unitOfWork) awaitSignalAgain(run *Run, p *engine.AwaitSignalParams) (engine.AwaitedSignal, error) {
	rec, err := u.tx.Receipt(run.ID, p.Lease.Token)
	if err != nil {
		return engine.AwaitedSignal{}, err
	}
	if rec.repeats(awaitSignalReceipt(p)) {
		step, err := u.attempt(run, engine.StepRef{Name: p.Step})
		if err != nil || step == nil {
			return engine.AwaitedSignal{}, err
		}
		return engine.AwaitedSignal{Step: *step, Waiting: true}, nil
	}
	step, err := u.writtenUnder(run, p.Lease, engine.StepRef{Name: p.Step})
	switch {
	case err != nil:
		return engine.AwaitedSignal{}, err
	case step == nil:
		return engine.AwaitedSignal{}, engine.LeaseLost(run.ID, run.Status)
	case step.Kind != engine.StepSignal || step.SignalName != p.Signal:
		return engine.AwaitedSignal{}, engine.StepConflict(step.Name, step.Status)
	case cutShort(step):
		return engine.AwaitedSignal{}, engine.LeaseLost(run.ID, run.Status)
	}
	return engine.AwaitedSignal{Step: *step, Waiting: step.Status == engine.StepRunning}, nil
}
