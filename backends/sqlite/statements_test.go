package sqlite

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"
)

// statements returns the text of every file by name, with the columns of runs expanded.
func statements(t *testing.T) map[string]string {
	t.Helper()
	own, err := filepath.Glob("sql/*.sql")
	if err != nil || len(own) == 0 {
		t.Fatalf("statements found = %d (%v)", len(own), err)
	}
	internal, err := filepath.Glob("internal/*/sql/*.sql")
	if err != nil || len(internal) == 0 {
		t.Fatalf("statements of internal packages found = %d (%v)", len(internal), err)
	}
	files := slices.Concat(own, internal)
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := texts[filepath.Base(file)]; twice {
			t.Errorf("two statements are called %s", filepath.Base(file))
		}
		texts[filepath.Base(file)] = runColumns.Expand(string(text))
	}
	return texts
}

func TestStatementsPrepareAndHaveComment(t *testing.T) {
	s := fresh(t)
	c, err := dbfile.OpenReader(s.path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for name, text := range statements(t) {
		if !strings.HasPrefix(text, "-- ") {
			t.Errorf("%s does not begin with a comment", name)
		}
		if _, err := c.Prepare(&text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A column that no statement about whole runs reads would be lost on the next export, and nothing
// else would notice.
func TestTheRunColumnsAreThoseOfTheTable(t *testing.T) {
	s := fresh(t)
	known := append([]string{
		"lease_losses", "steps", "bytes", "settled", // in the lease while there is one
		"lane_id", "expires_at", "final_token", "tied", // only for the store
	}, runColumns.Names()...)
	text := "select name from pragma_table_info('runs')"
	_, err := read(t.Context(), s, "columns", func(r session) (none struct{}, err error) {
		return none, r.query(&text, func(r *row) error {
			name := r.text()
			if !slices.Contains(known, name) {
				t.Errorf("runs.%s is not in run_columns.sql", name)
			}
			known = slices.DeleteFunc(known, func(column string) bool { return column == name })
			return nil
		})
	})
	if err != nil || len(known) > 0 {
		t.Errorf("runs lacks %q (%v)", known, err)
	}
}

// plan returns SQLite's plan of a statement.
func plan(t *testing.T, s *Store, text string) string {
	t.Helper()
	_, names := sqlite3.Positional(text)
	explain := "explain query plan " + text
	var args []arg
	for _, name := range names {
		if !slices.ContainsFunc(args, func(a arg) bool { return a.Name == name }) {
			args = append(args, num(name, 1))
		}
	}
	var steps []string
	_, err := read(t.Context(), s, "plan", func(r session) (none struct{}, err error) {
		return none, r.query(&explain, func(r *row) error {
			r.num()
			r.num()
			r.num()
			steps = append(steps, r.text())
			return nil
		}, args...)
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(steps, "; ")
}

func TestAClaimLooksAtTheHeadOfALaneAndAtNothingElse(t *testing.T) {
	s := fresh(t)
	for _, text := range []string{claimSQL, nextDueSQL} {
		got := plan(t, s, text)
		if !strings.Contains(got, "SEARCH runs USING INDEX runs_claim (lane_id=? AND available_at") {
			t.Errorf("plan = %s, want a search in runs_claim", got)
		}
		if strings.Contains(got, "SCAN") || strings.Contains(got, "TEMP B-TREE") {
			t.Errorf("plan = %s, want neither a scan nor a sort", got)
		}
	}
}

// scans returns the tables that a plan scans completely, without lists of arguments and parts of
// the statement itself.
func scans(plan string) (tables []string) {
	for step := range strings.SplitSeq(plan, "; ") {
		table, isScan := strings.CutPrefix(step, "SCAN ")
		if !isScan || strings.HasPrefix(table, "CONSTANT ROW") || strings.Contains(table, "VIRTUAL TABLE") ||
			table == "gated" || table == "lives" {
			continue
		}
		tables = append(tables, table)
	}
	return tables
}

func TestNoStatementOfAVerbScans(t *testing.T) {
	s := fresh(t)
	texts := statements(t)
	for _, name := range []string{
		"insert_run", "insert_whole_run", "insert_input", "get_request", "get_external", "open_external", "requested",
		"claim_run", "insert_leases",
		"get_key", "count_key", "gate_run", "first_gated", "wake_steps", "any_waiting", "settle_step", "return_signals", "get_lease",
		"complete_new_step", "get_latest_attempt",
		"get_attempt", "get_attempt_of_lease", "update_step", "supersede_step", "retry_steps", "complete_run",
		"set_output",
		"end_steps", "interrupt_steps", "save_run", "save_lease", "delete_lease", "heartbeat", "held_by",
		"held_to_free", "get_run_state", "get_run", "get_runs",
		"list_waiting", "list_results", "list_child_steps", "next_of_group", "await_steps", "list_timed_out",
		"list_expiring", "list_prunable",
		"next_signal", "get_signal", "list_unconsumed", "count_signals", "consume_signal", "open_retry",
		"open_children", "open_of",
		"get_schedule", "get_schedule_by_name", "get_schedule_by_request", "due_schedules", "get_handler_queue",
		"list_signals", "list_handlers", "list_retries", "list_schedules", "list_namespaces", "list_audit_events",
		"prune_signals", "prune_fires", "prune_audit",
	} {
		text, ok := texts[name+".sql"]
		if !ok {
			t.Errorf("there is no %s.sql", name)
			continue
		}
		got := plan(t, s, text)
		if tables := scans(got); len(tables) > 0 {
			t.Errorf("plan of %s = %s, want no scan", name, got)
		}
	}
}

func TestAStatementGoesByTheIndexThatWasMadeForIt(t *testing.T) {
	s := fresh(t)
	for _, statement := range []struct {
		name, text string
		wants      []string
	}{
		{"the first of each lane and limit in a key's line", firstGatedSQL, []string{
			"runs_gate (namespace=? AND workflow_type=? AND concurrency_key=?)",
			"runs_gate (namespace=? AND workflow_type=? AND concurrency_key=? AND (lane_id,concurrency_limit)>(?,?))",
			"leases_key (namespace=? AND workflow_type=? AND concurrency_key=?)",
			"COVERING INDEX runs_places (namespace=? AND workflow_type=? AND concurrency_key=?)"}},
		{"the places of a key", countKeySQL, []string{
			"leases_key (namespace=? AND workflow_type=? AND concurrency_key=?)",
			"COVERING INDEX runs_places (namespace=? AND workflow_type=? AND concurrency_key=?)"}},
		{"the runs that have the places of a key", listHoldersSQL, []string{
			"leases_key (namespace=? AND workflow_type=? AND concurrency_key=?)",
			"COVERING INDEX runs_places (namespace=? AND workflow_type=? AND concurrency_key=?)"}},
		{"what expires", listExpiringSQL, []string{"runs_expiry (expires_at>?)"}},
		{"what times out", listTimedOutSQL, []string{"steps_timeout (timeout_at>?)"}},
		{"the schedules that are due", dueSchedulesSQL, []string{"schedules_due (<expr>>?)"}},
		{"what is old enough to be deleted", listPrunableSQL,
			[]string{"runs_ended (namespace=? AND status=? AND finished_at<?)", "runs_parent", "runs_failed",
				"runs_retried"}},
		{"whether something happened to a claimed run", anyWaitingSQL,
			[]string{"steps_open (run_id=?)", "steps_awaited (run_id=?)"}},
		{"what a group waits for", nextOfGroupSQL, []string{"steps_open (run_id=?)"}},
		{"the steps of children", listChildStepsSQL, []string{"steps_child (child_run_id=?)"}},
		{"the children of a run", openChildrenSQL, []string{"runs_parent (parent_run_id=?)"}},
		{"a page of runs", listRuns.forth, []string{"runs_list (namespace=? AND run_id>? AND run_id<?)"}},
		{"a page of open runs", listOpenRuns.back, []string{"runs_open (namespace=? AND run_id>? AND run_id<?)"}},
		{"a page of runs that ended badly", listBadRuns.forth,
			[]string{"runs_ended_badly (namespace=? AND status=? AND run_id>? AND run_id<?)"}},
		{"a page of children", listChildren.back, []string{"runs_parent (parent_run_id=? AND run_id>? AND run_id<?)"}},
		{"a page of a schedule's runs", listScheduled.forth,
			[]string{"runs_schedule (schedule_id=? AND run_id>? AND run_id<?)"}},
		{"a page of runs with a tag", listTagged.back,
			[]string{"SEARCH d USING PRIMARY KEY (namespace=? AND key=? AND value=? AND run_id>? AND run_id<?)",
				"SEARCH r USING PRIMARY KEY (run_id=?)"}},
		{"the length of a list of runs with a tag", listTagged.count,
			[]string{"SEARCH d USING PRIMARY KEY (namespace=? AND key=? AND value=?)",
				"SEARCH r USING PRIMARY KEY (run_id=?)"}},
		{"a page of schedules", listSchedulesSQL, []string{"schedule_id>? AND schedule_id<?"}},
		{"a page of the audit", listAudit.back, []string{"audit_list (namespace=? AND event_id>? AND event_id<?)"}},
		{"the open runs of a schedule", openOfSQL, []string{"runs_schedule_open (schedule_id=?)"}},
		{"the next signal", nextSignalSQL, []string{"signals_waiting (run_id=? AND name=?)"}},
		{"the leases of a worker", heldBySQL, []string{"leases_worker (worker_id=?)"}},
		{"what was done to one thing", listAuditOfSubject.forth,
			[]string{"audit_subject (namespace=? AND subject_id=? AND event_id>? AND event_id<?)"}},
	} {
		got := plan(t, s, statement.text)
		for _, want := range statement.wants {
			if !strings.Contains(got, want) {
				t.Errorf("plan of %s = %s, want %s", statement.name, got, want)
			}
		}
		if strings.Contains(got, "TEMP B-TREE") || len(scans(got)) > 0 {
			t.Errorf("plan of %s = %s, want neither a scan nor a sort", statement.name, got)
		}
	}
}

func TestASearchGoesByIndexes(t *testing.T) {
	s := fresh(t)
	for name, text := range map[string]string{
		"the page": listFound.forth, "the page backwards": listFound.back, "the length": listFound.count,
		"how many there are": countFoundSQL} {
		got := plan(t, s, text)
		for _, want := range []string{"runs_external (namespace=? AND external_id>? AND external_id<?)",
			"runs_list (namespace=? AND run_id>? AND run_id<?)"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: plan = %s, want %s", name, got, want)
			}
		}
		if strings.Contains(got, "SCAN r;") || strings.Contains(got, "SCAN runs") {
			t.Errorf("%s: plan = %s, want no scan of runs", name, got)
		}
	}
}

func TestEveryFileOfAStatementIsUsed(t *testing.T) {
	own, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	internal, err := filepath.Glob("internal/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	sources := slices.Concat(own, internal)
	var all strings.Builder
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for name := range statements(t) {
		if !strings.Contains(all.String(), "//go:embed sql/"+name+"\n") {
			t.Errorf("nothing uses %s", name)
		}
	}
}
