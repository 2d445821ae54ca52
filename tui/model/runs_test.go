package model

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// opened returns a shown and loaded list of runs.
func opened(t *testing.T, u *ui, l *Link, filter string) *Runs {
	t.Helper()
	r, err := NewRuns(l, filter)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	r.Show()
	u.settle()
	return r
}

// withRuns runs a test with n completed runs and a list with a filter.
func withRuns(t *testing.T, n int, filter string, tell func(t *testing.T, s *server, u *ui, r *Runs)) {
	t.Helper()
	withLink(t, func(s *server) { s.fill(n, completed) }, func(t *testing.T, s *server, u *ui, l *Link) {
		u.settle()
		r, err := NewRuns(l, filter)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		r.Show()
		u.settle()
		r.View(0, 40)
		u.settle()
		tell(t, s, u, r)
	})
}

// first returns the numbers of the first rows.
func firstRows(r *Runs, n int) string {
	var ids []string
	for i := range min(n, r.Len()) {
		run, ok := r.Row(i)
		if !ok {
			ids = append(ids, "-")
			continue
		}
		ids = append(ids, strings.TrimLeft(run.GetRunId(), "0"))
	}
	return strings.Join(ids, " ")
}

func TestRuns_scroll_through_100000_without_holding_them(t *testing.T) {
	if testing.Short() {
		t.Skip("the others show the race detector, for which the short run is, the same goroutines with fewer runs")
	}
	const all = 100_000
	withRuns(t, all, "", func(t *testing.T, s *server, u *ui, r *Runs) {
		if n, about := r.Total(); n != all || about {
			t.Fatalf("total %d, about %t", n, about)
		}
		check := func(first int) {
			t.Helper()
			if len(r.window.pages) > pagesMost {
				t.Fatalf("%d pages are held", len(r.window.pages))
			}
			for i := first; i < first+40; i++ {
				run, ok := r.Row(i)
				if !ok || run.GetRunId() != runID(all-i) {
					t.Fatalf("row %d is %v, %t; want %s", i, run.GetRunId(), ok, runID(all-i))
				}
				if row, found := r.Find(run.GetRunId()); !found || row != i {
					t.Fatalf("row %d is found at %d, %t", i, row, found)
				}
			}
		}
		first := 0
		for ; first < all-40; first = min(first+170, all-40) {
			r.View(first, first+40)
			u.settle()
			check(first)
		}
		if r.First() == 0 {
			t.Fatal("no page was let go")
		}
		for ; first > 0; first = max(first-170, 0) {
			r.View(first, first+40)
			u.settle()
			check(first)
		}
		if r.First() != 0 {
			t.Fatalf("back at the top the first row is %d", r.First())
		}
	})
}

func TestRuns_jump_to_the_oldest_and_walk_back(t *testing.T) {
	withRuns(t, 1234, "", func(t *testing.T, s *server, u *ui, r *Runs) {
		r.End()
		u.settle()
		if run, ok := r.Row(1233); !ok || run.GetRunId() != runID(1) || r.Len() != 1234 || r.More() {
			t.Fatalf("the last row is %v, %t; %d rows", run.GetRunId(), ok, r.Len())
		}
		for first := 1194; first >= 0; first -= 30 {
			r.View(first, first+40)
			u.settle()
			if run, ok := r.Row(first); !ok || run.GetRunId() != runID(1234-first) {
				t.Fatalf("row %d is %v, %t", first, run.GetRunId(), ok)
			}
		}
		r.Head()
		u.settle()
		if got := firstRows(r, 2); got != "1234 1233" {
			t.Fatalf("rows %s at the head", got)
		}
	})
}

func TestRuns_walk_back_from_the_end_though_the_count_was_wrong(t *testing.T) {
	withRuns(t, 900, "", func(t *testing.T, s *server, u *ui, r *Runs) {
		r.End()
		u.settle()
		s.runs = s.runs[300:] // the newest 300 are gone, so that there are fewer before these than was counted
		for first := r.First(); r.First() > 0; first = r.First() {
			r.View(first, first+40)
			u.settle()
			if run, ok := r.Row(r.First()); !ok || run == nil {
				t.Fatalf("the first row, %d, is not loaded", r.First())
			}
			if r.window.top() {
				break
			}
		}
		if run, ok := r.Row(0); !ok || run.GetRunId() != runID(600) || r.Len() != 600 {
			t.Fatalf("row 0 is %v, %t, of %d", run.GetRunId(), ok, r.Len())
		}
	})
}

