package sqlite

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// statements is the text of every file, by its name.
func statements(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("sql/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("statements found = %d (%v)", len(files), err)
	}
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(file)] = string(text)
	}
	return texts
}

func TestEveryStatementIsPreparedAgainstTheSchemaAndBeginsWithAComment(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "kagzi.db"))
	c, err := connectReader(s.path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for name, text := range statements(t) {
		if !strings.HasPrefix(text, "-- ") {
			t.Errorf("%s does not begin with a comment", name)
		}
		if _, err := c.prepare(&text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// plan is how SQLite goes about a statement.
func plan(t *testing.T, s *Store, text string) string {
	t.Helper()
	_, names := positional(text)
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
	s := openAt(t, filepath.Join(t.TempDir(), "kagzi.db"))
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

func TestNoStatementOfTheHotVerbsScans(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "kagzi.db"))
	texts := statements(t)
	for _, name := range []string{
		"insert_run", "insert_input", "get_request", "get_external", "claim_run", "insert_lease", "count_leases", "wake_steps",
		"get_lease", "complete_new_step", "count_step", "get_latest_attempt", "get_attempt", "get_attempt_of_lease", "update_step",
		"end_lease", "complete_run", "set_output", "end_steps", "interrupt_steps", "free_run", "delete_lease", "heartbeat",
		"list_held_by_worker", "get_run_state", "get_held", "get_run", "list_open_steps", "list_timed_out", "next_timeout", "list_prunable",
	} {
		text, ok := texts[name+".sql"]
		if !ok {
			t.Errorf("there is no %s.sql", name)
			continue
		}
		if got := plan(t, s, text); strings.Contains(strings.ReplaceAll(got, "SCAN CONSTANT ROW", ""), "SCAN") {
			t.Errorf("plan of %s = %s", name, got)
		}
	}
}
