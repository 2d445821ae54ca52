package storelogic

import (
	"cmp"
	"slices"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// SignalRun stores the signal. It makes a parked run due whose code awaits it, and lets the holder
// of a run know.
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
	steps = slices.DeleteFunc(steps, func(s engine.Step) bool {
		return !awaits(&s, p.Name) || !s.WakeAt.IsZero() && s.WakeAt.Before(u.now)
	})
	waiting, last, err := tx.CountSignals(run.ID)
	if err != nil {
		return engine.Signalled{}, err
	}
	if waiting >= engine.MaxSignals {
		if wanted, err := u.wants(run, p.Name, len(steps) > 0); err != nil || !wanted {
			return engine.Signalled{}, cmp.Or(err, engine.TooLarge(
				"signal", "%d signals of the run wait already, at most %d are allowed", waiting, engine.MaxSignals))
		}
	}
	u.count(run, 0, size)
	run.TiedTo = true // its end counts the signals that it has not received
	u.announce(run, steps)
	err = tx.InsertSignals([]engine.Signal{{RunID: run.ID, Sequence: last + 1, Name: p.Name, SignalID: p.SignalID,
		Payload: p.Payload, ReceivedAt: u.now}})
	if err != nil {
		return engine.Signalled{}, err
	}
	return engine.Signalled{}, u.flush()
}

// wants says whether a step waits for a signal of that name and there is none, so that the signal is
// taken although very many others wait.
func (u *unitOfWork) wants(run *Run, signal string, awaited bool) (bool, error) {
	if !awaited {
		return false, nil
	}
	next, err := u.tx.NextSignal(run.ID, signal)
	return next == nil, err
}

// announce makes a parked run due whose code awaits one of these steps, for which a signal came. It
// lets the holder of a run know.
func (u *unitOfWork) announce(run *Run, steps []engine.Step) {
	for _, step := range steps {
		switch {
		case !run.Token.IsZero():
			u.notifyWait(run, step.Name)
		case step.Awaited > 0:
			u.due(run)
			return
		}
	}
}

// awaits says whether the step waits for a signal of that name.
func awaits(step *engine.Step, signal string) bool {
	return step.Kind == engine.StepSignal && step.Status == engine.StepRunning && step.SignalName == signal
}

// outOfTime says whether the limit of a wait for a signal has passed.
func outOfTime(step *engine.Step, now time.Time) bool {
	return !step.WakeAt.IsZero() && !step.WakeAt.After(now)
}

// signalFor returns the oldest signal for a step that waits for one, if it came by the step's limit;
// nil if there is none.
func (u *unitOfWork) signalFor(run *Run, step *engine.Step) (*engine.Signal, error) {
	signal, err := u.tx.NextSignal(run.ID, step.SignalName)
	if err != nil || signal == nil || !step.WakeAt.IsZero() && signal.ReceivedAt.After(step.WakeAt) {
		return nil, err
	}
	return signal, nil
}

// consume completes a SIGNAL step with a signal.
func (u *unitOfWork) consume(run *Run, step *engine.Step, signal *engine.Signal) error {
	step.Status, step.Output, step.FinishedAt = engine.StepCompleted, signal.Payload, u.now
	return u.tx.ConsumeSignal(run.ID, signal.Sequence, step.Name)
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
			if err := u.tell(run, prev); err != nil {
				return engine.AwaitedSignal{}, err
			}
			return engine.AwaitedSignal{Step: *prev}, u.flush()
		}
	}
	step, fresh, err := next(run, prev, p.Step, p.Branch, p.ID, time.Time{}, u.now)
	if err != nil {
		return engine.AwaitedSignal{}, err
	}
	step.Kind, step.SignalName = engine.StepSignal, p.Signal
	signal, err := u.signalFor(run, &step)
	if err != nil {
		return engine.AwaitedSignal{}, err
	}
	u.count(run, fresh, 0)
	switch {
	case signal != nil:
		if err := u.consume(run, &step, signal); err != nil {
			return engine.AwaitedSignal{}, err
		}
	case outOfTime(&step, u.now):
		timeOut(&step)
	default:
		return u.waitForSignal(run, prev, &step, &p)
	}
	step.Awaited = 0
	u.settle(run, &step)
	u.progress(run)
	if err = u.put(run, prev, &step); err == nil && !p.Hold {
		err = u.yield(run)
	}
	if err != nil {
		return engine.AwaitedSignal{}, err
	}
	return engine.AwaitedSignal{Step: step}, u.flush()
}

// waitForSignal records the wait and parks the run. A step that waits already keeps its limit, and
// the token of the lease that began the wait.
func (u *unitOfWork) waitForSignal(run *Run, prev, step *engine.Step,
	p *engine.AwaitSignalParams) (engine.AwaitedSignal, error) {
	step.Awaited = 1
	u.silent = step.ID
	if err := u.putWait(run, prev, step, p.Timeout, p.Margin); err != nil {
		return engine.AwaitedSignal{}, err
	}
	if !p.Hold {
		if err := u.tx.LeaveReceipt(run.ID, p.Lease.Token, awaitSignalReceipt(p)); err != nil {
			return engine.AwaitedSignal{}, err
		}
		if err := u.suspend(run); err != nil {
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