func TestRuns_change_in_place_and_leave_when_the_filter_no_longer_means_them(t *testing.T) {
	withRuns(t, 5, "status:completed", func(t *testing.T, s *server, u *ui, r *Runs) {
		changes := 0
		r.Changed = func() { changes++ }
		calls := s.called("ListWorkflows")
		noted := proto.CloneOf(s.runs[1])
		noted.Note = "half way"
		s.tell(&kagziv1.WatchEvent{Workflows: []*kagziv1.Workflow{
			noted, aRun(2, failed), aRun(3, completed), aRun(9, failed)}})
		u.settle()
		if got := firstRows(r, 9); got != "5 4 3 1" {
			t.Fatalf("rows %s", got)
		}
		if run, _ := r.Row(1); run.GetNote() != "half way" || !r.Fresh(runID(4)) {
			t.Fatalf("row 1 is %v, fresh %t", run, r.Fresh(runID(4)))
		}
		if r.Fresh(runID(3)) {
			t.Fatal("a run that was named but did not change stands out")
		}
		if n, _ := r.Total(); n != 4 {
			t.Fatalf("total %d, want 4", n)
		}
		if changes == 0 || s.called("ListWorkflows") != calls {
			t.Fatalf("%d changes, %d calls", changes, s.called("ListWorkflows")-calls)
		}
		changes = 0
		u.advance(1100 * time.Millisecond)
		if r.Fresh(runID(4)) || changes == 0 {
			t.Fatal("the row still stands out, or nobody had it drawn again")
		}
	})
}

func TestRuns_that_match_now_come_to_their_place(t *testing.T) {
	withRuns(t, 9, "status:failed", func(t *testing.T, s *server, u *ui, r *Runs) {
		s.tell(&kagziv1.WatchEvent{Workflows: []*kagziv1.Workflow{aRun(3, failed), aRun(7, failed)}})
		u.settle()
		s.tell(&kagziv1.WatchEvent{Workflows: []*kagziv1.Workflow{aRun(5, failed)}})
		u.settle()
		if got := firstRows(r, 9); got != "7 5 3" {
			t.Fatalf("rows %s", got)
		}
	})
}

func TestRuns_never_go_back_from_their_end(t *testing.T) {
	withRuns(t, 3, "", func(t *testing.T, s *server, u *ui, r *Runs) {
		s.tell(&kagziv1.WatchEvent{Workflows: []*kagziv1.Workflow{aRun(2, running)}}) // told before it ended, and late
		u.settle()
		if run, _ := r.Row(1); run.GetStatus() != completed {
			t.Fatalf("status %v", run.GetStatus())
		}
	})
}

func TestRuns_merge_new_ones_at_the_top_and_count_them_elsewhere(t *testing.T) {
	withRuns(t, 600, "", func(t *testing.T, s *server, u *ui, r *Runs) {
		s.put(aRun(601, pending))
		s.tell(&kagziv1.WatchEvent{WorkflowsChanged: true})
		u.advance(500 * time.Millisecond)
		if got := firstRows(r, 2); got != "601 600" || !r.Fresh(runID(601)) {
			t.Fatalf("rows %s, fresh %t", got, r.Fresh(runID(601)))
		}
		r.AtTop(false)
		r.View(5, 45)
		s.put(aRun(602, pending))
		s.put(aRun(603, pending))
		s.tell(&kagziv1.WatchEvent{WorkflowsChanged: true, Workflows: []*kagziv1.Workflow{aRun(603, pending)}})
		u.advance(2 * time.Second)
		if n, more := r.NewAbove(); n != 2 || more {
			t.Fatalf("%d new, more %t; want 2", n, more)
		}
		if got := firstRows(r, 2); got != "601 600" {
			t.Fatalf("rows %s: they moved under the cursor", got)
		}
		s.tell(&kagziv1.WatchEvent{Workflows: []*kagziv1.Workflow{s.put(aRun(602, running))}})
		u.advance(time.Second)
		if n, _ := r.NewAbove(); n != 2 || firstRows(r, 1) != "601" {
			t.Fatalf("%d new, row 0 is %s after one of them changed", n, firstRows(r, 1))
		}
		r.AtTop(true)
		u.settle()
		if got := firstRows(r, 3); got != "603 602 601" {
			t.Fatalf("rows %s at the top again", got)
		}
		if n, _ := r.NewAbove(); n != 0 {
			t.Fatalf("%d are still counted as new", n)
		}
	})
}

