package postgres

import (
	"context"
	_ "embed"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/get_run.sql
var getRunSQL string

// GetRun is the run with its payloads.
func (s *Store) GetRun(ctx context.Context, namespace string, id engine.ID) (engine.Run, error) {
	return s.oneRun(ctx, engine.RunNotFound(id), getRunSQL, args{"namespace": namespace, "run_id": [16]byte(id)})
}

//go:embed sql/get_run_by_external_id.sql
var getRunByExternalIDSQL string

// GetRunByExternalID is the newest run with that id, with its payloads.
func (s *Store) GetRunByExternalID(ctx context.Context, namespace, externalID string) (engine.Run, error) {
	missing := &engine.Error{Kind: engine.KindNotFound, Subject: "run", SubjectID: externalID, Message: "no run with external id " + externalID + " in this namespace"}
	return s.oneRun(ctx, missing, getRunByExternalIDSQL, args{"namespace": namespace, "external_id": externalID})
}

func (s *Store) oneRun(ctx context.Context, missing error, statement string, a args) (engine.Run, error) {
	var run engine.Run
	err := s.view(ctx, "read a run", func(ctx context.Context) error {
		places := slices.Concat(runPlaces(&run), payloadPlaces(&run.Input), payloadPlaces(&run.Output))
		return notFound(s.views.QueryRow(ctx, statement, a).Scan(places...), missing)
	})
	if err != nil {
		return engine.Run{}, err
	}
	return run, nil
}

// notFound is missing where err says that there was no row.
func notFound(err, missing error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return missing
	}
	return err
}

func scanRun(row pgx.CollectableRow) (run engine.Run, err error) {
	err = row.Scan(runPlaces(&run)...)
	return run, err
}

func scanStep(row pgx.CollectableRow) (step engine.Step, err error) {
	err = row.Scan(stepPlaces(&step)...)
	return step, err
}

// list reads the items of one page, and counts the whole list if that is wanted.
func list[V any](ctx context.Context, s *Store, p *engine.Page, statement string, a args, scan pgx.RowToFunc[V], count string, filter args) (
	items []V, info engine.PageInfo, err error,
) {
	rows, err := s.views.Query(ctx, statement, a)
	if err != nil {
		return nil, info, err
	}
	if items, err = pgx.CollectRows(rows, scan); err != nil {
		return nil, info, err
	}
	if p.Count {
		if err := s.views.QueryRow(ctx, count, filter).Scan(&info.Total); err != nil {
			return nil, info, err
		}
	}
	return cut(items, p, &info), info, nil
}

// merge is a and more.
func merge(a, more args) args {
	all := make(args, len(a)+len(more))
	for name, value := range a {
		all[name] = value
	}
	for name, value := range more {
		all[name] = value
	}
	return all
}

//go:embed sql/list_runs.sql
var listRunsSQL string

//go:embed sql/count_runs.sql
var countRunsSQL string

// A page backwards is the same statement in the other direction.
var listRunsBackSQL = strings.Replace(listRunsSQL, "order by r.run_id desc", "order by r.run_id asc", 1)

// ListRuns is planned for the filter, so it walks the narrowest index that the filter allows, in the order of the ids.
func (s *Store) ListRuns(ctx context.Context, f engine.RunFilter, p engine.Page) (runs []engine.Run, info engine.PageInfo, err error) {
	filter := filterArgs(&f)
	a := merge(filter, args{"after": idOrNull(cursor(p.After).ID), "before": idOrNull(cursor(p.Before).ID), "limit": p.Limit + 1})
	statement := listRunsSQL
	if p.Before != nil {
		statement = listRunsBackSQL
	}
	err = s.view(ctx, "list runs", func(ctx context.Context) (err error) {
		runs, info, err = list(ctx, s, &p, statement, a, scanRun, countRunsSQL, filter)
		return err
	})
	return runs, info, err
}

func filterArgs(f *engine.RunFilter) args {
	first, last := idRange(f.Search)
	var keys, values []string
	for key, value := range f.Tags {
		keys, values = append(keys, key), append(values, value)
	}
	return args{
		"namespace": f.Namespace, "statuses": statusArray(f.Statuses), "types": arrayOrNull(f.Types), "queues": arrayOrNull(f.Queues),
		"created_after": microsOrNull(engine.Micros(f.CreatedAfter)), "created_before": microsOrNull(roundUp(f.CreatedBefore)),
		"tag_keys": arrayOrNull(keys), "tag_values": arrayOrNull(values), "parent_run_id": idOrNull(f.ParentRunID),
		"schedule_id": f.ScheduleID, "worker_id": f.WorkerID, "search": f.Search, "search_first": first, "search_last": last,
	}
}

// arrayOrNull is null for an empty list, which filters nothing.
func arrayOrNull(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}

func statusArray(list []engine.RunStatus) []int16 {
	var numbers []int16
	for _, status := range list {
		numbers = append(numbers, int16(status))
	}
	return numbers
}

// roundUp keeps a bound that lies within a microsecond above what was stored in that microsecond.
func roundUp(t time.Time) time.Time {
	if floor := engine.Micros(t); floor.Before(t) {
		return floor.Add(time.Microsecond)
	}
	return engine.Micros(t)
}

