package model

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestRuns_sort_the_newest_2000(t *testing.T) {
	withRuns(t, 5000, "", func(t *testing.T, s *server, u *ui, r *Runs) {
		for i, run := range s.runs {
			run.Attempts = int32((i * 7919) % 5000)
		}
		r.Refresh()
		if err := r.SortBy("attempts", true); err != nil {
			t.Fatal(err)
		}
		u.settle()
		if r.Len() != sortMost || r.Sorted() != "among the newest 2,000" {
			t.Fatalf("%d rows, sorted %q", r.Len(), r.Sorted())
		}
		all := r.All()
		if !slices.IsSortedFunc(all, func(a, b *kagziv1.Workflow) int {
			return int(b.GetAttempts() - a.GetAttempts())
		}) {
			t.Fatal("they are not sorted")
		}
		run, _ := r.Row(100)
		if row, ok := r.Find(run.GetRunId()); !ok || row != 100 {
			t.Fatalf("row 100 is found at %d, %t", row, ok)
		}
		changed := proto.CloneOf(run)
		changed.Attempts = 1 << 20
		s.tell(&kagziv1.WatchEvent{Workflows: []*kagziv1.Workflow{changed}})
		u.settle()
		if row, _ := r.Find(run.GetRunId()); row != 0 {
			t.Fatalf("the run stays at %d after it changed", row)
		}
		if err := r.SortBy("nonsense", false); err == nil || !strings.Contains(err.Error(), "attempts") {
			t.Fatalf("error %v, want one that names the columns", err)
		}
		if err := r.SortBy("", false); err != nil || r.Sorted() != "" {
			t.Fatal(err, r.Sorted())
		}
		if got := firstRows(r, 1); got != "5000" {
			t.Fatalf("row 0 is %s in the server's order", got)
		}
	})
}

func TestRuns_stop_reading_for_a_filter_that_only_matches_here(t *testing.T) {
	withRuns(t, 9000, "type:x*", func(t *testing.T, s *server, u *ui, r *Runs) {
		if r.Local() != "type:x*" || r.Scanned() != scanMost || r.Len() != 0 || !r.More() {
			t.Fatalf("local %q, scanned %d, %d rows, more %t", r.Local(), r.Scanned(), r.Len(), r.More())
		}
		s.runs[3000].WorkflowType = "xy"
		r.LoadMore()
		u.settle()
		if r.Scanned() != 2*scanMost || r.Len() != 1 {
			t.Fatalf("scanned %d, %d rows", r.Scanned(), r.Len())
		}
	})
}
