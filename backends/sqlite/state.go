package sqlite

import (
	_ "embed"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// runState is what the verbs that move a run need of it, and of its lease while it is RUNNING. It is changed in memory and then
// written by end or free.
type runState struct {
	id         engine.ID
	namespace  string
	queue      string
	status     engine.RunStatus
	steps      int64
	bytes      int64
	progressed bool
	attempts   int
	failures   int
	losses     int
	policy     *engine.RetryPolicy
	stepLimit  time.Duration // start-to-close of the run's steps; 0: the default
	finalToken engine.Token

	// Of the lease.
	token     engine.Token
	worker    string
	claimedAt time.Time
	heartbeat time.Duration
}

func readRunState(r *row) (runState, error) {
	s := runState{
		id: r.id(), namespace: r.text(), queue: r.text(), status: engine.RunStatus(r.num()), steps: r.num(), bytes: r.num(),
		progressed: r.flag(), attempts: int(r.num()), failures: int(r.num()), losses: int(r.num()),
	}
	var err error
	decode(r.text(), &s.policy, &err)
	s.stepLimit, s.finalToken = r.length(), r.token()
	s.token, s.worker, s.claimedAt, s.heartbeat = r.token(), r.text(), r.time(), r.length()
	return s, err
}

//go:embed sql/get_run_state.sql
var getRunStateSQL string

// runState is the run's; RunNotFound when it is not in the namespace. An empty namespace is any.
func (t *tx) runState(namespace string, id engine.ID) (run runState, err error) {
	found, err := t.found(&getRunStateSQL, func(r *row) (err error) {
		run, err = readRunState(r)
		return err
	}, text("namespace", namespace), idArg("run_id", id))
	if err == nil && !found {
		err = engine.RunNotFound(id)
	}
	return run, err
}

//go:embed sql/get_held.sql
var getHeldSQL string

// held is the state of the run that the lease is for, and whether the lease is the current one.
func (t *tx) held(l engine.Lease) (run runState, current bool, err error) {
	current, err = t.found(&getHeldSQL, func(r *row) (err error) {
		run, err = readRunState(r)
		return err
	}, text("namespace", l.Namespace), idArg("run_id", l.RunID), tokenArg("token", l.Token))
	return run, current, err
}

//go:embed sql/list_held_by_worker.sql
var listHeldByWorkerSQL string

// heldBy is the runs whose leases the worker has.
func (t *tx) heldBy(worker string) (runs []runState, err error) {
	err = t.query(&listHeldByWorkerSQL, func(r *row) error {
		run, err := readRunState(r)
		runs = append(runs, run)
		return err
	}, text("worker_id", worker))
	return runs, err
}

//go:embed sql/delete_lease.sql
var deleteLeaseSQL string

//go:embed sql/interrupt_steps.sql
var interruptStepsSQL string

//go:embed sql/free_run.sql
var freeRunSQL string

// free ends the lease of a run that goes on: it waits as p says for whoever claims it next.
func (t *tx) free(run *runState, p engine.Parked, now time.Time) error {
	if err := t.dropLease(run, now); err != nil {
		return err
	}
	if run.steps > 0 {
		failure := engine.InterruptedFailure()
		if _, err := t.exec(&interruptStepsSQL, idArg("run_id", run.id), text("error", encodeFailure(&failure)), instant("now", now)); err != nil {
			return err
		}
	}
	_, err := t.exec(&freeRunSQL, idArg("run_id", run.id), num("status", p.Status), instant("available_at", engine.Micros(p.AvailableAt)),
		text("waiting_for", p.WaitingFor), num("steps", run.steps), num("bytes", run.bytes), num("attempts", run.attempts),
		num("failures", run.failures), num("lease_losses", run.losses))
	t.ringRun(run.id)
	t.ringQueue(run.namespace, run.queue)
	return err
}

// dropLease deletes the run's lease, if it has one. Results that were recorded under it start the count of losses anew, and
// timers that ran out are over.
func (t *tx) dropLease(run *runState, now time.Time) error {
	if run.token.IsZero() {
		return nil
	}
	if run.progressed {
		run.losses = 0
	}
	t.ringSlot(run.namespace, run.queue)
	t.forget(run.id)
	if _, err := t.exec(&deleteLeaseSQL, idArg("run_id", run.id)); err != nil {
		return err
	}
	return t.wake(run.id, run.steps, now)
}

//go:embed sql/wake_steps.sql
var wakeStepsSQL string

// wake completes the due timers of a run that has begun so many steps.
func (t *tx) wake(run engine.ID, steps int64, now time.Time) error {
	if steps == 0 {
		return nil
	}
	_, err := t.exec(&wakeStepsSQL, idArg("run_id", run), instant("now", engine.Micros(now)))
	return err
}

// due is where a run stands that goes on at once.
func due(now time.Time) engine.Parked {
	return engine.Parked{Status: engine.RunPending, AvailableAt: now}
}

//go:embed sql/list_open_steps.sql
var listOpenStepsSQL string

// park ends the lease of a run that waits for the earliest of its timers and retries. A SLEEP that was begun but has no
// end yet is none of them.
func (t *tx) park(run *runState, now time.Time) error {
	var open []engine.Step
	err := t.query(&listOpenStepsSQL, func(r *row) error {
		open = append(open, engine.Step{
			Name: r.text(), Kind: engine.StepKind(r.num()), Status: engine.StepStatus(r.num()), RetryAt: r.time(), WakeAt: r.time(),
		})
		return nil
	}, idArg("run_id", run.id))
	if err != nil {
		return err
	}
	return t.free(run, engine.Park(open, now), now)
}

// lose ends the lease of a run whose worker was lost.
func (t *tx) lose(run *runState, now time.Time) error {
	v := engine.AfterLeaseLost(run.losses, run.progressed, now)
	run.losses, run.progressed = v.Losses, false
	if v.Failed {
		failure := engine.CrashedFailure()
		return t.end(run, engine.RunFailed, &failure, engine.Token{}, now)
	}
	return t.free(run, engine.Parked{Status: engine.RunPending, AvailableAt: v.AvailableAt}, now)
}

//go:embed sql/end_run.sql
var endRunSQL string

//go:embed sql/end_steps.sql
var endStepsSQL string

// end is the end of a run, whoever wanted it; token is the lease's under which its code reported it.
func (t *tx) end(run *runState, status engine.RunStatus, failure *engine.Failure, token engine.Token, now time.Time) error {
	if err := t.dropLease(run, now); err != nil {
		return err
	}
	if err := t.endSteps(run.id, run.steps, now); err != nil {
		return err
	}
	_, err := t.exec(&endRunSQL, idArg("run_id", run.id), num("status", status), text("error", encodeFailure(failure)),
		text("worker_id", run.worker), num("steps", run.steps), num("bytes", run.bytes), num("failures", run.failures),
		num("lease_losses", run.losses), tokenArg("final_token", token), instant("now", now))
	t.ringEnd(run.id)
	return err
}

// endSteps closes what is still open in a run that has begun so many steps.
func (t *tx) endSteps(run engine.ID, steps int64, now time.Time) error {
	if steps == 0 {
		return nil
	}
	failure := engine.RunEndedFailure()
	_, err := t.exec(&endStepsSQL, idArg("run_id", run), text("error", encodeFailure(&failure)), instant("now", now))
	return err
}
