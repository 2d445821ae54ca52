package postgres

import (
	"context"
	_ "embed"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/list_live_workers.sql
var listLiveWorkersSQL string

// LiveWorkers returns the workers that are not OFFLINE, by id.
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

//go:embed sql/due_schedules.sql
var dueSchedulesSQL string

// DueSchedules uses the writing pool, whose plans always use the index.
func (s *Store) DueSchedules(ctx context.Context, now time.Time, limit int) (due []engine.Schedule, next time.Time,
	err error) {
	err = s.view(ctx, "list the due schedules", func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, dueSchedulesSQL, args{"limit": limit + 1})
		if err != nil {
			return err
		}
		due, err = pgx.CollectRows(rows, scanSchedule)
		return err
	})
	if err != nil {
		return nil, time.Time{}, err
	}
	for i := range due {
		if i == limit || due[i].FiresAt().After(now) {
			return due[:i], due[i].FiresAt(), nil
		}
	}
	return due, time.Time{}, nil
}

//go:embed sql/list_prunable.sql
var listPrunableSQL string

//go:embed sql/list_retried.sql
var listRetriedSQL string

//go:embed sql/prune_steps.sql
var pruneStepsSQL string

//go:embed sql/prune_signals.sql
var pruneSignalsSQL string

//go:embed sql/prune_payload.sql
var prunePayloadSQL string

//go:embed sql/prune_tags.sql
var pruneTagsSQL string

//go:embed sql/keep_requests.sql
var keepRequestsSQL string

//go:embed sql/prune_requests.sql
var pruneRequestsSQL string

//go:embed sql/prune_receipts.sql
var pruneReceiptsSQL string

//go:embed sql/prune_run.sql
var pruneRunSQL string

// prunedRows limits about how many rows one call deletes, so that each statement ends in time.
const prunedRows = 50_000

// Prune deletes runs after everything that refers to them.
func (s *Store) Prune(_ context.Context, p engine.PruneParams) (int, error) {
	return write(s, "delete old runs", func(t *tx) (int, error) {
		var old []engine.ID
		var id engine.ID
		var rows int64
		rowsOf := map[engine.ID]int64{}
		err := t.read(listPrunableSQL, args{"namespace": p.Namespace, "status": int16(p.Status),
			"before":          micros(engine.Micros(p.Before)),
			"imported_before": [16]byte(engine.FirstID(p.Before)), "limit": p.Limit}, []any{idOf(&id), &rows}, func() {
			old, rowsOf[id] = append(old, id), rows
		})
		if err != nil || len(old) == 0 {
			return 0, err
		}
		// An ended run that is locked gets no new references, except from a retry just before.
		retried, err := t.ids(listRetriedSQL, args{"run_ids": idArray(old)})
		if err != nil {
			return 0, err
		}
		old = slices.DeleteFunc(old, func(id engine.ID) bool { return slices.Contains(retried, id) })
		if old = firstRows(old, rowsOf); len(old) == 0 {
			return 0, nil
		}
		return len(old), t.pruneRuns(old, p.Requests)
	})
}

// firstRows returns the first runs that have together at most prunedRows, but at least one.
func firstRows(runs []engine.ID, rowsOf map[engine.ID]int64) []engine.ID {
	rows, few := int64(0), 0
	for few < len(runs) && (few == 0 || rows+rowsOf[runs[few]] <= prunedRows) {
		rows += rowsOf[runs[few]]
		few++
	}
	return runs[:few]
}

// pruneRuns deletes these runs, which are locked.
func (t *tx) pruneRuns(ids []engine.ID, requests time.Time) error {
	madeAt := make([]int64, len(ids))
	for i, id := range ids {
		madeAt[i] = id.MadeAt().UnixMicro()
	}
	since := engine.Micros(requests).UnixMicro()
	if err := t.queue(keepRequestsSQL, args{"run_ids": idArray(ids), "made_at": madeAt, "since": since}); err != nil {
		return err
	}
	return t.deleteRuns(ids)
}

// deleteRuns deletes ended runs, which are locked, after everything that refers to them.
func (t *tx) deleteRuns(ids []engine.ID) error {
	for _, statement := range []string{
		pruneStepsSQL, pruneSignalsSQL, prunePayloadSQL, pruneTagsSQL, pruneRequestsSQL, pruneReceiptsSQL, pruneRunSQL,
	} {
		if err := t.queue(statement, args{"run_ids": idArray(ids)}); err != nil {
			return err
		}
	}
	return t.send()
}

//go:embed sql/prune_workers.sql
var pruneWorkersSQL string

//go:embed sql/prune_fires.sql
var pruneFiresSQL string

//go:embed sql/prune_past_requests.sql
var prunePastRequestsSQL string

//go:embed sql/prune_audit.sql
var pruneAuditSQL string

// PruneRecords deletes old workers, tick records and audit events.
func (s *Store) PruneRecords(_ context.Context, p engine.PruneRecordsParams) (bool, error) {
	return write(s, "delete old records", func(t *tx) (more bool, err error) {
		for _, kind := range []struct {
			statement string
			before    time.Time
			bound     any
		}{
			{pruneWorkersSQL, p.Workers, micros(engine.Micros(p.Workers))},
			{pruneFiresSQL, p.Fires, micros(engine.Micros(p.Fires))},
			{prunePastRequestsSQL, p.Requests, micros(engine.Micros(p.Requests))},
			{pruneAuditSQL, p.Audit, [16]byte(engine.FirstID(p.Audit))},
		} {
			if kind.before.IsZero() {
				continue
			}
			n := 0
			if _, err := t.found(kind.statement, args{"before": kind.bound, "limit": p.Limit}, &n); err != nil {
				return false, err
			}
			more = more || n == p.Limit
		}
		return more, nil
	})
}