func TestRuns_that_came_by_the_hundred_are_read_anew_at_the_top(t *testing.T) {
	withRuns(t, 300, "", func(t *testing.T, s *server, u *ui, r *Runs) {
		r.AtTop(false)
		r.View(20, 60)
		for i := 301; i <= 1000; i++ {
			s.put(aRun(i, pending))
		}
		s.tell(&kagziv1.WatchEvent{WorkflowsChanged: true})
		u.advance(2 * time.Second)
		if n, more := r.NewAbove(); n != pageSize || !more {
			t.Fatalf("%d new, more %t; want at least %d", n, more, pageSize)
		}
		if got := firstRows(r, 1); got != "300" {
			t.Fatalf("row 0 is %s", got)
		}
		r.AtTop(true)
		u.settle()
		if got := firstRows(r, 1); got != "1000" {
			t.Fatalf("row 0 is %s at the top again", got)
		}
	})
}

func TestRuns_that_come_by_the_hundred_at_the_top_leave_no_gap(t *testing.T) {
	withRuns(t, 300, "", func(t *testing.T, s *server, u *ui, r *Runs) {
		for i := 301; i <= 1000; i++ {
			s.put(aRun(i, pending))
		}
		s.tell(&kagziv1.WatchEvent{WorkflowsChanged: true})
		u.advance(2 * time.Second)
		for i := range r.Len() {
			if run, _ := r.Row(i); run.GetRunId() != runID(1000-i) {
				t.Fatalf("row %d is %s", i, run.GetRunId())
			}
		}
	})
}

func TestRuns_drop_the_late_answer_of_another_filter(t *testing.T) {
	withRuns(t, 10, "", func(t *testing.T, s *server, u *ui, r *Runs) {
		late := make(chan struct{})
		s.listGate = late
		r.Refresh()
		u.settle()
		s.mu.Lock()
		s.listGate = nil
		s.mu.Unlock()
		if err := r.SetFilter("status:failed"); err != nil {
			t.Fatal(err)
		}
		u.settle()
		close(late)
		u.settle()
		if r.Len() != 0 || !r.Loaded() || r.Stale() != nil {
			t.Fatalf("%d rows, loaded %t, stale %v", r.Len(), r.Loaded(), r.Stale())
		}
	})
}

func TestRuns_believe_the_link_more_than_an_answer_that_was_under_way(t *testing.T) {
	withRuns(t, 10, "status:completed", func(t *testing.T, s *server, u *ui, r *Runs) {
		gate := make(chan struct{})
		s.listGate = gate
		r.Refresh()
		u.settle() // the answer is made, and on its way
		s.tell(&kagziv1.WatchEvent{Workflows: []*kagziv1.Workflow{
			aRun(5, pending), {Namespace: "default", RunId: runID(4), Status: completed, Note: "newer"}}})
		u.settle()
		s.mu.Lock()
		s.listGate = nil
		s.mu.Unlock()
		close(gate)
		u.settle()
		if r.Get(runID(4)).GetNote() != "newer" {
			t.Error("the answer covered what the link had told")
		}
		if r.Get(runID(5)).GetStatus() != completed { // the answer knows of its end, which is for good
			t.Error("a run went back from its end")
		}
	})
}

func TestRuns_cost_at_most_four_lists_a_second_in_a_storm(t *testing.T) {
	withRuns(t, 10_000, "", func(t *testing.T, s *server, u *ui, r *Runs) {
		r.AtTop(false)
		r.View(190, 230) // two pages are on the screen
		u.settle()
		calls := s.called("ListWorkflows")
		named := make([]*kagziv1.Workflow, 200)
		for tick := range 50 { // 5 s, ten events a second, a hundred runs each
			for i := range named {
				named[i] = aRun(9700+i, running)
				named[i].Note = fmt.Sprint(tick)
			}
			s.tell(&kagziv1.WatchEvent{Workflows: named[:100+tick], WorkflowsChanged: true})
			u.advance(100 * time.Millisecond)
		}
		if n := s.called("ListWorkflows") - calls; n < 10 || n > 21 {
			t.Fatalf("%d lists were asked for in 5 s, want about 20", n)
		}
		if len(r.fresh.at) > freshMost {
			t.Fatalf("%d changes are remembered", len(r.fresh.at))
		}
	})
}

func TestRuns_are_quiet_when_nothing_changes(t *testing.T) {
	withRuns(t, 1000, "", func(t *testing.T, s *server, u *ui, r *Runs) {
		calls := s.called("ListWorkflows")
		s.live(u, time.Minute)
		if n := s.called("ListWorkflows") - calls; n != 0 {
			t.Fatalf("%d lists were asked for in a minute", n)
		}
	})
}

