package sqlite

import (
	"context"
	_ "embed"
	"runtime"
	"slices"
	"strings"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/get_run.sql
var getRunSQL string

// GetRun is the run with its payloads. Who asks while another reads is answered together with all who do (loads).
func (s *Store) GetRun(ctx context.Context, namespace string, id engine.ID) (engine.Run, error) {
	if s.looking() {
		return s.getRun(ctx, namespace, id)
	}
	l := &load{namespace: namespace, id: id, done: make(chan struct{})}
	if s.loads.lead(l) {
		runtime.Gosched() // who was woken by the same commit asks first
		s.lead()
	}
	select {
	case <-l.done:
		return l.run, l.err
	case <-ctx.Done():
		return engine.Run{}, translate("GetRun", ctx.Err())
	}
}

// getRun reads one run by itself.
func (s *Store) getRun(ctx context.Context, namespace string, id engine.ID) (engine.Run, error) {
	return read(ctx, s, "GetRun", func(r session) (engine.Run, error) {
		return r.oneRun(engine.RunNotFound(id), &getRunSQL, text("namespace", namespace), idArg("run_id", id))
	})
}

//go:embed sql/get_runs.sql
var getRunsSQL string

// GetRuns has each run once, however often its id is given.
func (s *Store) GetRuns(ctx context.Context, namespace string, ids []engine.ID) ([]engine.Run, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return s.someRuns(ctx, "GetRuns", &getRunsSQL, text("namespace", namespace), text("run_ids", encodeIDs(ids)))
}

//go:embed sql/get_run_by_external_id.sql
var getRunByExternalIDSQL string

// GetRunByExternalID is the newest run with that id, with its payloads.
func (s *Store) GetRunByExternalID(ctx context.Context, namespace, externalID string) (engine.Run, error) {
	return read(ctx, s, "GetRunByExternalID", func(r session) (engine.Run, error) {
		return r.oneRun(engine.ExternalIDNotFound(externalID), &getRunByExternalIDSQL, text("namespace", namespace), text("external_id", externalID))
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

// ways is a list's statement in both directions.
type ways struct{ forth, back string }

// runsBy is the list of runs over a narrower index: a condition that holds for all that the filter lets through.
func runsBy(condition string) ways {
	forth := strings.Replace(listRunsSQL, "\norder by", condition+"\norder by", 1)
	return ways{forth, strings.Replace(forth, "order by r.run_id desc", "order by r.run_id asc", 1)}
}

var (
	listRuns      = runsBy("")
	listOpenRuns  = runsBy("\n  and r.finished_at is null")
	listBadRuns   = runsBy("\n  and r.status > 4 and r.status = @status") // that ended badly in one way
	listChildren  = runsBy("\n  and r.parent_run_id = @parent_run_id")
	listScheduled = runsBy("\n  and r.schedule_id <> '' and r.schedule_id = @schedule_id")
)

// ListRuns walks the narrowest index that the filter allows, in the order of the ids.
func (s *Store) ListRuns(ctx context.Context, f engine.RunFilter, p engine.Page) ([]engine.Run, engine.PageInfo, error) {
	place := []arg{idArg("after", p.After.OrZero().ID), idArg("before", p.Before.OrZero().ID)}
	w := &listRuns
	switch {
	case !f.ParentRunID.IsZero():
		w = &listChildren
	case f.ScheduleID != "":
		w = &listScheduled
	case len(f.Statuses) == 1 && f.Statuses[0] > engine.RunCompleted:
		w = &listBadRuns
		place = append(place, num("status", f.Statuses[0]))
	case len(f.Statuses) > 0 && !slices.ContainsFunc(f.Statuses, engine.RunStatus.Ended):
		w = &listOpenRuns
	}
	return list(ctx, s, "ListRuns", p, listing[engine.Run]{
		forth: &w.forth, back: &w.back, count: &countRunsSQL, read: readRun, filter: filterArgs(&f), place: place,
	})
}

func filterArgs(f *engine.RunFilter) []arg {
	var first, last []byte
	if from, to, ok := engine.IDsWith(f.Search); ok {
		first, last = from[:], to[:]
	}
	return []arg{
		text("namespace", f.Namespace), text("statuses", encodeStatuses(f.Statuses)), text("types", encodeList(f.Types)),
		text("queues", encodeList(f.Queues)), instant("created_after", engine.Micros(f.CreatedAfter)),
		instant("created_before", engine.MicrosUp(f.CreatedBefore)), text("tags", encodeMap(f.Tags)),
		idArg("parent_run_id", f.ParentRunID), text("schedule_id", f.ScheduleID), text("worker_id", f.WorkerID),
		text("search", f.Search), blob("search_first", first), blob("search_last", last),
	}
}

//go:embed sql/list_handlers.sql
var listHandlersSQL string

// ListHandlers is the runs that handle the failure of this one, by id.
func (s *Store) ListHandlers(ctx context.Context, namespace string, run engine.ID) ([]engine.Run, error) {
	return s.someRuns(ctx, "ListHandlers", &listHandlersSQL, text("namespace", namespace), idArg("run_id", run))
}

//go:embed sql/list_retries.sql
var listRetriesSQL string

// ListRetries is the runs that this one was retried as, by id.
func (s *Store) ListRetries(ctx context.Context, namespace string, run engine.ID) ([]engine.Run, error) {
	return s.someRuns(ctx, "ListRetries", &listRetriesSQL, text("namespace", namespace), idArg("run_id", run))
}

func (s *Store) someRuns(ctx context.Context, verb string, statement *string, args ...arg) ([]engine.Run, error) {
	return read(ctx, s, verb, func(r session) (runs []engine.Run, err error) {
		err = r.query(statement, func(r *row) error {
			run, err := readRun(r)
			runs = append(runs, run)
			return err
		}, args...)
		return runs, err
	})
}
