package storelogic

import (
	"time"

	"github.com/kagzi/kagzi/engine"
)

// FreeRuns ends leases whose runs become due at once, without counting a loss. It skips runs
// without a lease.
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

// heldRun returns the run, or nil if nobody holds it.
func (u *unitOfWork) heldRun(id engine.ID) (*Run, error) {
	run, err := u.find("", id)
	if err != nil || run == nil || run.Token.IsZero() {
		return nil, err
	}
	return run, nil
}

// LoseRuns ends the leases of a lost worker, as engine.AfterLeaseLost decides, and returns which.
// With heardAt, the worker's last heartbeat, runs whose own heartbeat timeout has not passed since
// keep their lease.
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

// outlives says whether the run's own heartbeat timeout since heardAt has not passed.
func outlives(run *Run, heardAt, now time.Time) bool {
	return run.Timeouts.Heartbeat > 0 && heardAt.Add(run.Timeouts.Heartbeat).After(now)
}

// FreedAtOnce limits the leases of a worker that one transaction ends, because other writers wait
// for it.
const FreedAtOnce = 100

// FirstToFree takes from leases those that one transaction may end.
func FirstToFree(leases *[]engine.Lease) (first []engine.Lease) {
	n := min(len(*leases), FreedAtOnce)
	first, *leases = (*leases)[:n], (*leases)[n:]
	return first
}

// FreeLost frees leases that OFFLINE workers left behind.
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

// TimeoutSteps handles the attempts of one run together, so that the end of its lease does not
// interrupt another that has timed out itself.
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
		verdicts, err := u.timeout(id, of[id], p.Margin, p.Jitter)
		if err != nil {
			return engine.TimedOut{}, err
		}
		out.Attempts = append(out.Attempts, verdicts...)
	}
	if err := u.flush(); err != nil {
		return engine.TimedOut{}, err
	}
	_, out.Next, err = tx.LateSteps(u.now, p.Skip) // read again: ending leases interrupted other attempts
	return out, err
}

// timeout fails these attempts of a run and ends its lease.
func (u *unitOfWork) timeout(id engine.ID, late []engine.Step, margin time.Duration,
	jitter float64) ([]engine.TimedOutAttempt, error) {
	run, err := u.run("", id)
	if err != nil {
		return nil, err
	}
	final, out := false, make([]engine.TimedOutAttempt, len(late))
	for i := range late {
		step := &late[i]
		v := fail(run, step, engine.StepTimedOutFailure(), u.now, margin, jitter)
		final = final || !v.Retry
		out[i] = engine.TimedOutAttempt{RunID: id, Step: step.Name, Worker: step.WorkerID, Verdict: v}
		if !v.Retry {
			unsettled(step)
		}
		step.Token = engine.Token{} // no lease reported this, so no later report is a repetition of it
		if err := u.tx.SaveStep(step); err != nil {
			return nil, err
		}
	}
	u.notifyWorker(run.Holder)
	if final { // another worker returns the error to the code
		return out, u.free(run, u.dueNow())
	}
	return out, u.park(run)
}

// EndExpired ends the runs whose deadline or grace has passed.
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
			continue // it just ended with its parent
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
	_, expired.Next, err = tx.Expired(u.now, p.Skip) // read again: an end may have ended others
	return expired, err
}

// expiry returns how a run ends whose time is up.
func expiry(run *engine.Run) (engine.RunStatus, engine.Failure) {
	if !run.GraceUntil.IsZero() && run.ExpiresAt().Equal(run.GraceUntil) {
		return engine.RunCancelled, engine.EndedByFailure(engine.RunCancelled, run.CancelReason)
	}
	return engine.RunTimedOut, engine.DeadlineFailure(run.DeadlineAt)
}
