package postgres

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/lab/long"
)

// The hot statements must find their rows by index whatever the statistics say: on an empty table a
// wrong plan for a full one is most likely, and the reverse.
func TestHotPlansUseIndexes(t *testing.T) {
	url := lentURL(t)
	s := openAt(t, url)
	conn := planConnection(t, url)
	columns := leadingColumns(t, conn)
	check := func(when string, whole bool) {
		t.Helper()
		checkPlans(t, conn, columns, when, whole)
	}
	check("empty and never analyzed", false)
	vacuumAnalyze(t, conn)
	check("empty", true) // on an empty index, reading all is as good as a lookup
	fill(t, s, 100, 100, time.Now())
	surround(t, s)
	endAll(t, s)
	check("young", false)
	fill(t, s, long.Count(30_000, 100_000), 1000, time.Now())
	surround(t, s)
	check("full", false)
	endAll(t, s)
	check("all over", false)
}

// checkPlans checks new plans of every hot statement. whole: it may read all of an index, because
// the tables are empty.
func checkPlans(t *testing.T, conn *pgx.Conn, columns map[string][]string, when string, whole bool) {
	t.Helper()
	for name, h := range hotStatements(t) {
		plan := explain(t, conn, name, h)
		if line := passing(plan, columns); line != "" && !whole {
			t.Errorf("%s, %s: all of an index is read: %s\n%s", name, when, line, plan)
		}
		if line := wasteful(plan, whole || inOrder[name]); line != "" {
			t.Errorf("%s, %s: %s\n%s", name, when, line, plan)
		}
		if index := indexOf[name]; !strings.Contains(plan, index) {
			t.Errorf("%s, %s: the plan does not go by %s\n%s", name, when, index, plan)
		}
	}
}

// A plan made while a table is new stays until the database analyzes the table again, and by then
// it may be large. The indexes that begin with the namespace cost the planner nearly the same then,
// and which of them is deeper changes as they grow.
func TestStartPlanUsesIndexesOfIDs(t *testing.T) {
	url := lentURL(t)
	s := openAt(t, url)
	hots := hotStatements(t)
	for made := 0; made <= 400; {
		conn := planConnection(t, url)
		for name, indexes := range map[string][]string{
			"insert_run": {"runs_request", "runs_external"}, "get_request": {"runs_request"},
			"requested":    {"runs_request"},
			"get_external": {"runs_external"}, "open_external": {"runs_external"}, "check_started": {"runs_external"},
		} {
			plan := explain(t, conn, name, hots[name])
			for _, index := range indexes {
				if !strings.Contains(plan, index) || strings.Contains(plan, "Index Cond: (namespace = $1)\n") {
					t.Fatalf("%s, with %d runs: the plan does not go by %s\n%s", name, made, index, plan)
				}
			}
		}
		starts := make([]engine.StartRun, 40)
		for i := range starts {
			starts[i] = newStart(s)
			starts[i].RequestID, starts[i].ExternalID = starts[i].ID.String(), "order "+starts[i].ID.String()
		}
		if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: starts}); err != nil {
			t.Fatal(err)
		}
		made += len(starts)
	}
}

