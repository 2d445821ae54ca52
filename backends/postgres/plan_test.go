package postgres

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/backends/postgres/pgtest"
	"github.com/kagzi/kagzi/engine"
)

// The hot statements must find their rows by index whatever the statistics say: an empty table is where a plan for a full one is
// most easily chosen wrongly, and the other way round.
func TestHotStatementsAreIndexScansOnAnEmptyAndOnAFullTable(t *testing.T) {
	ctx := context.Background()
	url := pgtest.URL(t)
	s := openAt(t, url)
	conn := planConnection(t, url)
	check := func(when string) {
		t.Helper()
		for name, h := range hotStatements() {
			plan := explain(t, conn, name, h)
			for line := range strings.SplitSeq(plan, "\n") {
				if strings.Contains(line, "Seq Scan") || strings.Contains(line, "Bitmap") {
					t.Errorf("%s, %s: %s\n%s", name, when, strings.TrimSpace(line), plan)
				}
			}
		}
	}
	check("empty and never analyzed")
	if _, err := s.pool.Exec(ctx, "analyze"); err != nil {
		t.Fatal(err)
	}
	check("empty")
	fill(t, s, 100_000, 1000, time.Now())
	check("full")
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

// planned is a hot statement with arguments of the right types.
type planned struct {
	statement
	arguments args
}

func hotStatements() map[string]planned {
	id := [][16]byte{engine.NewID(time.Now())}
	now := time.Now().UnixMicro()
	meet := args{"namespace": "default", "task_queue": "orders", "types": []string{"order"}, "offer_keys": []string{"gpu"},
		"offer_values": []string{""}, "now": now}
	return map[string]planned{
		"claim": {claimSQL, merge(meet, args{"workers": []string{"w1"}, "tokens": id, "limited_types": []string{"order"},
			"type_limits": []int64{5}, "queue_limit": int64(9), "heads": int64(10), "starved_since": now})},
		"next_due":     {nextDueSQL, meet},
		"lock_runs":    {lockRunsSQL, args{"run_ids": id}},
		"lock_leases":  {lockLeasesSQL, args{"run_ids": id}},
		"complete_run": {completeRunSQL, args{"run_ids": id, "tokens": id, "namespaces": []string{""}, "outputs": [][]byte{{1}}, "output_metas": []string{""}, "sizes": []int64{1}, "now": []int64{now}, "max_bytes": int64(1)}},
		"complete_new_step": {completeNewStepSQL, args{"run_ids": id, "tokens": id, "namespaces": []string{""}, "step_ids": id,
			"names": []string{"pay"}, "outputs": [][]byte{{1}}, "output_metas": []string{""}, "sizes": []int64{1},
			"started_at": []int64{now}, "now": []int64{now}, "max_steps": int64(1), "max_bytes": int64(1)}},
		"insert_run": {insertRunSQL, oneStart()},
		"history":    {historySQL, args{"run_id": id[0], "sequence": int64(0), "bytes": int64(1000)}},
	}
}

func oneStart() args {
	var columns startColumns
	run := engine.StartRun{Run: engine.Run{ID: engine.NewID(time.Now()), Namespace: "default", Queue: "orders", Type: "order",
		RequestID: "r", ExternalID: "e", Tags: map[string]string{"k": "v"}, CreatedAt: time.Now(), AvailableAt: time.Now()}}
	columns.add(0, &startCall{starts: []engine.StartRun{run}, lanes: []int64{1}})
	return columns.args()
}

// explain is the plan that the pools' connections use: the generic one of a prepared statement.
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

// literal is an argument as SQL text, for EXECUTE takes no parameters.
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

// fill puts ended and sleeping runs into a store, and brings the statistics up to date.
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
		for left := kind.n; left > 0; left -= 20_000 { // within the time that a write may take
			exec(insert, lane, int16(kind.status), micros(now), min(left, 20_000))
		}
	}
	conn, err := pgx.ConnectConfig(context.Background(), s.pool.Config().ConnConfig.Copy())
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, statement := range []string{"insert into payloads (run_id) select run_id from runs on conflict do nothing", "vacuum analyze", "checkpoint"} {
		if _, err := conn.Exec(context.Background(), statement); err != nil {
			tb.Fatal(err)
		}
	}
}
