package storelogic

import (
	"time"

	"github.com/kagzi/kagzi/engine"
)

// FreeRuns ends leases whose runs are due at once, with no loss counted. A run that nobody holds is passed over.
func FreeRuns(tx Tx, ids []engine.ID, now time.Time) error {
	u := begin(tx, now)
	for _, id := range ids {
		run, err := u.heldRun(id)
		if err != nil {
			return err
		}
		if run == nil {
			continue
		}
		u.notifyWorker(run.Holder)
		if err := u.free(run, u.dueNow()); err != nil {
			return err
		}
	}
	return u.flush()
}

// heldRun is the run, nil when nobody holds it.
func (u *unitOfWork) heldRun(id engine.ID) (*Run, error) {
	run, err := u.find("", id)
	if err != nil || run == nil || run.Token.IsZero() {
		return nil, err
	}
	return run, nil
}

// LoseRuns ends the leases of a worker that was lost, as engine.AfterLeaseLost says, and returns
// which. With heardAt, when the worker was last heard from, runs whose own heartbeat timeout is not
// over since keep their lease.
func LoseRuns(tx Tx, ids []engine.ID, heardAt, now time.Time) ([]engine.ID, error) {
	u := begin(tx, now)
	heardAt = engine.Micros(heardAt)
	losses := map[string]engine.Loss{}
	var lost []engine.ID
	for _, id := range ids {
		run, err := u.heldRun(id)
		if err != nil {
			return nil, err
		}
		if run == nil || !heardAt.IsZero() && outlives(run, heardAt, u.now) {
			continue
		}
		loss, known := losses[run.Holder]
		if !known {
			if loss, err = tx.Loss(run.Holder); err != nil {
				return nil, err
			}
			if loss.Runs == 0 { // an older server, or nobody, has counted them
				loss.Runs = len(ids)
			}
			losses[run.Holder] = loss
		}
		u.notifyWorker(run.Holder)
		if err := u.lose(run, loss); err != nil {
			return nil, err
		}
		lost = append(lost, id)
	}
	return lost, u.flush()
}

// outlives says that the run's own heartbeat timeout since then is not over.
func outlives(run *Run, heardAt, now time.Time) bool {
	return run.Timeouts.Heartbeat > 0 && heardAt.Add(run.Timeouts.Heartbeat).After(now)
}

// FreedAtOnce is how many leases of a worker's one transaction ends: whoever else wants to write waits for it.
const FreedAtOnce = 100

// FirstToFree takes from leases what one transaction is to end.
func FirstToFree(leases *[]engine.Lease) (first []engine.Lease) {
	n := min(len(*leases), FreedAtOnce)
	first, *leases = (*leases)[:n], (*leases)[n:]
	return first
}

// FreeLost comes for the leases that a worker was left which is OFFLINE.
func FreeLost(tx Tx, now time.Time) (engine.Freed, error) {
	left, next, err := tx.LeftBehind(engine.Micros(now), FreedAtOnce)
	if err != nil || len(left) == 0 {
		return engine.Freed{Next: next}, err
	}
	var lost, others []engine.ID
	for _, l := range left {
		if l.Lost {
			lost = append(lost, l.RunID)
		} else {
			others = append(others, l.RunID)
		}
	}
	freed, err := LoseRuns(tx, lost, time.Time{}, now)
	if err != nil {
		return engine.Freed{}, err
	}
	return engine.Freed{Runs: append(freed, others...), Next: next}, FreeRuns(tx, others, now)
}

// TimeoutSteps takes the attempts of one run together, so that the end of its lease does not
// interrupt one that is over itself.
func TimeoutSteps(tx Tx, p engine.TimeoutStepsParams) (engine.TimedOut, error) {
	u := begin(tx, p.Now)
	late, next, err := tx.LateSteps(u.now, p.Skip+p.Limit)
	if err != nil || len(late) <= p.Skip {
		return engine.TimedOut{Next: next}, err
	}
	late = late[p.Skip:]
	var order []engine.ID
	of := map[engine.ID][]engine.Step{}
	for _, step := range late {
		if of[step.RunID] == nil {
			order = append(order, step.RunID)
		}
		of[step.RunID] = append(of[step.RunID], step)
	}
	var out engine.TimedOut
	for _, id := range order {
		verdicts, err := u.timeout(id, of[id], p.Jitter)
		if err != nil {
			return engine.TimedOut{}, err
		}
		out.Attempts = append(out.Attempts, verdicts...)
	}
	if err := u.flush(); err != nil {
		return engine.TimedOut{}, err
	}
	_, out.Next, err = tx.LateSteps(u.now, p.Skip) // anew: the end of a lease has interrupted what else it had running
	return out, err
}

// timeout fails these attempts of a run and ends its lease.
func (u *unitOfWork) timeout(id engine.ID, late []engine.Step, jitter float64) ([]engine.TimedOutAttempt, error) {
	run, err := u.run("", id)
	if err != nil {
		return nil, err
	}
	final, out := false, make([]engine.TimedOutAttempt, len(late))
	for i := range late {
		step := &late[i]
		v := fail(run, step, engine.StepTimedOutFailure(), u.now, jitter)
		final = final || !v.Retry
		out[i] = engine.TimedOutAttempt{RunID: id, Step: step.Name, Worker: step.WorkerID, Verdict: v}
		step.Token = engine.Token{} // no lease has reported this, so no late report is a repetition of it
		if err := u.tx.SaveStep(step); err != nil {
			return nil, err
		}
	}
	u.notifyWorker(run.Holder)
	if final { // another worker takes the error into the code
		return out, u.free(run, u.dueNow())
	}
	return out, u.park(run)
}

// EndExpired ends the runs whose deadline or grace is over.
func EndExpired(tx Tx, p engine.EndExpiredParams) (engine.Expired, error) {
	u := begin(tx, p.Now)
	ids, next, err := tx.Expired(u.now, p.Skip+p.Limit)
	if err != nil || len(ids) <= p.Skip {
		return engine.Expired{Next: next}, err
	}
	ids = ids[p.Skip:]
	expired := engine.Expired{Runs: len(ids)}
	for _, id := range ids {
		run, err := u.run("", id)
		if err != nil {
			return engine.Expired{}, err
		}
		if run.Status.Ended() {
			continue // with its parent, a moment ago
		}
		status, failure := expiry(&run.Run)
		if status == engine.RunCancelled {
			expired.Cancelled = append(expired.Cancelled, id)
		} else {
			expired.TimedOut = append(expired.TimedOut, id)
		}
		u.notifyWorker(run.Holder)
		if err := u.end(run, status, &failure, engine.Token{}); err != nil {
			return engine.Expired{}, err
		}
	}
	if err := u.flush(); err != nil {
		return engine.Expired{}, err
	}
	_, expired.Next, err = tx.Expired(u.now, p.Skip) // anew: an end may have ended others
	return expired, err
}

// expiry is how a run ends whose time is up.
func expiry(run *engine.Run) (engine.RunStatus, engine.Failure) {
	if !run.GraceUntil.IsZero() && run.ExpiresAt().Equal(run.GraceUntil) {
		return engine.RunCancelled, engine.EndedByFailure(engine.RunCancelled, run.CancelReason)
	}
	return engine.RunTimedOut, engine.DeadlineFailure(run.DeadlineAt)
}
