package sqlite

import (
	"context"
	_ "embed"
	"slices"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/get_run.sql
var getRunSQL string

// GetRun is the run with its payloads.
func (s *Store) GetRun(ctx context.Context, namespace string, id engine.ID) (engine.Run, error) {
	return read(ctx, s, "GetRun", func(r session) (engine.Run, error) {
		return r.oneRun(engine.RunNotFound(id), &getRunSQL, text("namespace", namespace), idArg("run_id", id))
	})
}

//go:embed sql/get_run_by_external_id.sql
var getRunByExternalIDSQL string

// GetRunByExternalID is the newest run with that id, with its payloads.
func (s *Store) GetRunByExternalID(ctx context.Context, namespace, externalID string) (engine.Run, error) {
	return read(ctx, s, "GetRunByExternalID", func(r session) (engine.Run, error) {
		missing := &engine.Error{Kind: engine.KindNotFound, Subject: "run", SubjectID: externalID, Message: "no run with external id " + externalID + " in this namespace"}
		return r.oneRun(missing, &getRunByExternalIDSQL, text("namespace", namespace), text("external_id", externalID))
	})
}

func (s session) oneRun(missing error, statement *string, args ...arg) (run engine.Run, err error) {
	found, err := s.found(statement, func(r *row) (err error) {
		run, err = readWholeRun(r)
		return err
	}, args...)
	if err == nil && !found {
		err = missing
	}
	return run, err
}

//go:embed sql/list_runs.sql
var listRunsSQL string

//go:embed sql/count_runs.sql
var countRunsSQL string

// A page backwards is the same statement in the other direction, and a list of the open runs, or of those that ended badly in
// one way, is the same over the index that holds only these.
var (
	listRunsBackSQL = strings.Replace(listRunsSQL, "order by r.run_id desc", "order by r.run_id asc", 1)

	listOpenRunsSQL     = strings.Replace(listRunsSQL, "\norder by", "\n  and r.status <= 3\norder by", 1)
	listOpenRunsBackSQL = strings.Replace(listRunsBackSQL, "\norder by", "\n  and r.status <= 3\norder by", 1)

	listBadRunsSQL     = strings.Replace(listRunsSQL, "\norder by", "\n  and r.status > 4 and r.status = @status\norder by", 1)
	listBadRunsBackSQL = strings.Replace(listRunsBackSQL, "\norder by", "\n  and r.status > 4 and r.status = @status\norder by", 1)
)

// ListRuns walks the narrowest index that the filter allows, in the order of the ids.
func (s *Store) ListRuns(ctx context.Context, f engine.RunFilter, p engine.Page) ([]engine.Run, engine.PageInfo, error) {
	type page struct {
		runs []engine.Run
		info engine.PageInfo
	}
	out, err := read(ctx, s, "ListRuns", func(r session) (out page, err error) {
		filter := filterArgs(&f)
		args := slices.Concat(filter, []arg{idArg("after", cursor(p.After).ID), idArg("before", cursor(p.Before).ID), num("limit", p.Limit+1)})
		statements := [2]*string{&listRunsSQL, &listRunsBackSQL}
		switch {
		case len(f.Statuses) == 1 && f.Statuses[0] > engine.RunCompleted:
			statements = [2]*string{&listBadRunsSQL, &listBadRunsBackSQL}
			args = append(args, num("status", f.Statuses[0]))
		case len(f.Statuses) > 0 && !slices.ContainsFunc(f.Statuses, engine.RunStatus.Ended):
			statements = [2]*string{&listOpenRunsSQL, &listOpenRunsBackSQL}
		}
		statement := statements[0]
		if p.Before != nil {
			statement = statements[1]
		}
		err = r.query(statement, func(r *row) error {
			run, err := readRun(r)
			out.runs = append(out.runs, run)
			return err
		}, args...)
		if err == nil && p.Count {
			err = r.query(&countRunsSQL, func(r *row) error {
				out.info.Total = r.num()
				return nil
			}, filter...)
		}
		out.runs = cut(out.runs, &p, &out.info)
		return out, err
	})
	return out.runs, out.info, err
}

func filterArgs(f *engine.RunFilter) []arg {
	first, last := idRange(f.Search)
	return []arg{
		text("namespace", f.Namespace), text("statuses", encodeStatuses(f.Statuses)), text("types", encodeList(f.Types)),
		text("queues", encodeList(f.Queues)), instant("created_after", engine.Micros(f.CreatedAfter)),
		instant("created_before", roundUp(f.CreatedBefore)), text("tags", encodeMap(f.Tags)),
		idArg("parent_run_id", f.ParentRunID), text("schedule_id", f.ScheduleID), text("worker_id", f.WorkerID),
		text("search", f.Search), blob("search_first", first), blob("search_last", last),
	}
}

// roundUp keeps a bound that lies within a microsecond above what was stored in that microsecond.
func roundUp(t time.Time) time.Time {
	if floor := engine.Micros(t); floor.Before(t) {
		return floor.Add(time.Microsecond)
	}
	return engine.Micros(t)
}

func encodeList(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return encode(list)
}

func encodeStatuses(list []engine.RunStatus) string {
	if len(list) == 0 {
		return ""
	}
	numbers := make([]int, len(list)) // a list of bytes would become base64
	for i, status := range list {
		numbers[i] = int(status)
	}
	return encode(numbers)
}

// idRange is the first and the last id that begin with prefix, nil when none does.
func idRange(prefix string) (first, last []byte) {
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
	return bytesOf(from), bytesOf(to)
}

func bytesOf(id engine.ID) []byte { return id[:] }

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
func (s *Store) ListSteps(ctx context.Context, namespace string, run engine.ID, name string, p engine.Page) ([]engine.Step, engine.PageInfo, error) {
	type page struct {
		steps []engine.Step
		info  engine.PageInfo
	}
	out, err := read(ctx, s, "ListSteps", func(r session) (out page, err error) {
		if err := r.exists(namespace, run); err != nil {
			return out, err
		}
		after, before, statement := cursor(p.After), cursor(p.Before), &listStepsSQL
		if p.Before != nil {
			statement = &listStepsBackSQL
		}
		err = r.query(statement, func(r *row) error {
			step, err := readStep(r)
			out.steps = append(out.steps, step)
			return err
		}, idArg("run_id", run), text("name", name), flag("after", p.After != nil), num("after_sequence", after.Number),
			num("after_attempt", after.Minor), flag("before", p.Before != nil), num("before_sequence", before.Number),
			num("before_attempt", before.Minor), num("limit", p.Limit+1))
		if err == nil && p.Count {
			err = r.query(&countStepsSQL, func(r *row) error {
				out.info.Total = r.num()
				return nil
			}, idArg("run_id", run), text("name", name))
		}
		out.steps = cut(out.steps, &p, &out.info)
		return out, err
	})
	return out.steps, out.info, err
}

func (s session) exists(namespace string, run engine.ID) error {
	found, err := s.found(&runExistsSQL, func(*row) error { return nil }, text("namespace", namespace), idArg("run_id", run))
	if err == nil && !found {
		err = engine.RunNotFound(run)
	}
	return err
}

//go:embed sql/get_step.sql
var getStepSQL string

// GetStep is one attempt.
func (s *Store) GetStep(ctx context.Context, namespace string, id engine.ID) (engine.Step, error) {
	return read(ctx, s, "GetStep", func(r session) (step engine.Step, err error) {
		found, err := r.found(&getStepSQL, func(r *row) (err error) {
			step, err = readStep(r)
			return err
		}, text("namespace", namespace), idArg("step_id", id))
		if err == nil && !found {
			err = engine.StepNotFound(engine.StepRef{ID: id})
		}
		return step, err
	})
}

// History reads on where a task's history ended.
func (s *Store) History(ctx context.Context, p engine.HistoryParams) ([]engine.Step, int64, error) {
	type page struct {
		steps []engine.Step
		next  int64
	}
	out, err := read(ctx, s, "History", func(r session) (out page, err error) {
		if err := r.exists(p.Namespace, p.RunID); err != nil {
			return out, err
		}
		out.steps, out.next, err = r.history(p.RunID, p.From, p.Bytes)
		return out, err
	})
	return out.steps, out.next, err
}

//go:embed sql/current_lease.sql
var currentLeaseSQL string

// CurrentLease is for clients that know no token.
func (s *Store) CurrentLease(ctx context.Context, namespace string, run engine.ID) (engine.Lease, error) {
	return read(ctx, s, "CurrentLease", func(r session) (engine.Lease, error) {
		l := engine.Lease{Namespace: namespace, RunID: run}
		var status engine.RunStatus
		found, err := r.found(&currentLeaseSQL, func(r *row) error {
			status, l.Token = engine.RunStatus(r.num()), r.token()
			return nil
		}, text("namespace", namespace), idArg("run_id", run))
		switch {
		case err != nil:
			return engine.Lease{}, err
		case !found:
			return engine.Lease{}, engine.RunNotFound(run)
		case l.Token.IsZero():
			return engine.Lease{}, engine.LeaseLost(run, status)
		}
		return l, nil
	})
}

//go:embed sql/held_by.sql
var heldBySQL string

// HeldBy is what a worker holds.
func (s *Store) HeldBy(ctx context.Context, workerID string) ([]engine.Lease, error) {
	return read(ctx, s, "HeldBy", func(r session) (leases []engine.Lease, err error) {
		err = r.query(&heldBySQL, func(r *row) error {
			leases = append(leases, engine.Lease{Namespace: r.text(), RunID: r.id(), Token: r.token()})
			return nil
		}, text("worker_id", workerID))
		return leases, err
	})
}
