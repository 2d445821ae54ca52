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

// GetRuns has each run once, however often its id is given.
func (s *Store) GetRuns(ctx context.Context, namespace string, ids []engine.ID) ([]engine.Run, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return s.someRuns(ctx, "read runs", getRunsSQL, args{"namespace": namespace, "run_ids": idArray(ids)})
}

//go:embed sql/get_run_by_external_id.sql
var getRunByExternalIDText string

var getRunByExternalIDSQL = runColumns.Expand(getRunByExternalIDText)

// GetRunByExternalID is the newest run with that id, with its payloads.
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

// list reads the items of one page, and counts the whole list if that is wanted.
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

// merge is a and more.
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

// runsFrom has a list of runs, or its length, begin with the ids of d.
func runsFrom(statement, d string) string {
	return strings.Replace(statement, "from runs r\n",
		"from "+d+" d\ncross join lateral (select * from runs where run_id = d.run_id offset 0) r\n", 1)
}

const (
	// tagged is the runs that have a tag, whose index is in the order of the list.
	tagged = `(
    select run_id from run_tags
    where namespace = @namespace and key = @tag_key and value = @tag_value
)`
	// taggedPage is those of them that a page may have.
	taggedPage = `(
    select run_id from run_tags
    where namespace = @namespace and key = @tag_key and value = @tag_value and run_id > @above and run_id < @below
    order by run_id desc
    offset 0
)`
	// found is the few that a search finds.
	found = `(
    select run_id from runs
    where namespace = @namespace and external_id <> '' and external_id >= @search and external_id < @search || chr(127)
    union
    select run_id from runs where namespace = @namespace and run_id >= @search_first and run_id <= @search_last
)`
)

// A page backwards is the same statement in the other direction.
func backwards(statement string) string {
	return strings.ReplaceAll(statement, "run_id desc", "run_id asc")
}

const (
	// nearRuns is how far from its place a page is looked for at first, in runs.
	nearRuns = 5000
	// few is how many runs a search finds at most that are read and sorted for each page; where
	// there are more, some are not far in the list.
	few = 1000
)

// near is a list that sees only the next @near runs.
func near(statement string) string {
	return strings.Replace(statement, "from runs r\n", `from (
    select * from runs
    where namespace = @namespace and run_id > @above and run_id < @below
    order by run_id desc
    limit @near
) r
`, 1)
}

// ListRuns is planned for the filter, so it walks the narrowest index that the filter allows, in
// the order of the ids. What no index knows of is looked for nearby first: people ask for what is
// new, and that is what the database has no statistics of yet. By these it would rather read all of
// a large table and sort what it finds than come upon it within a few steps.
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

// listOfRuns is how a list of runs is read.
type listOfRuns struct {
	page, count string // their statements
	filter      args   // of both
	indexed     bool   // an index has what the filter lets through, or nearly all of it
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

// rarestTag is the tag of the filter that the fewest runs have, as far as it is worth counting.
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

//go:embed sql/list_handlers.sql
var listHandlersText string

var listHandlersSQL = runColumns.Expand(listHandlersText)

// ListHandlers is the runs that handle the failure of this one, by id.
func (s *Store) ListHandlers(ctx context.Context, namespace string, run engine.ID) ([]engine.Run, error) {
	return s.someRuns(ctx, "list the handlers of a run", listHandlersSQL,
		args{"namespace": namespace, "run_id": [16]byte(run)})
}

//go:embed sql/list_retries.sql
var listRetriesText string

var listRetriesSQL = runColumns.Expand(listRetriesText)

// ListRetries is the runs that this one was retried as, by id.
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
