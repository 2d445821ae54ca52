package storelogic

import (
	"time"

	"github.com/kagzi/kagzi/engine"
)

// FireSchedule carries out what was decided about ticks, unless the schedule has moved on since.
func FireSchedule(tx Tx, p engine.FireScheduleParams) (engine.Fired, error) {
	b := open(tx, p.Now)
	s, err := tx.Schedule("", p.ScheduleID.String())
	if err != nil {
		return engine.Fired{}, err
	}
	if s == nil || !s.Enabled || s.Revision != p.Revision || !s.NextFireAt.Equal(engine.Micros(p.Expect)) {
		return engine.Fired{Stale: true}, nil
	}
	disabled, err := b.disabled(s.Namespace)
	if err != nil || disabled {
		return engine.Fired{Stale: disabled}, err
	}
	fired := engine.Fired{Skipped: p.Skipped}
	busy, err := b.busy(s, len(p.Ticks))
	if err != nil {
		return engine.Fired{}, err
	}
	if !busy { // one that waits for no run, as servers of before may have left it, comes before these
		if busy, err = b.fireBuffered(s); err != nil {
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
			started, err := b.fire(s, at, tick.RunID)
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
	s.NextFireAt, s.Broken = engine.Micros(p.Next), p.Broken
	if err := b.saveSchedule(s); err != nil {
		return engine.Fired{}, err
	}
	return fired, b.close()
}

// busy says that a run of the schedule is open, where so many ticks have to know.
func (b *book) busy(s *engine.Schedule, ticks int) (bool, error) {
	if ticks == 0 || s.Overlap != engine.OverlapSkip && s.Overlap != engine.OverlapBufferOne {
		return false, nil
	}
	n, err := b.tx.OpenOf(s.ID, engine.ID{})
	return n > 0, err
}

type tickFate uint8

const (
	tickFires tickFate = iota
	tickSkipped
	tickBuffered
)

// decide says what becomes of a tick; busy that a run of the schedule is open.
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

// fire starts the run of a tick, unless the tick has its record already. The schedule is changed in memory only.
func (b *book) fire(s *engine.Schedule, tick time.Time, run engine.ID) (bool, error) {
	news, err := b.tx.InsertFire(s.ID, tick, run, b.now)
	if err != nil || !news {
		return false, err
	}
	start := s.Start(run, tick, b.now)
	if err := b.insert(&start); err != nil {
		return false, err
	}
	s.Fired++
	if tick.After(s.LastFiredAt) {
		s.LastFiredAt = tick
	}
	return true, nil
}

// settleSchedule has the schedule of a run that has ended count it, and start the tick that waited for it.
func (b *book) settleSchedule(run *Run) error {
	id, err := engine.ParseID(run.ScheduleID)
	if err != nil || !run.ContinuedAs.IsZero() {
		return nil // it is no schedule's, or goes on as another
	}
	s, err := b.tx.Schedule(run.Namespace, id.String())
	if err != nil || s == nil {
		return err
	}
	counted := countEnd(s, run.Status)
	fired, err := b.fireAside(s)
	if err != nil {
		return err
	}
	if !counted && !fired {
		return nil
	}
	return b.saveSchedule(s)
}

// fireWaiting starts the ticks that wait in a namespace which was disabled when the runs ended for which they did.
func (b *book) fireWaiting(namespace string) error {
	ids, err := b.tx.WaitingSchedules(namespace)
	if err != nil {
		return err
	}
	for _, id := range ids {
		s, err := b.tx.Schedule(namespace, id.String())
		if err != nil {
			return err
		}
		if s == nil {
			continue
		}
		fired, err := b.fireAside(s)
		if err == nil && fired {
			err = b.saveSchedule(s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// countEnd counts a run by how it has ended, and says whether that is counted.
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

// fireAside is fireBuffered for a verb that does not answer how many ticks have fired.
func (b *book) fireAside(s *engine.Schedule) (bool, error) {
	fired, err := b.fireBuffered(s)
	if fired {
		b.aside().Ticks++
	}
	return fired, err
}

// fireBuffered starts the tick that waits, once no run of the schedule is open, and says whether it did. While the schedule is paused, or its namespace
// disabled, the tick waits on: nothing fires then.
func (b *book) fireBuffered(s *engine.Schedule) (bool, error) {
	if s.Buffered.IsZero() || !s.Enabled {
		return false, nil
	}
	disabled, err := b.disabled(s.Namespace)
	if err != nil || disabled {
		return false, err
	}
	open, err := b.tx.OpenOf(s.ID, engine.ID{})
	if err != nil || open > 0 {
		return false, err
	}
	tick := s.Buffered
	s.Buffered = time.Time{}
	_, err = b.fire(s, tick, engine.DerivedID(b.now, s.ID, engine.TickID(s.ID, tick)))
	return true, err
}
