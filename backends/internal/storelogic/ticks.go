package storelogic

import (
	"time"

	"github.com/kagzi/kagzi/engine"
)

// FireSchedule carries out the decisions about ticks, unless the schedule has moved on since.
func FireSchedule(tx Tx, p engine.FireScheduleParams) (engine.Fired, error) {
	u := begin(tx, p.Now)
	s, err := tx.Schedule("", p.ScheduleID.String())
	if err != nil {
		return engine.Fired{}, err
	}
	if s == nil || !s.Enabled || s.Revision != p.Revision || !s.NextFireAt.Equal(engine.Micros(p.Expect)) {
		return engine.Fired{Stale: true}, nil
	}
	disabled, err := u.disabled(s.Namespace)
	if err != nil || disabled {
		return engine.Fired{Stale: disabled}, err
	}
	fired := engine.Fired{Skipped: p.Skipped}
	busy, err := u.busy(s, len(p.Ticks))
	if err != nil {
		return engine.Fired{}, err
	}
	if !busy { // a buffered tick that waits for no run, as older versions may have left it, comes before these
		if busy, err = u.fireBuffered(s); err != nil {
			return engine.Fired{}, err
		}
		if busy {
			fired.Runs++
		}
	}
	for _, tick := range p.Ticks {
		at := engine.Micros(tick.At)
		switch decide(s, busy) {
		case tickSkipped:
			fired.Skipped++
		case tickBuffered:
			s.Buffered = at
		case tickFires:
			started, err := u.fire(s, at, tick.RunID)
			if err != nil {
				return engine.Fired{}, err
			}
			if started {
				busy = true
				fired.Runs++
			}
		}
	}
	s.Skipped += fired.Skipped
	s.NextFireAt, s.Delay, s.Broken = engine.Micros(p.Next), p.Delay, p.Broken
	if err := u.saveSchedule(s); err != nil {
		return engine.Fired{}, err
	}
	return fired, u.flush()
}

// busy says whether a run of the schedule is open, if any of the ticks depends on that.
func (u *unitOfWork) busy(s *engine.Schedule, ticks int) (bool, error) {
	if ticks == 0 || s.Overlap != engine.OverlapSkip && s.Overlap != engine.OverlapBufferOne {
		return false, nil
	}
	n, err := u.tx.OpenOf(s.ID, engine.ID{})
	return n > 0, err
}

type tickFate uint8

const (
	tickFires tickFate = iota
	tickSkipped
	tickBuffered
)

// decide returns what happens to a tick; busy: a run of the schedule is open.
func decide(s *engine.Schedule, busy bool) tickFate {
	switch {
	case busy && s.Overlap == engine.OverlapSkip:
		return tickSkipped
	case busy && s.Overlap == engine.OverlapBufferOne && s.Buffered.IsZero():
		return tickBuffered
	case busy && s.Overlap == engine.OverlapBufferOne:
		return tickSkipped
	}
	return tickFires
}

// fire starts the run of a tick, unless the tick is recorded already. The schedule is changed in
// memory only.
func (u *unitOfWork) fire(s *engine.Schedule, tick time.Time, run engine.ID) (bool, error) {
	inserted, err := u.tx.InsertFire(s.ID, tick, run, u.now)
	if err != nil || !inserted {
		return false, err
	}
	start := s.Start(run, tick, u.now)
	if err := u.insert(&start); err != nil {
		return false, err
	}
	s.Fired++
	if tick.After(s.LastFiredAt) {
		s.LastFiredAt = tick
	}
	return true, nil
}

// settleSchedule counts a run that has ended in its schedule, and starts the buffered tick that
// waited for it.
func (u *unitOfWork) settleSchedule(run *Run) error {
	id, err := engine.ParseID(run.ScheduleID)
	if err != nil || !run.ContinuedAs.IsZero() {
		return nil // it belongs to no schedule, or it continued as another run
	}
	s, err := u.tx.Schedule(run.Namespace, id.String())
	if err != nil || s == nil {
		return err
	}
	counted := countEnd(s, run.Status)
	fired, err := u.fireAsSideEffect(s)
	if err != nil {
		return err
	}
	if !counted && !fired {
		return nil
	}
	return u.saveSchedule(s)
}

// fireWaiting starts the buffered ticks of a namespace that was disabled when the runs they waited
// for ended.
func (u *unitOfWork) fireWaiting(namespace string) error {
	ids, err := u.tx.WaitingSchedules(namespace)
	if err != nil {
		return err
	}
	for _, id := range ids {
		s, err := u.tx.Schedule(namespace, id.String())
		if err != nil {
			return err
		}
		if s == nil {
			continue
		}
		fired, err := u.fireAsSideEffect(s)
		if err == nil && fired {
			err = u.saveSchedule(s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// countEnd counts a run by how it ended, and says whether that is counted.
func countEnd(s *engine.Schedule, status engine.RunStatus) bool {
	switch status {
	case engine.RunCompleted:
		s.Completed++
	case engine.RunFailed, engine.RunTimedOut:
		s.Failed++
	default:
		return false
	}
	return true
}

// fireAsSideEffect is fireBuffered for an operation that does not return how many ticks fired.
func (u *unitOfWork) fireAsSideEffect(s *engine.Schedule) (bool, error) {
	fired, err := u.fireBuffered(s)
	if fired {
		u.sideEffects().Ticks++
	}
	return fired, err
}

// fireBuffered starts the buffered tick if no run of the schedule is open, and says whether it did.
// While the schedule is paused or its namespace disabled, the tick keeps waiting.
func (u *unitOfWork) fireBuffered(s *engine.Schedule) (bool, error) {
	if s.Buffered.IsZero() || !s.Enabled {
		return false, nil
	}
	disabled, err := u.disabled(s.Namespace)
	if err != nil || disabled {
		return false, err
	}
	open, err := u.tx.OpenOf(s.ID, engine.ID{})
	if err != nil || open > 0 {
		return false, err
	}
	tick := s.Buffered
	s.Buffered = time.Time{}
	_, err = u.fire(s, tick, engine.DerivedID(u.now, s.ID, engine.TickID(s.ID, tick)))
	return true, err
}
