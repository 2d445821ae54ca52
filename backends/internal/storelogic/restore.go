package storelogic

import (
	"time"

	"github.com/kagzi/kagzi/engine"
)

// Restoring is a transaction over rows that came from a backup and that no server uses yet.
type Restoring interface {
	Tx
	// Leases returns the runs that are held, by id.
	Leases() ([]engine.ID, error)
	// DeregisterWorkers makes every worker OFFLINE with the reason OfflineForced, and returns how
	// many were not.
	DeregisterWorkers(now time.Time) (int, error)
	// DueSchedules returns the schedules that a server would fire by now, and those that it would
	// fire if they were not paused or their namespace not disabled, without inputs.
	DueSchedules(now time.Time) ([]engine.Schedule, error)
	// Stand records a state of the whole database under a name; an empty value removes it.
	Stand(name, value string, at time.Time) error
}

// AfterRestore prepares restored rows for a server.
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

// passOver moves schedules past now: ticks that were due since the backup have probably fired in
// the database that was replaced. The same holds for a schedule that was paused at the backup and
// resumed after it, so that resuming it now fires nothing twice.
func passOver(tx Restoring, p engine.AfterRestoreParams) (schedules int, ticks int64, err error) {
	due, err := tx.DueSchedules(p.Now)
	if err != nil {
		return 0, 0, err
	}
	for i := range due {
		s := &due[i]
		next, skipped, err := p.Next(s, p.Now)
		if err != nil {
			continue // the coordinator reports why it cannot fire
		}
		fired, err := FireSchedule(tx, engine.FireScheduleParams{
			ScheduleID: s.ID, Revision: s.Revision, Expect: s.NextFireAt, Skipped: skipped, Next: next, Now: p.Now,
		})
		if err == nil && fired.Stale { // it is paused, or its namespace is disabled
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

// passOverAtRest moves a schedule that does not fire at present to next.
func passOverAtRest(tx Tx, id engine.ID, skipped int64, next, now time.Time) error {
	u := begin(tx, now)
	s, err := u.schedule("", id.String())
	if err != nil {
		return err
	}
	s.Skipped += skipped
	s.NextFireAt, s.Delay = engine.Micros(next), 0
	return u.saveSchedule(s)
}
