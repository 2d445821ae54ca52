package postgres

import (
	"context"
	_ "embed"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/get_runs.sql
var getRunsText string

var getRunsSQL = runColumns.Expand(getRunsText)

// GetRuns returns each run once, even if its id is given several times.
func (s *Store) GetRuns(ctx context.Context, namespace string, ids []engine.ID) ([]engine.Run, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return s.someRuns(ctx, "read runs", getRunsSQL, args{"namespace": namespace, "run_ids": idArray(ids)})
}

//go:embed sql/get_run_by_external_id.sql
var getRunByExternalIDText string

var getRunByExternalIDSQL = runColumns.Expand(getRunByExternalIDText)

// GetRunByExternalID returns the newest run with that id, with its payloads.
func (s *Store) GetRunByExternalID(ctx context.Context, namespace, externalID string) (engine.Run, error) {
	missing := engine.ExternalIDNotFound(externalID)
	return s.oneRun(ctx, missing, getRunByExternalIDSQL, args{"namespace": namespace, "external_id": externalID})
}

//go:embed sql/latest_of_chain.sql
var latestOfChainSQL string

// LatestOfChain is one look into the index of chains.
func (s *Store) LatestOfChain(ctx context.Context, namespace string, first engine.ID) (latest engine.ID, err error) {
	err = s.view(ctx, "read a chain of runs", func(ctx context.Context) error {
		row := s.views.QueryRow(ctx, latestOfChainSQL, args{"namespace": namespace, "first": [16]byte(first)})
		return notFound(row.Scan(idOf(&latest)), nil)
	})
	return latest, err
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

// notFound returns missing if err says that there was no row.
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

// list reads one page, and the length of the whole list if asked for.
func list[V any](ctx context.Context, s *Store, p *engine.Page, statement string, a args, scan pgx.RowToFunc[V],
	count string, filter args) (
	items []V, info engine.PageInfo, err error,
) {
	items, info, err = page(ctx, s, p, statement, a, scan)
	if err == nil && p.Count {
		err = s.views.QueryRow(ctx, count, filter).Scan(&info.Total)
	}
	return items, info, err
}

// page is list without the count.
func page[V any](ctx context.Context, s *Store, p *engine.Page, statement string, a args,
	scan pgx.RowToFunc[V]) (items []V, info engine.PageInfo, err error) {
	rows, err := s.views.Query(ctx, statement, a)
	if err != nil {
		return nil, info, err
	}
	if items, err = pgx.CollectRows(rows, scan); err != nil {
		return nil, info, err
	}
	return engine.Cut(items, p, &info), info, nil
}

// merge returns the arguments of both; more wins.
func merge(a, more args) args {
	all := maps.Clone(a)
	maps.Copy(all, more)
	return all
}

//go:embed sql/list_runs.sql
var listRunsText string

var listRunsSQL = runColumns.Expand(listRunsText)

//go:embed sql/count_runs.sql
var countRunsSQL string

//go:embed sql/count_tagged.sql
var countTaggedSQL string

//go:embed sql/count_found.sql
var countFoundSQL string

// runsFrom makes a list of runs, or its length, start from the ids of d.
func runsFrom(statement, d string) string {
	return strings.Replace(statement, "from runs r\n",
		"from "+d+" d\ncross join lateral (select * from runs where run_id = d.run_id offset 0) r\n", 1)
}

const (
	// tagged selects the runs with a tag; the tag's index is in the list's order.
	tagged = `(
    select run_id from run_tags
    where namespace = @namespace and key = @tag_key and value = @tag_value
)`
	// taggedPage selects those that a page may have.
	taggedPage = `(
    select run_id from run_tags
    where namespace = @namespace and key = @tag_key and value = @tag_value and run_id > @above and run_id < @below
    order by run_id desc
    offset 0
)`
	// found selects the few runs that a search finds.
	found = `(
    select run_id from runs
    where namespace = @namespace and external_id <> '' and external_id >= @search and external_id < @search || chr(127)
    union
    select run_id from runs where namespace = @namespace and run_id >= @search_first and run_id <= @search_last
)`
)

// backwards returns the statement of a page backwards: the same with the order reversed.
func backwards(statement string) string {
	return strings.ReplaceAll(statement, "run_id desc", "run_id asc")
}

const (
	// nearRuns is how many runs from its place a page is searched for first.
	nearRuns = 5000
	// few limits how many runs of a search are read and sorted for each page. If there are more,
	// some of them are found soon in the list's order.
	few = 1000
)

// near restricts a list to the next @near runs.
func near(statement string) string {
	return strings.Replace(statement, "from runs r\n", `from (
    select * from runs
    where namespace = @namespace and run_id > @above and run_id < @below
    order by run_id desc
    limit @near
) r
`, 1)
}

// ListRuns is planned for the filter's values, so it uses the narrowest index that the filter
// allows, in the order of ids. Filters without an index are tried on nearby runs first: people
// mostly ask for new runs, of which the database has no statistics yet. By its statistics it would
// read and sort a whole large table instead of finding the page within a few rows.
func (s *Store) ListRuns(ctx context.Context, f engine.RunFilter, p engine.Page) (runs []engine.Run,
	info engine.PageInfo, err error) {
	err = s.view(ctx, "list runs", func(ctx context.Context) error {
		l, err := s.listOf(ctx, &f)
		if err != nil {
			return err
		}
		above, below := f.Span(&p)
		a := merge(l.filter, args{"above": [16]byte(above), "below": [16]byte(below), "limit": p.Limit + 1})
		nearby := near(l.page)
		if p.Before != nil {
			l.page, nearby = backwards(l.page), backwards(nearby)
		}
		if !l.indexed {
			runs, info, err = page(ctx, s, &p, nearby, merge(a, args{"near": nearRuns}), scanRun)
		}
		if more := info.HasNext && p.Before == nil || info.HasPrev && p.Before != nil; err == nil && !more {
			runs, info, err = page(ctx, s, &p, l.page, a, scanRun)
		}
		if err == nil && p.Count {
			err = s.views.QueryRow(ctx, l.count, l.filter).Scan(&info.Total)
		}
		return err
	})
	return runs, info, err
}

// listOfRuns says how to read a list of runs.
type listOfRuns struct {
	page, count string // their statements
	filter      args   // arguments of both
	indexed     bool   // an index has nearly all rows that the filter accepts, and few others
}

func (s *Store) listOf(ctx context.Context, f *engine.RunFilter) (l listOfRuns, err error) {
	l = listOfRuns{page: listRunsSQL, count: countRunsSQL, filter: filterArgs(f)}
	switch {
	case len(f.Statuses) > 0 && !slices.Contains(f.Statuses, engine.RunCompleted) || !f.ParentRunID.IsZero() ||
		f.ScheduleID != "":
		l.indexed = true
	case len(f.Tags) > 0:
		tag, err := s.rarestTag(ctx, f)
		if err != nil {
			return l, err
		}
		l.page, l.count, l.filter, l.indexed = runsFrom(l.page, taggedPage), runsFrom(l.count, tagged),
			merge(l.filter, tag), true
		l.page = strings.Replace(l.page, "order by r.run_id", "order by d.run_id", 1)
	case f.Search != "":
		var n int
		err = s.views.QueryRow(ctx, countFoundSQL, args{
			"namespace": f.Namespace, "search": f.Search, "search_first": l.filter["search_first"],
			"search_last": l.filter["search_last"], "limit": few + 1,
		}).Scan(&n)
		if n <= few {
			l.page, l.count, l.indexed = runsFrom(l.page, found), runsFrom(l.count, found), true
		}
	}
	return l, err
}

// rarestTag returns the tag of the filter that the fewest runs have, as far as counting is worth
// it.
func (s *Store) rarestTag(ctx context.Context, f *engine.RunFilter) (rarest args, err error) {
	least := few + 2
	for key, value := range f.Tags {
		tag := args{"tag_key": key, "tag_value": value}
		if len(f.Tags) == 1 {
			return tag, nil
		}
		var n int
		if err := s.views.QueryRow(ctx, countTaggedSQL,
			merge(tag, args{"namespace": f.Namespace, "limit": few + 1})).Scan(&n); err != nil {
			return nil, err
		}
		if n < least {
			least, rarest = n, tag
		}
	}
	return rarest, nil
}

func filterArgs(f *engine.RunFilter) args {
	var first, last any
	if from, to, ok := engine.IDsWith(f.Search); ok {
		first, last = [16]byte(from), [16]byte(to)
	}
	var keys, values []string
	for key, value := range f.Tags {
		keys, values = append(keys, key), append(values, value)
	}
	return args{
		"namespace": f.Namespace, "statuses": statusArray(f.Statuses), "types": arrayOrNull(f.Types),
		"queues":         arrayOrNull(f.Queues),
		"created_after":  microsOrNull(engine.Micros(f.CreatedAfter)),
		"created_before": microsOrNull(engine.MicrosUp(f.CreatedBefore)),
		"tag_keys":       arrayOrNull(keys), "tag_values": arrayOrNull(values),
		"parent_run_id": idOrNull(f.ParentRunID),
		"schedule_id":   f.ScheduleID, "worker_id": f.WorkerID, "search": f.Search, "search_first": first,
		"search_last": last,
	}
}

// arrayOrNull returns null for an empty list, which does not filter.
func arrayOrNull(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}

func statusArray[S engine.RunStatus | engine.StepStatus](list []S) []int16 {
	var numbers []int16
	for _, status := range list {
		numbers = append(numbers, int16(status))
	}
	return numbers
}

//go:embed sql/list_handlers.sql
var listHandlersText string

var listHandlersSQL = runColumns.Expand(listHandlersText)

// ListHandlers returns the runs that handle the failure of this one, by id.
func (s *Store) ListHandlers(ctx context.Context, namespace string, run engine.ID) ([]engine.Run, error) {
	return s.someRuns(ctx, "list the handlers of a run", listHandlersSQL,
		args{"namespace": namespace, "run_id": [16]byte(run)})
}

//go:embed sql/list_retries.sql
var listRetriesText string

var listRetriesSQL = runColumns.Expand(listRetriesText)

// ListRetries returns the runs that this one was retried as, by id.
func (s *Store) ListRetries(ctx context.Context, namespace string, run engine.ID) ([]engine.Run, error) {
	return s.someRuns(ctx, "list the retries of a run", listRetriesSQL,
		args{"namespace": namespace, "run_id": [16]byte(run)})
}

func (s *Store) someRuns(ctx context.Context, doing, statement string, a args) (runs []engine.Run, err error) {
	err = s.view(ctx, doing, func(ctx context.Context) error {
		rows, err := s.views.Query(ctx, statement, a)
		if err != nil {
			return err
		}
		runs, err = pgx.CollectRows(rows, scanRun)
		return err
	})
	return runs, err
}
