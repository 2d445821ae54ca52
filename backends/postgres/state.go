package postgres

import (
	"context"
	_ "embed"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/engine"
)

// runState is what the verbs that move a run need of it, and of its lease while it is RUNNING. The run is locked, and then its
// lease; nobody locks them the other way round. It is changed in memory and then written by end or free.
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

// current says that the lease is the run's.
func (r *runState) current(l engine.Lease) bool { return !r.token.IsZero() && r.token == l.Token }

//go:embed sql/get_run_state.sql
var getRunStateSQL string

//go:embed sql/get_lease.sql
var getLeaseSQL string

// runState is the run's; RunNotFound when it is not in the namespace. An empty namespace is any.
func (t *tx) runState(ctx context.Context, namespace string, id engine.ID) (*runState, error) {
	runs, err := t.runStates(ctx, []engine.ID{id})
	if err != nil {
		return nil, err
	}
	if len(runs) == 0 || namespace != "" && runs[0].namespace != namespace {
		return nil, engine.RunNotFound(id)
	}
	return runs[0], nil
}

// runStates locks several runs, and then their leases. They come in the order of their ids, without those that are not there.
func (t *tx) runStates(ctx context.Context, ids []engine.ID) ([]*runState, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var runs []*runState
	byID := make(map[engine.ID]*runState, len(ids))
	which := args{"run_ids": idArray(ids)}
	batch := &pgx.Batch{}
	batch.Queue(getRunStateSQL, which).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			run := &runState{}
			err := rows.Scan(idOf(&run.id), &run.namespace, &run.queue, numberOf(&run.status), &run.steps, &run.bytes, &run.attempts,
				&run.failures, &run.losses, jsonOf(&run.policy), spanOf(&run.stepLimit), tokenOf(&run.finalToken))
			if err != nil {
				return err
			}
			runs, byID[run.id] = append(runs, run), run
		}
		return rows.Err()
	})
	batch.Queue(getLeaseSQL, which).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var id engine.ID
			var lease runState
			err := rows.Scan(idOf(&id), tokenOf(&lease.token), &lease.worker, timeOf(&lease.claimedAt), spanOf(&lease.heartbeat),
				&lease.steps, &lease.bytes, &lease.progressed)
			if err != nil {
				return err
			}
			if run := byID[id]; run != nil {
				run.token, run.worker, run.claimedAt, run.heartbeat = lease.token, lease.worker, lease.claimedAt, lease.heartbeat
				run.steps, run.bytes, run.progressed = lease.steps, lease.bytes, lease.progressed
			}
		}
		return rows.Err()
	})
	return runs, t.SendBatch(ctx, batch).Close()
}

// missing makes nothing of the error that says that there was no row.
func missing(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}

//go:embed sql/delete_lease.sql
var deleteLeaseSQL string

//go:embed sql/interrupt_steps.sql
var interruptStepsSQL string

//go:embed sql/free_run.sql
var freeRunSQL string

// free ends the lease of a run that goes on: it waits as p says for whoever claims it next.
func (t *tx) free(ctx context.Context, run *runState, p engine.Parked, now time.Time) error {
	batch := &pgx.Batch{}
	t.dropLease(batch, run, now)
	if run.steps > 0 {
		failure := engine.InterruptedFailure()
		batch.Queue(interruptStepsSQL, args{"run_id": [16]byte(run.id), "error": pointerText(&failure), "now": micros(now)})
	}
	batch.Queue(freeRunSQL, args{"run_id": [16]byte(run.id), "status": int16(p.Status), "available_at": micros(engine.Micros(p.AvailableAt)),
		"waiting_for": p.WaitingFor, "steps": run.steps, "bytes": run.bytes, "attempts": run.attempts,
		"failures": run.failures, "lease_losses": run.losses})
	t.ringRun(run.id)
	t.ringQueue(run.namespace, run.queue)
	return t.SendBatch(ctx, batch).Close()
}

//go:embed sql/wake_steps.sql
var wakeStepsSQL string

// dropLease deletes the run's lease, whose results since the last loss start the count of losses anew, and completes the timers that
// are over.
func (t *tx) dropLease(batch *pgx.Batch, run *runState, now time.Time) {
	if run.token.IsZero() {
		return
	}
	if run.progressed {
		run.losses = 0
	}
	batch.Queue(deleteLeaseSQL, args{"run_id": [16]byte(run.id)})
	if run.steps > 0 {
		batch.Queue(wakeStepsSQL, args{"run_id": [16]byte(run.id), "now": micros(now)})
	}
	t.ringSlot(run.namespace, run.queue)
}

// due is where a run stands that goes on at once.
func due(now time.Time) engine.Parked {
	return engine.Parked{Status: engine.RunPending, AvailableAt: now}
}

//go:embed sql/list_open_steps.sql
var listOpenStepsSQL string

// park ends the lease of a run that waits for the earliest of its timers and retries. A SLEEP that was begun but has no
// end yet is none of them.
func (t *tx) park(ctx context.Context, run *runState, now time.Time) error {
	rows, err := t.Query(ctx, listOpenStepsSQL, args{"run_id": [16]byte(run.id)})
	if err != nil {
		return err
	}
	var open []engine.Step
	var step engine.Step
	places := []any{&step.Name, numberOf(&step.Kind), numberOf(&step.Status), timeOf(&step.RetryAt), timeOf(&step.WakeAt)}
	_, err = pgx.ForEachRow(rows, places, func() error {
		open = append(open, step)
		return nil
	})
	if err != nil {
		return err
	}
	return t.free(ctx, run, engine.Park(open, now), now)
}

// lose ends the lease of a run whose worker was lost.
func (t *tx) lose(ctx context.Context, run *runState, now time.Time) error {
	v := engine.AfterLeaseLost(run.losses, run.progressed, now)
	run.losses, run.progressed = v.Losses, false
	if v.Failed {
		failure := engine.CrashedFailure()
		return t.end(ctx, run, engine.RunFailed, &failure, engine.Token{}, now)
	}
	return t.free(ctx, run, engine.Parked{Status: engine.RunPending, AvailableAt: v.AvailableAt}, now)
}

//go:embed sql/end_run.sql
var endRunSQL string

//go:embed sql/end_steps.sql
var endStepsSQL string

// end is the end of a run, whoever wanted it; token is the lease's under which its code reported it.
func (t *tx) end(ctx context.Context, run *runState, status engine.RunStatus, failure *engine.Failure, token engine.Token, now time.Time) error {
	batch := &pgx.Batch{}
	t.dropLease(batch, run, now)
	if run.steps > 0 {
		closed := engine.RunEndedFailure()
		batch.Queue(endStepsSQL, args{"run_id": [16]byte(run.id), "error": pointerText(&closed), "now": micros(now)})
	}
	batch.Queue(endRunSQL, args{"run_id": [16]byte(run.id), "status": int16(status), "error": pointerText(failure),
		"worker_id": run.worker, "steps": run.steps, "bytes": run.bytes, "failures": run.failures,
		"lease_losses": run.losses, "final_token": idOrNull(engine.ID(token)), "now": micros(now)})
	t.ringEnd(run.id)
	return t.SendBatch(ctx, batch).Close()
}
