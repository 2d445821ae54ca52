package ledger

import (
	"time"

	"github.com/kagzi/kagzi/engine"
)

// Restoring is a transaction over rows that came out of a backup and that nobody serves yet.
type Restoring interface {
	Tx
	// Leases is the runs that are held, by id.
	Leases() ([]engine.ID, error)
	// TakeWorkersOff makes every worker OFFLINE, as OfflineForced, and returns how many were not.
	TakeWorkersOff(now time.Time) (int, error)
	// DueSchedules is the schedules that a server would fire by now, without their inputs.
	DueSchedules(now time.Time) ([]engine.Schedule, error)
	// Stand notes what is true of the database as a whole; an empty value takes it back.
	Stand(name, value string, at time.Time) error
}

// AfterRestore makes the rows fit to be served.
func AfterRestore(tx Restoring, p engine.AfterRestoreParams) (done engine.AfterRestore, err error) {
	p.Now = engine.Micros(p.Now)
	held, err := tx.Leases()
	if err != nil {
		return done, err
	}
	if err := FreeRuns(tx, held, p.Now); err != nil {
		return done, err
	}
	done.Leases = len(held)
	if done.Workers, err = tx.TakeWorkersOff(p.Now); err != nil {
		return done, err
	}
	if p.Next != nil {
		if done.Schedules, done.Ticks, err = passOver(tx, p); err != nil {
			return done, err
		}
	}
	if err := tx.Stand(engine.StandingBackup, "", p.Now); err != nil {
		return done, err
	}
	return done, tx.Stand(engine.StandingRestored, p.From, p.Now)
}

// passOver has schedules go on after now: what was due since the backup has probably fired already, in the database that was replaced.
func passOver(tx Restoring, p engine.AfterRestoreParams) (schedules int, ticks int64, err error) {
	due, err := tx.DueSchedules(p.Now)
	if err != nil {
		return 0, 0, err
	}
	for i := range due {
		s := &due[i]
		next, skipped, err := p.Next(s, p.Now)
		if err != nil {
			continue // the coordinator says of it why it cannot fire
		}
		fired, err := FireSchedule(tx, engine.FireScheduleParams{
			ScheduleID: s.ID, Revision: s.Revision, Expect: s.NextFireAt, Skipped: skipped, Next: next, Now: p.Now,
		})
		if err != nil {
			return 0, 0, err
		}
		schedules++
		ticks += fired.Skipped
	}
	return schedules, ticks, nil
}
