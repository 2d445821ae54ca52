package postgres

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/list_live_workers.sql
var listLiveWorkersSQL string

// LiveWorkers is by id.
func (s *Store) LiveWorkers(ctx context.Context) (live []engine.LiveWorker, err error) {
	err = s.view(ctx, "list the live workers", func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, listLiveWorkersSQL)
		if err != nil {
			return err
		}
		live, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (w engine.LiveWorker, err error) {
			err = row.Scan(&w.ID, timeOf(&w.HeardAt))
			return w, err
		})
		return err
	})
	return live, err
}

//go:embed sql/list_held_past_heartbeat.sql
var listHeldPastHeartbeatSQL string

// FreeLost comes for the leases that OfflineWorker left.
func (s *Store) FreeLost(ctx context.Context, now time.Time) (freed int, next time.Time, err error) {
	now = engine.Micros(now)
	err = s.write("free the runs of lost workers", func(ctx context.Context, t *tx) (err error) {
		freed, next, err = t.freeLost(ctx, now)
		return err
	})
	if err != nil {
		return 0, time.Time{}, err
	}
	return freed, next, nil
}

func (t *tx) freeLost(ctx context.Context, now time.Time) (freed int, next time.Time, err error) {
	rows, err := t.Query(ctx, listHeldPastHeartbeatSQL)
	if err != nil {
		return 0, next, err
	}
	over := map[string][]engine.ID{}
	var id engine.ID
	var worker string
	var at time.Time
	_, err = pgx.ForEachRow(rows, []any{idOf(&id), &worker, timeOf(&at)}, func() error {
		switch {
		case !at.After(now):
			over[worker] = append(over[worker], id)
		case next.IsZero() || at.Before(next):
			next = at
		}
		return nil
	})
	if err != nil {
		return 0, next, err
	}
	for worker, ids := range over {
		n, err := t.freeLostOf(ctx, worker, ids, now)
		if err != nil {
			return 0, next, err
		}
		freed += n
	}
	return freed, next, nil
}

// freeLostOf frees these runs of a worker, unless it has come back meanwhile.
func (t *tx) freeLostOf(ctx context.Context, worker string, ids []engine.ID, now time.Time) (int, error) {
	w, err := t.oneWorker(ctx, lockWorkerSQL, args{"worker_id": worker})
	if err != nil || w == nil || w.Status != engine.WorkerOffline || w.Reason != engine.OfflineLost {
		return 0, err
	}
	runs, err := t.stillHeld(ctx, worker, ids)
	if err != nil {
		return 0, err
	}
	for _, run := range runs {
		if err := t.lose(ctx, run, now); err != nil {
			return 0, err
		}
		t.ringWorker(worker)
	}
	return len(runs), nil
}

//go:embed sql/list_timed_out.sql
var listTimedOutSQL string

//go:embed sql/list_late_steps.sql
var listLateStepsSQL string

//go:embed sql/next_timeout.sql
var nextTimeoutSQL string

// TimeoutSteps takes the attempts of one run together, so that the end of its lease does not interrupt one that is over itself.
func (s *Store) TimeoutSteps(ctx context.Context, p engine.TimeoutStepsParams) (failed int, next time.Time, err error) {
	p.Now = engine.Micros(p.Now)
	err = s.write("time steps out", func(ctx context.Context, t *tx) (err error) {
		failed, err = t.timeoutSteps(ctx, &p)
		if err != nil {
			return err
		}
		return t.QueryRow(ctx, nextTimeoutSQL).Scan(timeOf(&next))
	})
	if err != nil {
		return 0, time.Time{}, err
	}
	return failed, next, nil
}

func (t *tx) timeoutSteps(ctx context.Context, p *engine.TimeoutStepsParams) (int, error) {
	rows, err := t.Query(ctx, listTimedOutSQL, args{"now": micros(p.Now), "limit": p.Limit})
	if err != nil {
		return 0, err
	}
	var steps, runs []engine.ID
	var step, run engine.ID
	_, err = pgx.ForEachRow(rows, []any{idOf(&step), idOf(&run)}, func() error {
		steps, runs = append(steps, step), append(runs, run)
		return nil
	})
	if err != nil || len(steps) == 0 {
		return 0, err
	}
	states, err := t.runStates(ctx, runs)
	if err != nil {
		return 0, err
	}
	late, err := t.lateSteps(ctx, steps, p.Now)
	if err != nil {
		return 0, err
	}
	failed := 0
	for _, run := range states {
		of := late[run.id]
		if len(of) == 0 || run.token.IsZero() {
			continue
		}
		if err := t.timeout(ctx, run, of, p); err != nil {
			return 0, err
		}
		failed += len(of)
	}
	return failed, nil
}

func (t *tx) lateSteps(ctx context.Context, ids []engine.ID, now time.Time) (map[engine.ID][]engine.Step, error) {
	rows, err := t.Query(ctx, listLateStepsSQL, args{"step_ids": idArray(ids), "now": micros(now)})
	if err != nil {
		return nil, err
	}
	steps, err := pgx.CollectRows(rows, scanStep)
	late := map[engine.ID][]engine.Step{}
	for _, step := range steps {
		late[step.RunID] = append(late[step.RunID], step)
	}
	return late, err
}

// timeout fails these attempts of a run and ends its lease.
func (t *tx) timeout(ctx context.Context, run *runState, late []engine.Step, p *engine.TimeoutStepsParams) error {
	final := false
	for i := range late {
		step := &late[i]
		v := fail(run, step, engine.StepTimedOutFailure(), p.Now, p.Roll)
		final = final || !v.Retry
		step.Token = engine.Token{} // no lease wrote this
		if err := t.update(ctx, step); err != nil {
			return err
		}
	}
	t.ringWorker(run.worker)
	if final { // another worker takes the error into the code
		return t.free(ctx, run, due(p.Now), p.Now)
	}
	return t.park(ctx, run, p.Now)
}

//go:embed sql/list_prunable.sql
var listPrunableSQL string

//go:embed sql/prune_steps.sql
var pruneStepsSQL string

//go:embed sql/prune_payload.sql
var prunePayloadSQL string

//go:embed sql/prune_tags.sql
var pruneTagsSQL string

//go:embed sql/prune_requests.sql
var pruneRequestsSQL string

//go:embed sql/prune_receipts.sql
var pruneReceiptsSQL string

//go:embed sql/prune_run.sql
var pruneRunSQL string

//go:embed sql/prune_workers.sql
var pruneWorkersSQL string

// Prune deletes runs after all that refers to them.
func (s *Store) Prune(ctx context.Context, p engine.PruneParams) (deleted int, err error) {
	before := engine.Micros(p.Before)
	err = s.write("delete old runs", func(ctx context.Context, t *tx) error {
		rows, err := t.Query(ctx, listPrunableSQL, args{"before": micros(before), "limit": p.Limit})
		if err != nil {
			return err
		}
		old, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (id [16]byte, err error) {
			err = row.Scan(&id)
			return id, err
		})
		if err != nil {
			return err
		}
		batch := &pgx.Batch{}
		if len(old) > 0 {
			for _, statement := range []string{
				pruneStepsSQL, prunePayloadSQL, pruneTagsSQL, pruneRequestsSQL, pruneReceiptsSQL, pruneRunSQL,
			} {
				batch.Queue(statement, args{"run_ids": old})
			}
		}
		batch.Queue(pruneWorkersSQL, args{"before": micros(before)})
		deleted = len(old)
		return t.SendBatch(ctx, batch).Close()
	})
	if err != nil {
		return 0, err
	}
	return deleted, nil
}
