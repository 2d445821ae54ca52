package postgres

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/engine"
)

func TestListFindsRunsBeyondNearbyOnes(t *testing.T) {
	s := openAt(t, lentURL(t))
	fill(t, s, nearRuns+1000, 0, time.Now()) // their ids are random, and nearly all come before those of a start
	rare := make([]engine.StartRun, 5)
	for i := range rare {
		rare[i] = newStart(s)
		rare[i].Type = "rare"
	}
	if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: rare}); err != nil {
		t.Fatal(err)
	}
	list := func(kind string, p engine.Page) ([]engine.Run, engine.PageInfo) {
		t.Helper()
		runs, info, err := s.ListRuns(t.Context(), engine.RunFilter{Namespace: "default", Types: []string{kind}}, p)
		if err != nil {
			t.Fatal(err)
		}
		return runs, info
	}
	first, info := list("rare", engine.Page{Limit: 3, Count: true})
	if len(first) != 3 || first[0].ID != rare[4].ID || !info.HasNext || info.HasPrev || info.Total != 5 {
		t.Fatalf("the first page has %d runs and %+v", len(first), info)
	}
	second, info := list("rare", engine.Page{Limit: 3, After: &engine.Cursor{ID: first[2].ID}})
	if len(second) != 2 || second[1].ID != rare[0].ID || info.HasNext || !info.HasPrev {
		t.Fatalf("the second page has %d runs and %+v", len(second), info)
	}
	back, info := list("rare", engine.Page{Limit: 3, Before: &engine.Cursor{ID: second[0].ID}})
	if len(back) != 3 || back[0].ID != rare[4].ID || !info.HasNext || info.HasPrev {
		t.Fatalf("the page before has %d runs and %+v", len(back), info)
	}
	common, info := list("order", engine.Page{Limit: 10, Count: true})
	if len(common) != 10 || !info.HasNext || info.Total != nearRuns+1000 {
		t.Fatalf("the common ones' first page has %d runs and %+v", len(common), info)
	}
}

// The database has no statistics of a queue that was used for the first time.
func TestNearbyListPlanUsesIndex(t *testing.T) {
	url := lentURL(t)
	s := openAt(t, url)
	fill(t, s, 20_000, 0, time.Now())
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	p := engine.Page{Limit: 50}
	a := merge(merge(filterArgs(&engine.RunFilter{Namespace: "default", Queues: []string{"new"}}), idPlace(&p)),
		args{"near": nearRuns})
	for name, statement := range map[string]string{
		"forward": near(listRunsSQL), "backward": backwards(near(listRunsSQL))} {
		if plan := planNow(t, conn, statement, a); !strings.Contains(plan, "using runs_list") ||
			strings.Contains(plan, "Seq Scan on runs") {
			t.Errorf("%s: the plan does not walk the list\n%s", name, plan)
		}
	}
}

func TestTagAndSearchPlansUseIndexes(t *testing.T) {
	url := lentURL(t)
	s := openAt(t, url)
	fill(t, s, 20_000, 0, time.Now())
	conn := adminConnection(t, url)
	if _, err := conn.Exec(t.Context(),
		"insert into run_tags (namespace, key, value, run_id) select namespace, 'region', 'eu', run_id from runs"); err != nil {
		t.Fatal(err)
	}
	if err := applySettings(t.Context(), conn, viewSettings); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]engine.RunFilter{
		"a tag":        {Namespace: "default", Tags: map[string]string{"customer": "x"}},
		"a tag of all": {Namespace: "default", Tags: map[string]string{"region": "eu"}},
		"a search":     {Namespace: "default", Search: "order-1"},
		"an id":        {Namespace: "default", Search: engine.NewID(time.Now()).String()},
	} {
		l, err := s.listOf(t.Context(), &f)
		if err != nil {
			t.Fatal(err)
		}
		p := engine.Page{Limit: 50}
		plans := map[string]string{
			"a page":           planNow(t, conn, l.page, merge(l.filter, idPlace(&p))),
			"a page backwards": planNow(t, conn, backwards(l.page), merge(l.filter, idPlace(&p))),
			"the length":       planNow(t, conn, l.count, l.filter),
		}
		for what, plan := range plans {
			if !l.indexed || strings.Contains(plan, "Seq Scan on runs") ||
				strings.Contains(plan, "Seq Scan on run_tags") || !strings.Contains(plan, "runs_pkey") {
				t.Errorf("%s of %s goes through runs that it is not about\n%s", what, name, plan)
			}
		}
	}
}

// Statistics do not know of a new backlog, and callers that wait for its results ask for many runs
// at once.
func TestGetRunsPlanUsesIDs(t *testing.T) {
	url := lentURL(t)
	s := openAt(t, url)
	starts := make([]engine.StartRun, engine.MaxBatch)
	ids := make([]engine.ID, 40)
	for range 5 {
		for i := range starts {
			starts[i] = newStart(s)
		}
		if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: starts}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range ids {
		ids[i] = starts[i].ID
	}
	conn := adminConnection(t, url)
	if err := applySettings(t.Context(), conn, viewSettings); err != nil {
		t.Fatal(err)
	}
	plan := planNow(t, conn, getRunsSQL, args{"namespace": "default", "run_ids": idArray(ids)})
	if !strings.Contains(plan, "runs_pkey") || strings.Contains(plan, "runs_list") ||
		strings.Contains(plan, "Seq Scan") {
		t.Errorf("the runs are not looked up by their ids alone\n%s", plan)
	}
}

// planNow returns the plan for these arguments at this moment.
func planNow(t *testing.T, conn *pgx.Conn, statement string, a args) string {
	t.Helper()
	rows, err := conn.Query(t.Context(), "explain "+statement, a)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}
