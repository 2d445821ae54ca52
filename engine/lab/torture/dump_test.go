//go:build linux

package main

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kagzi/kagzi/engine/lab/torture/check"
)

// landed returns a database of SQLite with the landed schema and the rows of the statements.
func landed(t *testing.T, statements ...string) (dir, url string) {
	t.Helper()
	dir = t.TempDir()
	url = "sqlite:" + filepath.Join(dir, "kagzi.db")
	db, err := openSQL(url, "rwc")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	files, err := filepath.Glob("../../../migrations/sqlite/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("migrations = %v (%v)", files, err)
	}
	all := []string{"pragma synchronous = off"}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(text))
	}
	for _, s := range append(all, statements...) {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%.80s: %v", s, err)
		}
	}
	return dir, url
}

// TestTheDumpIsWhatTheDatabaseHolds reads one full row and one minimal row of each kind.
func TestTheDumpIsWhatTheDatabaseHolds(t *testing.T) {
	one, two := strings.Repeat("11", 16), strings.Repeat("22", 16)
	dir, url := landed(t,
		`insert into runs (run_id, namespace, request_id, lane_id, task_queue, workflow_type, status, attempts, lease_losses, error, created_at,
			on_failure_workflow, failed_run_id, schedule_id, finished_at) values (x'`+one+
			`', 'default', 'request', 1, 'queue', 'type', 5, 2, 3, '{"code":"crashed","message":"lost"}', 1, 'handler',
			x'`+two+`', 's', 9)`,
		`insert into runs (run_id, namespace, lane_id, task_queue, workflow_type, status, created_at) values (x'`+two+
			`', 'default', 1, 'queue', 'type', 100, 1)`,
		`insert into payloads (run_id, input, output) values (x'`+one+`', cast('in' as blob), cast('out' as blob))`,
		`insert into steps (step_id, run_id, name, kind, status, attempt, latest, sequence, output, token, worker_id, created_at)
			values (x'01', x'`+one+`', 'step', 1, 3, 1, 1, 1, cast('result' as blob), x'01', 'w', 1)`,
		`insert into steps (step_id, run_id, name, kind, status, attempt, latest, sequence, token, worker_id, created_at) values (x'02', x'`+one+`', 'failed', 1, 4, 1, 0, 2, x'01', 'w', 1)`,
		`insert into leases (run_id, token, worker_id, namespace, task_queue, workflow_type, claimed_at, steps, bytes)
			values (x'`+one+`', x'`+two+`', 'w', 'default', 'queue', 'type', 1, 0, 0)`,
		`insert into schedules (schedule_id, namespace, task_queue, workflow_type, cron_expr, created_at, updated_at, enabled, overlap, max_catchup, fired, skipped, next_fire_at)
			values (x'`+one+`', 'default', 'queue', 'type', '*/5 * * * * *', 3, 3, 1, 1, 1, 4, 5, 6)`,
		`insert into schedules (schedule_id, namespace, task_queue, workflow_type, cron_expr, created_at, updated_at, enabled, overlap, max_catchup) values (x'`+two+`', 'default', 'queue', 'type', 'else', 3, 3, 1, 1, 1)`,
		`insert into fires (schedule_id, tick, run_id, fired_at) values (x'`+one+`', 7, x'`+two+`', 8)`)
	got, err := dump(t.Context(), "true", dir, url, periods)
	if err != nil {
		t.Fatal(err)
	}
	id := func(digit string) string {
		d := func(n int) string { return strings.Repeat(digit, n) }
		return d(8) + "-" + d(4) + "-" + d(4) + "-" + d(4) + "-" + d(12)
	}
	want := check.Dump{
		Runs: []check.Run{
			{ID: id("1"), Request: "request", Type: "type", Queue: "queue", Status: "FAILED", Input: "in",
				Output: "out", Attempts: 2, LeaseLosses: 3, Crashed: true, Message: "lost", EndedAt: 9,
				OnFailure: "handler", FailedRun: id("2"), Schedule: "s"},
			{ID: id("2"), Type: "type", Queue: "queue", Status: "TIMED_OUT", Attempts: 1},
		},
		Steps: []check.Step{{Run: id("1"), Name: "failed", Status: "FAILED"},
			{Run: id("1"), Name: "step", Status: check.Completed, Latest: true, Output: "result"}},
		Leases: []check.Lease{{Run: id("1"), Token: id("2")}},
		Schedules: []check.Schedule{{ID: id("1"), Every: 5, CreatedAt: 3, Fired: 4, Skipped: 5, NextFire: 6},
			{ID: id("2"), CreatedAt: 3}},
		Fires: []check.Fire{{Schedule: id("1"), Run: id("2"), Tick: 7, FiredAt: 8}},
		Rows:  8,
	}
	slices.SortFunc(got.Steps, func(a, b check.Step) int { return strings.Compare(a.Name, b.Name) })
	if !reflect.DeepEqual(got, want) {
		t.Errorf("dump = %+v\nwant   %+v", got, want)
	}
	if got, err := dump(t.Context(), "false", dir, url, periods); err != nil || len(got.Unsound) != 1 {
		t.Errorf("where the program's own check ends badly: unsound = %q (%v), want one finding", got.Unsound, err)
	}
	if _, err := dump(t.Context(), "/nowhere", dir, url, periods); err == nil {
		t.Error("the program's own check could not be made, and nobody said so")
	}
	if _, err := dump(t.Context(), "true", dir, "sqlite:"+filepath.Join(dir, "else.db"), periods); err == nil {
		t.Error("a database that is not there was read")
	}
	if err := os.WriteFile(filepath.Join(dir, "empty.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := dump(t.Context(), "true", dir, "sqlite:"+filepath.Join(dir, "empty.db"), periods); err == nil {
		t.Error("a database without tables was read")
	}
}

func TestAnErrorAmongTheRowsEndsTheDump(t *testing.T) {
	db, err := openSQL("sqlite:"+filepath.Join(t.TempDir(), "x.db"), "rwc")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	d := &dumping{ctx: t.Context(), db: db}
	take := func(scan func(...any) error) error { var n int64; return scan(&n) }
	if d.each("values (1), (2)", take); d.err != nil || d.dump.Rows != 2 {
		t.Fatalf("two rows are %d rows and the error %v", d.dump.Rows, d.err)
	}
	if d.each("select abs(column1) from (values (1), (-9223372036854775808))", take); d.err == nil {
		t.Error("the second row is an error, and nobody said so")
	}
	before := d.dump.Rows
	if d.each("values (1)", take); d.dump.Rows != before {
		t.Error("a dump went on after its first error")
	}
}
