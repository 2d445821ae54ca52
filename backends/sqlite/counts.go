package sqlite

import (
	"context"
	_ "embed"
	"slices"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// GetWorker returns OFFLINE workers too.
func (s *Store) GetWorker(ctx context.Context, id string) (engine.Worker, error) {
	return read(ctx, s, "GetWorker", func(r session) (engine.Worker, error) {
		w, err := r.oneWorker(&getWorkerSQL, text("worker_id", id))
		if err == nil && w == nil {
			err = engine.WorkerUnknown(id)
		}
		if err != nil {
			return engine.Worker{}, err
		}
		return *w, nil
	})
}

//go:embed sql/list_workers.sql
var listWorkersSQL string

var listWorkersBackSQL = strings.Replace(listWorkersSQL, "order by registered_at desc, worker_id desc",
	"order by registered_at asc, worker_id asc", 1)

//go:embed sql/count_workers.sql
var countWorkersSQL string

// ListWorkers returns workers, newest first.
func (s *Store) ListWorkers(ctx context.Context, f engine.WorkerFilter, p engine.Page) ([]engine.Worker,
	engine.PageInfo, error) {
	after, before := p.After.OrZero(), p.Before.OrZero()
	return list(ctx, s, "ListWorkers", p, listing[engine.Worker]{
		forth: &listWorkersSQL, back: &listWorkersBackSQL, count: &countWorkersSQL, read: readWorker,
		filter: []arg{text("namespace", f.Namespace), text("queue", f.Queue), num("status", f.Status)},
		place: []arg{
			flag("after", p.After != nil), instant("after_at", engine.Micros(after.At)), text("after_id", after.Name),
			flag("before", p.Before != nil), instant("before_at", engine.Micros(before.At)),
			text("before_id", before.Name),
		},
	})
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
	return read(ctx, s, "GetQueueDepth", func(r session) ([]engine.QueueDepth, error) {
		var depths engine.Depths
		err := r.query(&laneDepthsSQL, func(r *row) (err error) {
			lane := engine.LaneDepth{Queue: r.text(), Type: r.text()}
			decode(r.text(), &lane.Requirements, &err)
			lane.Pending, lane.Sleeping, lane.Due, lane.OldestDue = r.num(), r.num(), r.num(), r.time()
			depths.AddLane(lane)
			return err
		}, text("namespace", namespace), text("task_queue", queue), instant("now", engine.Micros(now)))
		if err == nil {
			err = r.query(&runningDepthsSQL, func(r *row) error {
				depths.SetRunning(r.text(), r.num())
				return nil
			}, text("namespace", namespace), text("task_queue", queue))
		}
		var workers []engine.Worker
		if err == nil {
			workers, err = r.working(namespace)
		}
		if err != nil {
			return nil, err
		}
		return depths.List(workers, queue), nil
	})
}

// working returns the workers of a namespace that are not OFFLINE.
func (s session) working(namespace string) (workers []engine.Worker, err error) {
	err = s.query(&listWorkingSQL, func(r *row) error {
		w, err := readWorker(r)
		workers = append(workers, w)
		return err
	}, text("namespace", namespace))
	return workers, err
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
	return read(ctx, s, "GetStats", func(r session) (engine.Stats, error) {
		out := engine.Stats{ByStatus: map[engine.RunStatus]int64{}, ByType: map[string]int64{}}
		err := r.query(&countByStatusAndTypeSQL, func(r *row) error {
			status, kind, n := engine.RunStatus(r.num()), r.text(), r.num()
			out.ByStatus[status] += n
			out.ByType[kind] += n
			return nil
		}, text("namespace", namespace))
		if err == nil {
			err = r.query(&countWorkersByStatusSQL, func(r *row) error {
				status, n := engine.WorkerStatus(r.num()), r.num()
				out.Workers += n
				if status == engine.WorkerOnline {
					out.OnlineWorkers = n
				}
				return nil
			}, text("namespace", namespace))
		}
		if err == nil {
			err = r.query(&countSchedulesByEnabledSQL, func(r *row) error {
				enabled, n := r.flag(), r.num()
				out.Schedules += n
				if enabled {
					out.EnabledSchedules = n
				}
				return nil
			}, text("namespace", namespace))
		}
		if err == nil {
			err = r.query(&oldestDueSQL, func(r *row) error {
				out.OldestDue = r.time()
				return nil
			}, text("namespace", namespace), instant("now", engine.Micros(now)))
		}
		return out, err
	})
}

//go:embed sql/list_types.sql
var listTypesSQL string

var listTypesBackSQL = strings.Replace(listTypesSQL, "order by r.workflow_type asc", "order by r.workflow_type desc", 1)

//go:embed sql/count_types.sql
var countTypesSQL string

// ListTypes scans the namespace, because types have no table of their own.
func (s *Store) ListTypes(ctx context.Context, namespace string, p engine.Page) ([]engine.TypeInfo,
	engine.PageInfo, error) {
	return list(ctx, s, "ListTypes", p, listing[engine.TypeInfo]{
		forth: &listTypesSQL, back: &listTypesBackSQL, count: &countTypesSQL, read: readType,
		filter: []arg{text("namespace", namespace)},
		place:  []arg{text("after", p.After.OrZero().Name), text("before", p.Before.OrZero().Name)},
	})
}

func readType(r *row) (info engine.TypeInfo, err error) {
	info = engine.TypeInfo{Type: r.text(), Total: r.num(), Active: r.num()}
	decode(r.text(), &info.Queues, &err)
	slices.Sort(info.Queues)
	return info, err
}
