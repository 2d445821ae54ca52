package sqlite

import (
	"context"
	_ "embed"
	"time"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/list_prunable.sql
var listPrunableSQL string

//go:embed sql/prune_steps.sql
var pruneStepsSQL string

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

//go:embed sql/prune_signals.sql
var pruneSignalsSQL string

//go:embed sql/prune_run.sql
var pruneRunSQL string

// pruneSQL deletes a run after everything that refers to it.
var pruneSQL = []*string{
	&pruneStepsSQL, &prunePayloadSQL, &pruneTagsSQL, &pruneRequestsSQL, &pruneReceiptsSQL, &pruneSignalsSQL,
	&pruneRunSQL,
}

// prunedRows limits about how many rows one transaction deletes, because all other writes wait for
// it.
const prunedRows = 10_000

// Prune deletes runs with everything that belongs to them.
func (s *Store) Prune(ctx context.Context, p engine.PruneParams) (int, error) {
	return write(ctx, s, "Prune", 0, func(t *tx) (int, error) {
		var old []engine.ID
		rows := int64(0)
		err := t.query(&listPrunableSQL, func(r *row) error {
			id := r.id()
			if rows += r.num(); len(old) == 0 || rows <= prunedRows {
				old = append(old, id)
			}
			return nil
		}, text("namespace", p.Namespace), num("status", p.Status), instant("before", engine.Micros(p.Before)),
			idArg("imported_before", engine.FirstID(p.Before)), num("limit", p.Limit))
		if err != nil {
			return 0, err
		}
		for _, id := range old {
			kept, err := t.exec(&keepRequestsSQL, idArg("run_id", id), num("made_at", id.MadeAt().UnixMicro()),
				num("since", engine.Micros(p.Requests).UnixMicro()))
			if err != nil {
				return 0, err
			}
			t.queues.requests = t.queues.requests || kept > 0
			if err := t.deleteRun(id); err != nil {
				return 0, err
			}
		}
		return len(old), nil
	})
}

// deleteRun deletes an ended run after everything that refers to it.
func (t *tx) deleteRun(id engine.ID) error {
	for _, statement := range pruneSQL {
		if _, err := t.exec(statement, idArg("run_id", id)); err != nil {
			return err
		}
	}
	return nil
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
func (s *Store) PruneRecords(ctx context.Context, p engine.PruneRecordsParams) (bool, error) {
	return write(ctx, s, "PruneRecords", 0, func(t *tx) (more bool, err error) {
		for _, kind := range []struct {
			statement *string
			before    time.Time
			bound     arg
		}{
			{&pruneWorkersSQL, p.Workers, instant("before", engine.Micros(p.Workers))},
			{&pruneFiresSQL, p.Fires, instant("before", engine.Micros(p.Fires))},
			{&prunePastRequestsSQL, p.Requests, instant("before", engine.Micros(p.Requests))},
			{&pruneAuditSQL, p.Audit, idArg("before", engine.FirstID(p.Audit))},
		} {
			if kind.before.IsZero() {
				continue
			}
			n, err := t.exec(kind.statement, kind.bound, num("limit", p.Limit))
			if err != nil {
				return false, err
			}
			more = more || int(n) == p.Limit
		}
		return more, nil
	})
}

//go:embed sql/list_live_workers.sql
var listLiveWorkersSQL string

// LiveWorkers returns the workers that are not OFFLINE, by id.
func (s *Store) LiveWorkers(ctx context.Context) ([]engine.LiveWorker, error) {
	return read(ctx, s, "LiveWorkers", func(r session) (live []engine.LiveWorker, err error) {
		err = r.query(&listLiveWorkersSQL, func(r *row) error {
			live = append(live, engine.LiveWorker{ID: r.text(), HeardAt: r.time()})
			return nil
		})
		return live, err
	})
}

//go:embed sql/due_schedules.sql
var dueSchedulesSQL string

// DueSchedules reads one schedule more than it may return: that one, or the first that is not due,
// fires next.
func (s *Store) DueSchedules(ctx context.Context, now time.Time, limit int) ([]engine.Schedule, time.Time, error) {
	type found struct {
		due  []engine.Schedule
		next time.Time
	}
	out, err := read(ctx, s, "DueSchedules", func(r session) (out found, err error) {
		err = r.query(&dueSchedulesSQL, func(r *row) error {
			schedule, err := readSchedule(r)
			if len(out.due) < limit && !schedule.FiresAt().After(now) {
				out.due = append(out.due, schedule)
			} else if out.next.IsZero() {
				out.next = schedule.FiresAt()
			}
			return err
		}, num("limit", limit+1))
		return out, err
	})
	return out.due, out.next, err
}
