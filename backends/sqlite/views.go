package sqlite

import (
	"context"
	_ "embed"
	"runtime"
	"slices"
	"strings"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/get_run.sql
var getRunText string

var getRunSQL = runColumns.Expand(getRunText)

// GetRun returns the run with its payloads. Calls that come while another is reading are answered
// together (loads).
func (s *Store) GetRun(ctx context.Context, namespace string, id engine.ID) (engine.Run, error) {
	if s.readOnly() {
		return s.getRun(ctx, namespace, id)
	}
	l := &load{namespace: namespace, id: id, done: make(chan struct{})}
	if s.loads.lead(l) {
		runtime.Gosched() // callers woken by the same commit ask first
		s.lead()
	}
	select {
	case <-l.done:
		return l.run, l.err
	case <-ctx.Done():
		return engine.Run{}, dbfile.Translate("GetRun", ctx.Err())
	}
}

// getRun reads one run by itself.
func (s *Store) getRun(ctx context.Context, namespace string, id engine.ID) (engine.Run, error) {
	return read(ctx, s, "GetRun", func(r session) (engine.Run, error) {
		return r.oneRun(engine.RunNotFound(id), &getRunSQL, text("namespace", namespace), idArg("run_id", id))
	})
}

//go:embed sql/get_runs.sql
var getRunsText string

var getRunsSQL = runColumns.Expand(getRunsText)

// GetRuns returns each run once, even if its id is given several times.
func (s *Store) GetRuns(ctx context.Context, namespace string, ids []engine.ID) ([]engine.Run, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return s.someRuns(ctx, "GetRuns", &getRunsSQL, text("namespace", namespace), text("run_ids", encodeIDs(ids)))
}

//go:embed sql/get_run_by_external_id.sql
var getRunByExternalIDText string

var getRunByExternalIDSQL = runColumns.Expand(getRunByExternalIDText)

// GetRunByExternalID returns the newest run with that id, with its payloads.
func (s *Store) GetRunByExternalID(ctx context.Context, namespace, externalID string) (engine.Run, error) {
	return read(ctx, s, "GetRunByExternalID", func(r session) (engine.Run, error) {
		return r.oneRun(engine.ExternalIDNotFound(externalID), &getRunByExternalIDSQL, text("namespace", namespace),
			text("external_id", externalID))
	})
}

//go:embed sql/latest_of_chain.sql
var latestOfChainSQL string

// LatestOfChain is one look into the index of chains.
func (s *Store) LatestOfChain(ctx context.Context, namespace string, first engine.ID) (engine.ID, error) {
	return read(ctx, s, "LatestOfChain", func(r session) (latest engine.ID, err error) {
		_, err = r.found(&latestOfChainSQL, func(r *row) error {
			latest = r.id()
			return nil
		}, text("namespace", namespace), idArg("first", first))
		return latest, err
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
var listRunsText string

var listRunsSQL = runColumns.Expand(listRunsText)

//go:embed sql/count_runs.sql
var countRunsSQL string

//go:embed sql/count_all_runs.sql
var countAllRunsSQL string

//go:embed sql/count_tagged.sql
var countTaggedSQL string

//go:embed sql/count_found.sql
var countFoundSQL string

// ways holds a list's statements: forwards, backwards, and its length.
type ways struct{ forth, back, count string }

// runsFrom returns the statements for runs from a table, ordered by by, under a condition that the
// filter implies.
func runsFrom(from, condition, by string) ways {
	list := strings.Replace(listRunsSQL, "\norder by r.run_id", condition+"\norder by "+by, 1)
	list = strings.Replace(list, "from runs r\n", "from "+from+"\n", 1)
	list = strings.Replace(list, "r.run_id > @above and r.run_id < @below", by+" > @above and "+by+" < @below", 1)
	return ways{
		forth: list, back: strings.Replace(list, by+" desc", by+" asc", 1),
		count: strings.Replace(strings.TrimRight(countRunsSQL, "\n"), "from runs r\n", "from "+from+"\n",
			1) + condition,
	}
}

// runsBy returns the statements for runs over a narrower index.
func runsBy(condition string) ways { return runsFrom("runs r", condition, "r.run_id") }

var (
	listRuns      = runsBy("")
	listOpenRuns  = runsBy("\n  and r.finished_at is null")
	listBadRuns   = runsBy("\n  and r.status > 4 and r.status = @status") // runs that did not complete, of one status
	listChildren  = runsBy("\n  and r.parent_run_id = @parent_run_id")
	listScheduled = runsBy("\n  and r.schedule_id <> '' and r.schedule_id = @schedule_id")
	// Runs with a tag; the tag's index is in the list's order.
	listTagged = runsFrom("run_tags d\ncross join runs r on r.run_id = d.run_id",
		"\n  and d.namespace = @namespace and d.key = @tag_key and d.value = @tag_value", "d.run_id")
	// The few runs that a search finds; they are sorted.
	listFound = runsFrom(`(
    select run_id from runs
    where namespace = @namespace and external_id <> '' and external_id >= @search and external_id < @search || char(127)
    union
    select run_id from runs where namespace = @namespace and run_id >= @search_first and run_id <= @search_last
) d
cross join runs r on r.run_id = d.run_id`, "", "r.run_id")
)

// few limits how many runs of a search are read and sorted for each page. If there are more, some
// of them are found soon in the list's order.
const few = 1000

// ListRuns uses the narrowest index that the filter allows, in the order of ids.
func (s *Store) ListRuns(ctx context.Context, f engine.RunFilter, p engine.Page) ([]engine.Run,
	engine.PageInfo, error) {
	filter, place := filterArgs(&f), spanArgs(f.Span(&p))
	w := &listRuns
	switch {
	case !f.ParentRunID.IsZero():
		w = &listChildren
	case f.ScheduleID != "":
		w = &listScheduled
	case len(f.Statuses) == 1 && f.Statuses[0] > engine.RunCompleted:
		w = &listBadRuns
		filter = append(filter, num("status", f.Statuses[0]))
	case len(f.Statuses) > 0 && !slices.ContainsFunc(f.Statuses, engine.RunStatus.Ended):
		w = &listOpenRuns
	case len(f.Tags) > 0:
		tag, err := s.rarestTag(ctx, &f)
		if err != nil {
			return nil, engine.PageInfo{}, err
		}
		w = &listTagged
		filter = append(filter, tag...)
	case f.Search != "":
		first, last := searchArgs(f.Search)
		found, err := s.counted(ctx, &countFoundSQL, text("namespace", f.Namespace), text("search", f.Search), first,
			last, num("limit", few+1))
		if err != nil {
			return nil, engine.PageInfo{}, err
		}
		if found <= few {
			w = &listFound
		}
	}
	l := listing[engine.Run]{forth: &w.forth, back: &w.back, count: &w.count, read: readRun, filter: filter,
		place: place}
	if f.Everything() { // its length comes from an index
		rest := slices.DeleteFunc(filter, func(a arg) bool { return a.Name == "namespace" })
		l.count, l.filter, l.place = &countAllRunsSQL, []arg{text("namespace", f.Namespace)}, append(rest, place...)
	}
	return list(ctx, s, "ListRuns", p, l)
}

// rarestTag returns the tag of the filter that the fewest runs have, as far as counting is worth
// it.
func (s *Store) rarestTag(ctx context.Context, f *engine.RunFilter) (rarest []arg, err error) {
	least := int64(few + 2)
	for key, value := range f.Tags {
		tag := []arg{text("tag_key", key), text("tag_value", value)}
		if len(f.Tags) == 1 {
			return tag, nil
		}
		n, err := s.counted(ctx, &countTaggedSQL, append(tag, text("namespace", f.Namespace), num("limit", few+1))...)
		if err != nil {
			return nil, err
		}
		if n < least {
			least, rarest = n, tag
		}
	}
	return rarest, nil
}

// counted returns the one number that a statement finds.
func (s *Store) counted(ctx context.Context, statement *string, args ...arg) (int64, error) {
	return read(ctx, s, "ListRuns", func(r session) (n int64, err error) {
		return n, r.query(statement, func(r *row) error {
			n = r.num()
			return nil
		}, args...)
	})
}

func filterArgs(f *engine.RunFilter) []arg {
	first, last := searchArgs(f.Search)
	return []arg{
		text("namespace", f.Namespace), text("statuses", encodeStatuses(f.Statuses)),
		text("types", encodeList(f.Types)),
		text("queues", encodeList(f.Queues)), instant("created_after", engine.Micros(f.CreatedAfter)),
		instant("created_before", engine.MicrosUp(f.CreatedBefore)), text("tags", encodeMap(f.Tags)),
		idArg("parent_run_id", f.ParentRunID), text("schedule_id", f.ScheduleID), text("worker_id", f.WorkerID),
		text("search", f.Search), first, last,
	}
}

// searchArgs returns the range of run ids that begin with the search text; null if none can.
func searchArgs(search string) (first, last arg) {
	from, to, _ := engine.IDsWith(search)
	return idArg("search_first", from), idArg("search_last", to)
}

//go:embed sql/list_handlers.sql
var listHandlersText string

var listHandlersSQL = runColumns.Expand(listHandlersText)

// ListHandlers returns the runs that handle the failure of this one, by id.
func (s *Store) ListHandlers(ctx context.Context, namespace string, run engine.ID) ([]engine.Run, error) {
	return s.someRuns(ctx, "ListHandlers", &listHandlersSQL, text("namespace", namespace), idArg("run_id", run))
}

//go:embed sql/list_retries.sql
var listRetriesText string

var listRetriesSQL = runColumns.Expand(listRetriesText)

// ListRetries returns the runs that this one was retried as, by id.
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

//go:embed sql/explain_inputs.sql
var getCircumstancesSQL string

//go:embed sql/list_holders.sql
var listHoldersSQL string

// ExplainInputs reads everything on one snapshot.
func (s *Store) ExplainInputs(ctx context.Context, namespace string, run engine.ID) (engine.Circumstances, error) {
	return read(ctx, s, "ExplainInputs", func(r session) (c engine.Circumstances, err error) {
		c.Run, err = r.oneRun(engine.RunNotFound(run), &getRunSQL, text("namespace", namespace), idArg("run_id", run))
		if err != nil {
			return c, err
		}
		c.Run.Input, c.Run.Output = engine.Payload{}, engine.Payload{}
		if c.Steps, err = r.steps(&listWaitingSQL, idArg("run_id", run)); err != nil {
			return c, err
		}
		if c.Workers, err = r.working(namespace); err != nil {
			return c, err
		}
		c.Workers = slices.DeleteFunc(c.Workers, func(w engine.Worker) bool {
			return !slices.Contains(w.Queues, c.Run.Queue)
		})
		err = r.query(&getCircumstancesSQL, func(r *row) error {
			c.NamespaceEnabled, c.RunningInQueue, c.RunningOfType = r.flag(), int(r.num()), int(r.num())
			c.PlacesOfKey, c.AheadInLine = int(r.num()), int(r.num())
			return nil
		}, idArg("run_id", run))
		if err == nil && c.PlacesOfKey > 0 {
			err = r.query(&listHoldersSQL, func(r *row) error {
				c.HoldersOfKey = append(c.HoldersOfKey, r.id())
				return nil
			}, text("namespace", c.Run.Namespace), text("workflow_type", c.Run.Type),
				text("concurrency_key", c.Run.ConcurrencyKey), num("limit", engine.NamedHolders))
		}
		return c, err
	})
}