// idRange is the first and the last id that begin with prefix, nil when none does.
func idRange(prefix string) (first, last any) {
	const low, high = "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"
	if prefix == "" || len(prefix) > len(low) {
		return nil, nil
	}
	from, err := engine.ParseID(prefix + low[len(prefix):])
	if err != nil {
		return nil, nil
	}
	to, err := engine.ParseID(prefix + high[len(prefix):])
	if err != nil {
		return nil, nil
	}
	return [16]byte(from), [16]byte(to)
}

// cursor is the place, or the zero one.
func cursor(c *engine.Cursor) engine.Cursor {
	if c == nil {
		return engine.Cursor{}
	}
	return *c
}

// cut takes the one item too many away, which tells that there are more, and puts a page backwards in the list's order.
func cut[V any](items []V, p *engine.Page, info *engine.PageInfo) []V {
	more := len(items) > p.Limit
	if more {
		items = items[:p.Limit]
	}
	if p.Before != nil {
		slices.Reverse(items)
		info.HasPrev, info.HasNext = more, true
	} else {
		info.HasNext, info.HasPrev = more, p.After != nil
	}
	return items
}

//go:embed sql/list_steps.sql
var listStepsSQL string

var listStepsBackSQL = strings.ReplaceAll(listStepsSQL, "order by sequence asc, attempt asc", "order by sequence desc, attempt desc")

//go:embed sql/count_steps.sql
var countStepsSQL string

//go:embed sql/run_exists.sql
var runExistsSQL string

// ListSteps is every attempt with its payloads.
func (s *Store) ListSteps(ctx context.Context, namespace string, run engine.ID, name string, p engine.Page) (
	steps []engine.Step, info engine.PageInfo, err error,
) {
	after, before, statement := cursor(p.After), cursor(p.Before), listStepsSQL
	if p.Before != nil {
		statement = listStepsBackSQL
	}
	filter := args{"run_id": [16]byte(run), "name": name}
	a := merge(filter, args{"after": p.After != nil, "after_sequence": after.Number, "after_attempt": after.Minor,
		"before": p.Before != nil, "before_sequence": before.Number, "before_attempt": before.Minor, "limit": p.Limit + 1})
	err = s.view(ctx, "list steps", func(ctx context.Context) (err error) {
		if err := s.exists(ctx, namespace, run); err != nil {
			return err
		}
		steps, info, err = list(ctx, s, &p, statement, a, scanStep, countStepsSQL, filter)
		return err
	})
	return steps, info, err
}

func (s *Store) exists(ctx context.Context, namespace string, run engine.ID) error {
	var one int
	err := s.views.QueryRow(ctx, runExistsSQL, args{"namespace": namespace, "run_id": [16]byte(run)}).Scan(&one)
	return notFound(err, engine.RunNotFound(run))
}

//go:embed sql/get_step.sql
var getStepSQL string

// GetStep is one attempt.
func (s *Store) GetStep(ctx context.Context, namespace string, id engine.ID) (step engine.Step, err error) {
	err = s.view(ctx, "read a step", func(ctx context.Context) error {
		err := s.views.QueryRow(ctx, getStepSQL, args{"namespace": namespace, "step_id": [16]byte(id)}).Scan(stepPlaces(&step)...)
		return notFound(err, engine.StepNotFound(engine.StepRef{ID: id}))
	})
	if err != nil {
		return engine.Step{}, err
	}
	return step, nil
}

// History reads on where a task's history ended.
func (s *Store) History(ctx context.Context, p engine.HistoryParams) (steps []engine.Step, next int64, err error) {
	err = s.view(ctx, "read a history", func(ctx context.Context) error {
		if err := s.exists(ctx, p.Namespace, p.RunID); err != nil {
			return err
		}
		batch := &pgx.Batch{}
		queueHistory(batch, p.RunID, p.From, p.Bytes, &steps, &next)
		return s.pool.SendBatch(ctx, batch).Close()
	})
	if err != nil {
		return nil, 0, err
	}
	return steps, next, nil
}

//go:embed sql/current_lease.sql
var currentLeaseSQL string

// CurrentLease is for clients that know no token.
func (s *Store) CurrentLease(ctx context.Context, namespace string, run engine.ID) (engine.Lease, error) {
	l := engine.Lease{Namespace: namespace, RunID: run}
	err := s.view(ctx, "read a lease", func(ctx context.Context) error {
		var status engine.RunStatus
		err := s.views.QueryRow(ctx, currentLeaseSQL, args{"namespace": namespace, "run_id": [16]byte(run)}).
			Scan(numberOf(&status), tokenOf(&l.Token))
		if err == nil && l.Token.IsZero() {
			return engine.LeaseLost(run, status)
		}
		return notFound(err, engine.RunNotFound(run))
	})
	if err != nil {
		return engine.Lease{}, err
	}
	return l, nil
}

//go:embed sql/held_by.sql
var heldBySQL string

// HeldBy is what a worker holds.
func (s *Store) HeldBy(ctx context.Context, workerID string) (leases []engine.Lease, err error) {
	err = s.view(ctx, "list a worker's leases", func(ctx context.Context) error {
		rows, err := s.views.Query(ctx, heldBySQL, args{"worker_id": workerID})
		if err != nil {
			return err
		}
		leases, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (l engine.Lease, err error) {
			err = row.Scan(&l.Namespace, idOf(&l.RunID), tokenOf(&l.Token))
			return l, err
		})
		return err
	})
	return leases, err
}