// An index of open rows is empty most of the time, and reading all of it is cheap then. A claim
// keeps its plan while sleeping runs gather there.
func TestClaimPlanUsesIndexOfOpenSteps(t *testing.T) {
	url := lentURL(t)
	s := openAt(t, url)
	fill(t, s, 1000, 0, time.Now())
	for _, statement := range []string{
		`insert into steps (step_id, run_id, name, kind, status, attempt, sequence, token, worker_id, created_at)
		 select gen_random_uuid(), run_id, 'pay', 1, 3, 1, 1, run_id, 'w1', 0 from runs`,
		"analyze steps",
	} {
		if _, err := s.pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	conn := planConnection(t, url)
	hots := hotStatements(t)
	for _, name := range []string{"claim", "claim_chosen"} {
		plan := explain(t, conn, name, hots[name])
		for _, index := range []string{"steps_open", "steps_awaited"} {
			_, after, found := strings.Cut(plan, "Index Scan using "+index)
			if lines := strings.SplitN(after, "\n", 3); !found || len(lines) < 2 ||
				!strings.Contains(lines[1], "Index Cond") {
				t.Errorf("%s does not look into %s for single rows\n%s", name, index, plan)
			}
		}
	}
}

// If one parent has all the children, or one run all the steps, the statistics say that a condition
// on it filters nothing. Ids are made in the order of the rows, so reading all in the order of ids
// looks cheap too.
func TestHotPlansWhenOneRowHasAllOthers(t *testing.T) {
	url := lentURL(t)
	s := openAt(t, url)
	conn := planConnection(t, url)
	columns := leadingColumns(t, conn)
	fill(t, s, 0, 1, time.Now())
	for _, statement := range []string{
		"create temporary view ids as select n, ('019a0000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid as id from generate_series(1, 4000) n",
		`insert into runs (run_id, namespace, lane_id, task_queue, workflow_type, status, created_at, available_at, parent_run_id, parent_close, retried_from,
		 schedule_id, concurrency_key)
		 select i.id, 'default', r.lane_id, 'orders', 'order', 3, 0, r.available_at, r.run_id, 2, r.run_id, 's', 'k' from ids i, runs r`,
		`insert into steps (step_id, run_id, name, kind, status, attempt, sequence, token, worker_id, created_at, child_run_id, awaited, timeout_at)
		 select i.id, r.run_id, 'step ' || n, 3, 2, 1, n, r.run_id, 'w1', 0, i.id, 2, n from ids i, runs r where r.parent_run_id is null`,
		`insert into signals (run_id, sequence, name, signal_id, received_at, step_name)
		 select r.run_id, n, 'go', 's' || n, 0, '' from ids i, runs r where r.parent_run_id is null`,
		`insert into leases (run_id, token, worker_id, namespace, task_queue, workflow_type, claimed_at, steps, bytes, concurrency_key)
		 select id, id, 'w1', 'default', 'orders', 'order', 0, 0, 0, 'k' from ids`,
		"insert into payloads (run_id) select id from ids",
		`insert into workers (worker_id, namespace, status, queues, types, max_concurrent, registered_at, last_heartbeat_at)
		 select 'w' || n, 'default', 1, '["orders"]', '["order"]', 1, 0, 0 from ids`,
		"insert into fires (schedule_id, tick, run_id, fired_at) select id, n, id, n from ids",
	} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	vacuumAnalyze(t, conn)
	checkPlans(t, conn, columns, "one has all", false)
	endAll(t, s)
	checkPlans(t, conn, columns, "one has had all", false)
}

// A plan made when the first worker has registered stays when there are thousands.
func TestHeartbeatPlanUsesIndexAfterFirstWorker(t *testing.T) {
	url := lentURL(t)
	s := openAt(t, url)
	register(t, s, "w1")
	conn := planConnection(t, url)
	if _, err := conn.Exec(t.Context(), "vacuum analyze workers"); err != nil {
		t.Fatal(err)
	}
	hots := hotStatements(t)
	for name, index := range map[string]string{
		"lock_beating": "workers_pkey", "heartbeats": "workers_pkey", "held_by": "leases_worker"} {
		plan := explain(t, conn, name, hots[name])
		if line := wasteful(plan, false); line != "" || !strings.Contains(plan, index) {
			t.Errorf("%s does not look into %s for single rows: %s\n%s", name, index, line, plan)
		}
	}
}

// inOrder are the statements that scan an index in order, up to a limit.
var inOrder = map[string]bool{"list_expiring": true, "list_timed_out": true, "due_schedules": true,
	"list_left_behind": true}

// leadingColumns returns the first two columns of each index. The second, which may be empty, is
// set only if Postgres may skip the first: since 18 it skips from one of its values to the next,
// which for a namespace costs a lookup or two, because there are few.
func leadingColumns(t *testing.T, conn *pgx.Conn) map[string][]string {
	t.Helper()
	rows, err := conn.Query(t.Context(),
		`select indexrelid::regclass::text, pg_get_indexdef(indexrelid, 1, false), pg_get_indexdef(indexrelid, 2, false)
		from pg_index where indrelid::regclass::text !~ '^pg_'`)
	if err != nil {
		t.Fatal(err)
	}
	skips := conn.PgConn().ParameterStatus("server_version") >= "18"
	columns := map[string][]string{}
	var index, first, second string
	if _, err := pgx.ForEachRow(rows, []any{&index, &first, &second}, func() error {
		if !skips || first != "namespace" {
			second = ""
		}
		columns[index] = []string{first, second}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return columns
}

var indexScan = regexp.MustCompile(`Scan using (\w+) on [^\n]*\n *Index Cond: ([^\n]*)`)

// passing returns the condition of a plan that scans all of an index, because it does not restrict
// the index's first column.
func passing(plan string, columns map[string][]string) string {
	for _, scan := range indexScan.FindAllStringSubmatch(plan, -1) {
		index, condition := scan[1], scan[2]
		if !slices.ContainsFunc(columns[index], func(column string) bool {
			return column != "" && regexp.MustCompile(`\b`+column+`\b`).MatchString(condition)
		}) {
			return index + ", " + condition
		}
	}
	return ""
}

// wasteful returns the line of a plan that reads more rows than necessary: all of a table, all of
// an index unless walks is set, or all due rows.
func wasteful(plan string, walks bool) string {
	lines := strings.Split(plan, "\n")
	for i, line := range lines {
		line = strings.TrimSpace(line)
		whole := strings.Contains(line, "Index Scan using") &&
			(i+1 == len(lines) || !strings.Contains(lines[i+1], "Index Cond"))
		if strings.Contains(line, "Seq Scan") || strings.Contains(line, "Bitmap") ||
			strings.HasPrefix(line, "Index Cond: (available_at") || whole && !walks {
			return line
		}
	}
	return ""
}

func planConnection(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(ctx) })
	if err := applySettings(ctx, conn, writeSettings); err != nil {
		t.Fatal(err)
	}
	return conn
}

// explain returns the plan that the pools' connections use: the generic one of a prepared
// statement.
func explain(t *testing.T, conn *pgx.Conn, name string, p planned) string {
	t.Helper()
	ctx := context.Background()
	if _, err := conn.Prepare(ctx, "plan_"+name, p.text); err != nil {
		t.Fatalf("prepare %s: %v", name, err)
	}
	literals := make([]string, len(p.names))
	for i, value := range p.bind(p.arguments) {
		literals[i] = literal(value)
	}
	rows, err := conn.Query(ctx, fmt.Sprintf("explain execute plan_%s(%s)", name, strings.Join(literals, ", ")))
	if err != nil {
		t.Fatalf("explain %s: %v", name, err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("explain %s: %v", name, err)
	}
	return strings.Join(lines, "\n")
}

// literal formats an argument as SQL text, because EXECUTE takes no parameters.
func literal(value any) string {
	elements := []string{}
	switch v := value.(type) {
	case [16]byte:
		return "'" + engine.ID(v).String() + "'"
	case [][16]byte:
		for _, id := range v {
			elements = append(elements, engine.ID(id).String())
		}
	case [][]byte:
		for range v {
			elements = append(elements, "abc")
		}
	case []string:
		for _, text := range v {
			elements = append(elements, `"`+strings.ReplaceAll(text, `"`, `\"`)+`"`)
		}
	case []int64, []int32, []bool:
		return "'" + strings.NewReplacer("[", "{", "]", "}", " ", ",").Replace(fmt.Sprint(v)) + "'"
	default:
		return fmt.Sprintf("'%v'", v)
	}
	return "'{" + strings.Join(elements, ",") + "}'"
}

// surround adds parents, keys, gates, deadlines, schedules, signals and steps to the runs of a full
// store.
func surround(t *testing.T, s *Store) {
	t.Helper()
	conn, err := pgx.ConnectConfig(context.Background(), s.pool.Config().ConnConfig.Copy())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, statement := range []string{
		"update runs set parent_run_id = gen_random_uuid(), retried_from = gen_random_uuid() where status = 4",
		"update runs set expires_at = available_at, schedule_id = 's', concurrency_key = 'k' where status = 3",
		"update runs set gated = true, held_at = available_at, available_at = null where status = 3 and get_byte(uuid_send(run_id), 15) < 128",
		`insert into steps (step_id, run_id, name, kind, status, attempt, sequence, token, worker_id, created_at, child_run_id, awaited, timeout_at)
		 select gen_random_uuid(), run_id, 'step ' || n, 3, case when n = 1 then 2 else 3 end, 1, n, run_id, 'w1', 0, run_id, n, case when n = 1 then n end
		 from runs cross join generate_series(1, 20) n where status = 3`,
		`insert into signals (run_id, sequence, name, signal_id, received_at, step_name)
		 select run_id, n, 'go', 's' || n, 0, case when n > 3 then 'step' else '' end
		 from runs cross join generate_series(1, 20) n where status = 3`,
		`insert into leases (run_id, token, worker_id, namespace, task_queue, workflow_type, claimed_at, steps, bytes, concurrency_key)
		 select gen_random_uuid(), gen_random_uuid(), 'w' || n % 50, 'default', 'queue ' || n % 50, 'order', 0, 0, 0, 'k' || n from generate_series(1, 5000) n`,
		`insert into schedules (schedule_id, namespace, cron_expr, enabled, task_queue, workflow_type, max_catchup, created_at, updated_at, next_fire_at)
		 select gen_random_uuid(), 'default', '* * * * *', true, 'orders', 'order', 1, 0, 0, n from generate_series(1, 5000) n`,
		`insert into workers (worker_id, namespace, status, queues, types, max_concurrent, registered_at, last_heartbeat_at)
		 select 'w' || n, 'default', 1, '["orders"]', '["order"]', 1, 0, 0 from generate_series(1, 1000) n
		 on conflict (worker_id) do update set status = 1`,
		"insert into fires (schedule_id, tick, run_id, fired_at) select gen_random_uuid(), n, gen_random_uuid(), n from generate_series(1, 5000) n",
	} {
		if _, err := conn.Exec(context.Background(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	vacuumAnalyze(t, conn)
}

// endAll leaves nothing open in a full store. The statistics then say that indexes of open rows are
// empty, although they are no less deep.
func endAll(t *testing.T, s *Store) {
	t.Helper()
	conn, err := pgx.ConnectConfig(context.Background(), s.pool.Config().ConnConfig.Copy())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, statement := range []string{
		"update runs set status = 4, finished_at = 1, available_at = null, gated = false, held_at = null where status <= 3",
		"update steps set status = 3, awaited = 0 where status = 2",
		"update signals set step_name = 'step' where step_name = ''",
		"update schedules set enabled = false",
		"update workers set status = 3",
		"delete from leases",
	} {
		if _, err := conn.Exec(context.Background(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	vacuumAnalyze(t, conn)
}

// fill puts ended and sleeping runs into a store, and updates the statistics.
func fill(tb testing.TB, store engine.Store, ended, sleeping int, now time.Time) {
	tb.Helper()
	s := store.(*Store)
	lane, err := s.ensureLane(laneKey{"default", "orders", "order", "", 0})
	if err == nil {
		err = s.ensureNamespace("default", now)
	}
	if err != nil {
		tb.Fatal(err)
	}
	exec := func(statement string, arguments ...any) {
		tb.Helper()
		if _, err := s.pool.Exec(context.Background(), statement, arguments...); err != nil {
			tb.Fatal(err)
		}
	}
	const insert = `insert into runs (run_id, namespace, lane_id, task_queue, workflow_type, status, created_at, finished_at, available_at)
		select gen_random_uuid(), 'default', $1, 'orders', 'order', $2::smallint, $3, case when $2 = 4 then $3::bigint + n end,
		       case when $2 = 3 then $3::bigint + 63072000000000 + n end
		from generate_series(1, $4) n`
	for _, kind := range []struct {
		status engine.RunStatus
		n      int
	}{{engine.RunCompleted, ended}, {engine.RunSleeping, sleeping}} {
		for left := kind.n; left > 0; left -= 20_000 { // within the timeout of a write
			exec(insert, lane, int16(kind.status), micros(now), min(left, 20_000))
		}
	}
	conn, err := pgx.ConnectConfig(context.Background(), s.pool.Config().ConnConfig.Copy())
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(context.Background(),
		"insert into payloads (run_id) select run_id from runs on conflict do nothing"); err != nil {
		tb.Fatal(err)
	}
	vacuumAnalyze(tb, conn)
	if _, err := conn.Exec(context.Background(), "checkpoint"); err != nil {
		tb.Fatal(err)
	}
}

// vacuumAnalyze updates the statistics and visibility maps of the tables of one schema. Without a
// list of tables Postgres would process those of all other tests too.
func vacuumAnalyze(tb testing.TB, conn *pgx.Conn) {
	tb.Helper()
	ctx := context.Background()
	var tables string
	err := conn.QueryRow(ctx,
		"select string_agg(quote_ident(tablename), ', ') from pg_tables where schemaname = current_schema()").Scan(
		&tables)
	if err == nil {
		_, err = conn.Exec(ctx, "vacuum analyze "+tables)
	}
	if err != nil {
		tb.Fatalf("vacuum analyze: %v", err)
	}
}
