package storelogic

import (
	"cmp"
	"slices"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// The order of results. A result is settled by the operation of the lease's holder that records it,
// or that first returns it; or by the claim, if it came while nobody held the run.

// settle gives the step's result the next place in the order of results of its run.
func (u *unitOfWork) settle(run *Run, step *engine.Step) {
	u.change(run)
	run.Settled++
	step.Settled = run.Settled
}

// unsettled marks a result that no worker was told yet.
func unsettled(step *engine.Step) {
	step.Settled = engine.Unsettled
	if step.Awaited == 0 {
		step.Awaited = engine.AwaitedByNone
	}
}

// tell settles results that are being returned to the code, in order of their ends, and records that
// none of these steps is awaited any more.
func (u *unitOfWork) tell(run *Run, steps ...*engine.Step) error {
	var ended []ending
	for _, step := range steps {
		if step.Settled == engine.Unsettled {
			ended = append(ended, ending{step, step.FinishedAt, false})
		}
	}
	if err := u.settleAll(run, ended); err != nil {
		return err
	}
	told := make([]engine.Step, len(steps))
	for i, step := range steps {
		told[i] = *step
		step.Awaited = 0
	}
	return u.told(told...)
}

// ending is a step that has ended, or that this operation ends, and when.
type ending struct {
	step  *engine.Step
	at    time.Time
	saved bool // the whole step is to be written, not only its place
}

// settleAll settles results in order of their ends.
func (u *unitOfWork) settleAll(run *Run, ended []ending) error {
	slices.SortStableFunc(ended, func(a, b ending) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.step.Sequence, b.step.Sequence))
	})
	for _, e := range ended {
		u.settle(run, e.step)
		var err error
		if e.saved {
			err = u.tx.SaveStep(e.step)
		} else {
			err = u.tx.SettleStep(e.step.ID, e.step.Settled)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Since is what happened to a run since its code was parked.
type Since struct {
	Token engine.Token  // of the lease under which it was parked; zero if its steps changed otherwise
	Steps []engine.Step // that were settled, by sequence, with payloads; only if the caller asked for Token
}

// Knows says whether a worker that parked the run under this token and keeps it misses only Steps.
func (s *Since) Knows(kept engine.Token) bool { return !kept.IsZero() && s.Token == kept }

// SettleClaimed settles what happened while nobody held a run that was just claimed, before its task
// is made. Backends call it for runs that have a SLEEP which is due, or an Awaited step, and for those
// that the worker keeps in memory: kept is the token of the lease under which it parked the run.
func SettleClaimed(tx Tx, id engine.ID, kept engine.Token, now time.Time) (Since, error) {
	u := begin(tx, now)
	run, err := u.run("", id)
	if err != nil {
		return Since{}, err
	}
	since := Since{Token: run.FinalToken}
	ended, err := u.settleClaimed(run)
	if err == nil && since.Knows(kept) {
		since.Steps, err = u.withPayloads(run, ended)
	}
	if err != nil {
		return Since{}, err
	}
	return since, u.flush()
}

// withPayloads returns the steps that were settled, with payloads.
func (u *unitOfWork) withPayloads(run *Run, ended []ending) ([]engine.Step, error) {
	var children []engine.ID
	for _, e := range ended {
		if e.step.Kind == engine.StepChild {
			children = append(children, e.step.ChildRunID)
		}
	}
	payloads := map[engine.ID]engine.Payload{}
	if len(children) > 0 {
		steps, err := u.tx.ChildSteps(run.ID, children)
		if err != nil {
			return nil, err
		}
		for _, s := range steps {
			payloads[s.ID] = s.Output
		}
	}
	steps := make([]engine.Step, 0, len(ended))
	for _, e := range ended {
		step := *e.step
		step.Awaited = 0
		if output, child := payloads[step.ID]; child {
			step.Output = output
		}
		steps = append(steps, step)
	}
	slices.SortFunc(steps, func(a, b engine.Step) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return steps, nil
}

func (u *unitOfWork) settleClaimed(run *Run) ([]ending, error) {
	steps, err := u.tx.Waiting(run.ID)
	if err != nil {
		return nil, err
	}
	var ended []ending
	for i := range steps {
		e, err := u.endsAtClaim(run, &steps[i])
		switch {
		case err != nil:
			return nil, err
		case e == nil:
		case e.saved:
			e.step.Awaited = 0
			fallthrough
		default:
			ended = append(ended, *e)
		}
	}
	if err := u.settleAll(run, ended); err != nil {
		return nil, err
	}
	return ended, u.told(steps...)
}

// endsAtClaim ends the step if what it waits for has happened, or returns its end if it has an
// unsettled result. nil: neither.
func (u *unitOfWork) endsAtClaim(run *Run, step *engine.Step) (*ending, error) {
	switch {
	case step.Settled == engine.Unsettled && step.Latest && !step.Open():
		return &ending{step, step.FinishedAt, false}, nil
	case step.Status != engine.StepRunning:
	case step.Kind == engine.StepSleep && outOfTime(step, u.now):
		wake(step)
		return &ending{step, step.WakeAt, true}, nil
	case step.Kind == engine.StepSignal && step.Awaited > 0:
		signal, err := u.signalFor(run, step)
		switch {
		case err != nil:
			return nil, err
		case signal != nil:
			return &ending{step, signal.ReceivedAt, true}, u.consume(run, step, signal)
		case outOfTime(step, u.now):
			timeOut(step)
			return &ending{step, step.WakeAt, true}, nil
		}
	}
	return nil, nil
}

// wake completes a SLEEP step whose time has passed.
func wake(step *engine.Step) { step.Status, step.FinishedAt = engine.StepCompleted, step.WakeAt }