func TestRuns_come_back_though_the_connection_broke_while_a_page_was_loading(t *testing.T) {
	withRuns(t, 1000, "", func(t *testing.T, s *server, u *ui, r *Runs) {
		s.refuse = errDown
		r.View(150, 190)
		s.watches[0].end <- errDown
		u.settle()
		if r.Stale() == nil || r.Err() != nil || r.Len() != 200 {
			t.Fatalf("stale %v, error %v, %d rows", r.Stale(), r.Err(), r.Len())
		}
		s.mu.Lock()
		s.refuse = nil
		s.mu.Unlock()
		s.put(aRun(1001, pending))
		u.advance(5 * time.Second)
		if r.Stale() != nil || r.Len() != 401 {
			t.Fatalf("stale %v, %d rows; want 401", r.Stale(), r.Len())
		}
	})
}

func TestRuns_do_not_press_a_server_that_fails(t *testing.T) {
	withRuns(t, 10, "", func(t *testing.T, s *server, u *ui, r *Runs) {
		calls := s.called("ListWorkflows")
		s.refuse = errDown
		s.tell(&kagziv1.WatchEvent{WorkflowsChanged: true})
		for range 20 {
			u.advance(100 * time.Millisecond)
			r.View(0, 40)
		}
		if n := s.called("ListWorkflows") - calls; n != 1 || r.Stale() == nil {
			t.Fatalf("%d lists were asked for in 2 s, stale %v", n, r.Stale())
		}
		s.mu.Lock()
		s.refuse = nil
		s.mu.Unlock()
		s.put(aRun(11, pending))
		s.tell(&kagziv1.WatchEvent{})
		u.advance(time.Second)
		if r.Stale() != nil || firstRows(r, 1) != "11" {
			t.Fatalf("stale %v, row 0 is %s when it works again", r.Stale(), firstRows(r, 1))
		}
	})
}

func TestRuns_count_again_when_the_number_may_be_another(t *testing.T) {
	withRuns(t, 600, "", func(t *testing.T, s *server, u *ui, r *Runs) {
		s.put(aRun(601, pending))
		s.tell(&kagziv1.WatchEvent{WorkflowsChanged: true})
		u.advance(time.Second)
		if n, about := r.Total(); n != 600 || !about {
			t.Fatalf("total %d, about %t; want about 600", n, about)
		}
		s.live(u, 20*time.Second)
		if n, about := r.Total(); n != 601 || about {
			t.Fatalf("total %d, about %t; want 601", n, about)
		}
	})
}

func TestRuns_wait_for_a_server_that_is_not_there(t *testing.T) {
	withLink(t, func(s *server) {
		s.watchErr, s.refuse = errDown, errDown
		s.fill(3, completed)
	}, func(t *testing.T, s *server, u *ui, l *Link) {
		r := opened(t, u, l, "")
		if r.Err() == nil || r.Loaded() || s.called("ListWorkflows") != 0 {
			t.Fatalf("error %v, loaded %t, %d calls", r.Err(), r.Loaded(), s.called("ListWorkflows"))
		}
		s.mu.Lock()
		s.watchErr, s.refuse = nil, nil
		s.mu.Unlock()
		u.advance(5 * time.Second)
		if r.Err() != nil || r.Len() != 3 {
			t.Fatalf("error %v, %d rows", r.Err(), r.Len())
		}
	})
}

func TestRuns_refuse_a_filter_and_keep_the_old_one(t *testing.T) {
	withRuns(t, 3, "status:completed", func(t *testing.T, s *server, u *ui, r *Runs) {
		if err := r.SetFilter("status:nonsense"); err == nil || r.Filter() != "status:completed" || r.Len() != 3 {
			t.Fatalf("error %v, filter %q, %d rows", err, r.Filter(), r.Len())
		}
	})
}

func TestRuns_that_are_hidden_ask_nothing_and_catch_up_when_shown(t *testing.T) {
	withRuns(t, 3, "", func(t *testing.T, s *server, u *ui, r *Runs) {
		r.Hide()
		calls := s.called("ListWorkflows")
		s.put(aRun(4, pending))
		s.tell(&kagziv1.WatchEvent{WorkflowsChanged: true})
		u.advance(5 * time.Second)
		if s.called("ListWorkflows") != calls {
			t.Fatal("a hidden list was read")
		}
		r.Show()
		u.advance(time.Second)
		if got := firstRows(r, 4); got != "4 3 2 1" {
			t.Fatalf("rows %s", got)
		}
	})
}
