package sqlite

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/engine"
)

func TestSizesAreWrittenForPeople(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 4096 + 512: "4.5 KiB", 999 << 10: "999.0 KiB", 1000 << 10: "1.0 MiB",
		64 << 20: "64.0 MiB",
		5 << 30:  "5.0 GiB", 3 << 40: "3.0 TiB", 2000 << 40: "2000.0 TiB",
	} {
		if got := dbfile.BytesText(n); got != want {
			t.Errorf("%d bytes are written as %q, want %q", n, got, want)
		}
	}
}

// factsOf returns the store's facts by name.
func factsOf(t *testing.T, s *Store) map[string]string {
	t.Helper()
	d, err := s.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	facts := map[string]string{}
	for _, f := range d.Facts {
		facts[f.Name] = f.Value
	}
	return facts
}

func TestTheFactsFollowWhatTheStoreDoes(t *testing.T) {
	s := fresh(t)
	holding(t, s, 10)
	facts := factsOf(t, s)
	for name, want := range map[string]string{
		"last checkpoint": "none since the start", "readers": "0 of 4 busy", "writes waiting": "0",
		"database file":   " of it free",
		"write-ahead log": "KiB", "page cache of the writer": "KiB", "free disk space": "iB",
		"durability": "journal_mode=wal, synchronous=full",
	} {
		if !strings.Contains(facts[name], want) {
			t.Errorf("%s = %q, want %q", name, facts[name], want)
		}
	}
	if facts["write-ahead log"] == "0 B" {
		t.Error("the log is empty after writes")
	}
	release := hold(t, s)
	go s.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{startOf("t", s)}})
	waiting(t, s, 1)
	if got := factsOf(t, s)["writes waiting"]; got != "1" {
		t.Errorf("writes waiting = %q, want 1", got)
	}
	s.writer.logPages = checkpointPages // when the writer is free again
	release()
	settle(t, s)
	if got := factsOf(t, s)["last checkpoint"]; !strings.HasPrefix(got, "20") {
		t.Errorf("last checkpoint = %q, want a moment", got)
	}
}

func TestWhoOnlyLooksTellsSo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kagzi.db")
	openAt(t, path).Close()
	s := readOnlyAt(t, path)
	facts := factsOf(t, s)
	if facts["access"] != "read-only" || facts["write-ahead log"] != "none" {
		t.Errorf("facts = %v, want that access is read-only and there is no log", facts)
	}
	if _, there := facts["writes waiting"]; there {
		t.Errorf("facts = %v, want none about writes", facts)
	}
	if d, err := s.Describe(t.Context()); err != nil || d.Notifications != "polling" || d.Schema == 0 || d.Bytes == 0 {
		t.Errorf("description = %+v (%v), want polling and the rest", d, err)
	}
}
