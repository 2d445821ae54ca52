package storelogic

import (
	"time"

	"github.com/kagzi/kagzi/engine"
)

// Restoring is a transaction over rows that came out of a backup and that nobody serves yet.
type Restoring interface {
	Tx
	// Leases is the runs that are held, by id.
	Leases() ([]engine.ID, error)
	// DeregisterWorkers makes every worker OFFLINE, as OfflineForced, and returns how many were not.
	DeregisterWorkers(now time.Time) (int, error)
	// DueSchedules is the schedules that a server would fire by now, and those that it would if
	// they were not paused or their namespace disabled, without their inputs.
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
	if done.Workers, err = tx.DeregisterWorkers(p.Now); err != nil {
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

// passOver has schedules go on after now: what was due since the backup has probably fired already,
// in the database that was replaced. So it has where a schedule was paused then and was resumed
// since, and whoever resumes it now has nothing fired twice.
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
		if err == nil && fired.Stale { // it is paused, or its namespace disabled
			err = passOverAtRest(tx, s.ID, skipped, next, p.Now)
		}
		if err != nil {
			return 0, 0, err
		}
		schedules++
		ticks += skipped
	}
	return schedules, ticks, nil
}

// passOverAtRest has a schedule go on at next that does not fire as it stands.
func passOverAtRest(tx Tx, id engine.ID, skipped int64, next, now time.Time) error {
	u := begin(tx, now)
	s, err := u.schedule("", id.String())
	if err != nil {
		return err
	}
	s.Skipped += skipped
	s.NextFireAt = engine.Micros(next)
	return u.saveSchedule(s)
}
