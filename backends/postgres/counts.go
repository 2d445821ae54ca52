package postgres

import (
	"context"
	_ "embed"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/get_worker.sql
var getWorkerSQL string

// GetWorker returns OFFLINE workers too.
func (s *Store) GetWorker(ctx context.Context, id string) (w engine.Worker, err error) {
	missing := engine.WorkerUnknown(id)
	err = s.view(ctx, "read a worker", func(ctx context.Context) error {
		return notFound(s.views.QueryRow(ctx, getWorkerSQL, args{"worker_id": id}).Scan(workerPlaces(&w)...), missing)
	})
	if err != nil {
		return engine.Worker{}, err
	}
	return w, nil
}

//go:embed sql/list_workers.sql
var listWorkersSQL string

var listWorkersBackSQL = strings.Replace(listWorkersSQL, "order by registered_at desc, worker_id desc",
	"order by registered_at asc, worker_id asc", 1)

//go:embed sql/count_workers.sql
var countWorkersSQL string

func scanWorker(row pgx.CollectableRow) (w engine.Worker, err error) {
	err = row.Scan(workerPlaces(&w)...)
	return w, err
}

// ListWorkers returns workers, newest first.
func (s *Store) ListWorkers(ctx context.Context, f engine.WorkerFilter, p engine.Page) (workers []engine.Worker,
	info engine.PageInfo, err error) {
	filter := args{"namespace": f.Namespace, "queue": f.Queue, "status": int16(f.Status)}
	after, before, statement := p.After.OrZero(), p.Before.OrZero(), listWorkersSQL
	if p.Before != nil {
		statement = listWorkersBackSQL
	}
	a := merge(filter, args{"after": p.After != nil, "after_at": micros(engine.Micros(after.At)),
		"after_id": after.Name,
		"before":   p.Before != nil, "before_at": micros(engine.Micros(before.At)), "before_id": before.Name,
		"limit": p.Limit + 1})
	err = s.view(ctx, "list workers", func(ctx context.Context) (err error) {
		workers, info, err = list(ctx, s, &p, statement, a, scanWorker, countWorkersSQL, filter)
		return err
	})
	return workers, info, err
}

//go:embed sql/lane_depths.sql
var laneDepthsSQL string

//go:embed sql/running_depths.sql
var runningDepthsSQL string

//go:embed sql/list_working.sql
var listWorkingSQL string

// GetQueueDepth counts lane by lane.
func (s *Store) GetQueueDepth(ctx context.Context, namespace, queue string,
	now time.Time) ([]engine.QueueDepth, error) {
	var depths engine.Depths
	var workers []engine.Worker
	batch := &pgx.Batch{}
	batch.Queue(laneDepthsSQL, args{"namespace": namespace, "task_queue": queue,
		"now": micros(engine.Micros(now))}).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var l engine.LaneDepth
			if err := rows.Scan(&l.Queue, &l.Type, jsonOf(&l.Requirements), &l.Pending, &l.Sleeping, &l.Due,
				timeOf(&l.OldestDue)); err != nil {
				return err
			}
			depths.AddLane(l)
		}
		return rows.Err()
	})
	batch.Queue(runningDepthsSQL, args{"namespace": namespace, "task_queue": queue}).Query(func(rows pgx.Rows) error {
		var name string
		var running int64
		_, err := pgx.ForEachRow(rows, []any{&name, &running}, func() error {
			depths.SetRunning(name, running)
			return nil
		})
		return err
	})
	batch.Queue(listWorkingSQL, args{"namespace": namespace}).Query(func(rows pgx.Rows) (err error) {
		workers, err = pgx.CollectRows(rows, scanWorker)
		return err
	})
	err := s.view(ctx, "count the queues", func(ctx context.Context) error {
		return s.views.send(ctx, batch)
	})
	if err != nil {
		return nil, err
	}
	return depths.List(workers, queue), nil
}

//go:embed sql/count_by_status_and_type.sql
var countByStatusAndTypeSQL string

//go:embed sql/count_workers_by_status.sql
var countWorkersByStatusSQL string

//go:embed sql/count_schedules_by_enabled.sql
var countSchedulesByEnabledSQL string

//go:embed sql/oldest_due.sql
var oldestDueSQL string

// GetStats counts the rows themselves, with a scan.
func (s *Store) GetStats(ctx context.Context, namespace string, now time.Time) (engine.Stats, error) {
	out := engine.Stats{ByStatus: map[engine.RunStatus]int64{}, ByType: map[string]int64{}}
	batch := &pgx.Batch{}
	batch.Queue(countByStatusAndTypeSQL, args{"namespace": namespace}).Query(func(rows pgx.Rows) error {
		var status engine.RunStatus
		var kind string
		var n int64
		_, err := pgx.ForEachRow(rows, []any{numberOf(&status), &kind, &n}, func() error {
			out.ByStatus[status] += n
			out.ByType[kind] += n
			return nil
		})
		return err
	})
	batch.Queue(countWorkersByStatusSQL, args{"namespace": namespace}).Query(func(rows pgx.Rows) error {
		var status engine.WorkerStatus
		var n int64
		_, err := pgx.ForEachRow(rows, []any{numberOf(&status), &n}, func() error {
			out.Workers += n
			if status == engine.WorkerOnline {
				out.OnlineWorkers = n
			}
			return nil
		})
		return err
	})
	batch.Queue(countSchedulesByEnabledSQL, args{"namespace": namespace}).Query(func(rows pgx.Rows) error {
		var enabled bool
		var n int64
		_, err := pgx.ForEachRow(rows, []any{&enabled, &n}, func() error {
			out.Schedules += n
			if enabled {
				out.EnabledSchedules = n
			}
			return nil
		})
		return err
	})
	batch.Queue(oldestDueSQL, args{"namespace": namespace, "now": micros(engine.Micros(now))}).QueryRow(
		func(row pgx.Row) error {
			return row.Scan(timeOf(&out.OldestDue))
		})
	err := s.view(ctx, "count everything", func(ctx context.Context) error {
		return s.views.send(ctx, batch)
	})
	if err != nil {
		return engine.Stats{}, err
	}
	return out, nil
}

//go:embed sql/list_types.sql
var listTypesSQL string

var listTypesBackSQL = strings.Replace(listTypesSQL, "order by r.workflow_type asc", "order by r.workflow_type desc", 1)

//go:embed sql/count_types.sql
var countTypesSQL string

// ListTypes scans the namespace, because types have no table of their own.
func (s *Store) ListTypes(ctx context.Context, namespace string, p engine.Page) (types []engine.TypeInfo,
	info engine.PageInfo, err error) {
	statement := listTypesSQL
	if p.Before != nil {
		statement = listTypesBackSQL
	}
	filter := args{"namespace": namespace}
	a := merge(filter, args{"after": p.After.OrZero().Name, "before": p.Before.OrZero().Name, "limit": p.Limit + 1})
	err = s.view(ctx, "list the types", func(ctx context.Context) (err error) {
		types, info, err = list(ctx, s, &p, statement, a, func(row pgx.CollectableRow) (t engine.TypeInfo, err error) {
			err = row.Scan(&t.Type, &t.Total, &t.Active, &t.Queues)
			return t, err
		}, countTypesSQL, filter)
		return err
	})
	return types, info, err
}
