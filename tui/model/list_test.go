package model

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func ids[T any](c *Collection[T]) []string {
	var list []string
	for i := range c.Len() {
		item, _ := c.Row(i)
		list = append(list, c.ID(item))
	}
	return list
}

func TestCollection_joins_its_pages_sorts_and_filters(t *testing.T) {
	withLink(t, func(s *server) {
		for _, name := range []string{"b", "a", "e", "c", "d"} {
			s.schedules = append(s.schedules, &kagziv1.WorkflowSchedule{
				ScheduleId: name, WorkflowType: "Report-" + name, Tags: map[string]string{"team": name}})
		}
	}, func(t *testing.T, s *server, u *ui, l *Link) {
		c := NewSchedules(l)
		defer c.Close()
		c.Show()
		if c.Loaded() {
			t.Fatal("loaded before the link is ready")
		}
		u.settle()
		if diff := cmp.Diff([]string{"b", "a", "e", "c", "d"}, ids(c)); diff != "" || c.More() || c.AsOf().IsZero() {
			t.Fatal(diff, c.More())
		}
		c.SortBy(func(a, b *kagziv1.WorkflowSchedule) int {
			return strings.Compare(a.GetScheduleId(), b.GetScheduleId())
		})
		if i, ok := c.Find("c"); !ok || i != 2 {
			t.Fatalf("c is found at %d, %t", i, ok)
		}
		c.SetFilter("!REPORT-c")
		if diff := cmp.Diff([]string{"a", "b", "d", "e"}, ids(c)); diff != "" {
			t.Fatal(diff)
		}
		if _, ok := c.Find("c"); ok {
			t.Fatal("a row that is filtered out is found")
		}
		if _, ok := c.Get("c"); !ok {
			t.Fatal("an item that is filtered out cannot be got")
		}
		c.SetFilter("team=E")
		if diff := cmp.Diff([]string{"e"}, ids(c)); diff != "" {
			t.Fatal(diff)
		}
		c.SetFilter("")
		c.SortBy(nil)
		u.advance(time.Second)
		if diff := cmp.Diff([]string{"b", "a", "e", "c", "d"}, ids(c)); diff != "" {
			t.Fatal("the server's order did not come back", diff)
		}
	})
}

func TestCollection_is_read_at_most_twice_a_second_however_much_changes(t *testing.T) {
	withLink(t, nothing, func(t *testing.T, s *server, u *ui, l *Link) {
		c := NewSchedules(l)
		defer c.Close()
		c.Show()
		u.settle()
		before := s.called("ListWorkflowSchedules")
		for range 100 {
			s.tell(&kagziv1.WatchEvent{SchedulesChanged: true})
			u.advance(50 * time.Millisecond)
		}
		u.advance(time.Second)
		if n := s.called("ListWorkflowSchedules") - before; n < 9 || n > 11 {
			t.Fatalf("read %d times in 5 s, want about 10", n)
		}
		before = s.called("ListWorkflowSchedules")
		s.tell(&kagziv1.WatchEvent{WorkflowsChanged: true, WorkersChanged: true})
		u.advance(time.Second)
		if s.called("ListWorkflowSchedules") != before {
			t.Fatal("read because of something else")
		}
		c.Hide()
		s.tell(&kagziv1.WatchEvent{SchedulesChanged: true})
		u.advance(time.Second)
		if s.called("ListWorkflowSchedules") != before {
			t.Fatal("read while hidden")
		}
		c.Show()
		u.settle()
		if s.called("ListWorkflowSchedules") != before+1 {
			t.Fatal("not read when shown again")
		}
	})
}

func TestCollection_reads_again_what_changed_while_it_was_read(t *testing.T) {
	withLink(t, nothing, func(t *testing.T, s *server, u *ui, l *Link) {
		u.settle()
		gate := make(chan struct{})
		s.listGate = gate
		c := NewHeldRuns(l, "w")
		defer c.Close()
		c.Show()
		u.settle()
		run := aRun(1, running)
		run.WorkerId = new("w")
		s.tell(&kagziv1.WatchEvent{Workflows: []*kagziv1.Workflow{s.put(run)}})
		u.settle()
		close(gate)
		u.advance(runsEvery)
		if c.Len() != 1 || s.called("ListWorkflows") != 2 {
			t.Fatalf("%d rows after %d readings", c.Len(), s.called("ListWorkflows"))
		}
	})
}

func TestCollection_that_is_hidden_while_it_is_read_is_read_when_shown_again(t *testing.T) {
	withLink(t, nothing, func(t *testing.T, s *server, u *ui, l *Link) {
		u.settle()
		gate := make(chan struct{})
		s.listGate = gate
		c := NewHeldRuns(l, "w")
		defer c.Close()
		c.Show()
		u.settle()
		c.Hide()
		close(gate)
		u.settle()
		c.Show()
		u.advance(runsEvery)
		if !c.Loaded() {
			t.Fatal("it was never read")
		}
	})
}

func TestWorkers_are_read_with_each_sign_of_life(t *testing.T) {
	withLink(t, nothing, func(t *testing.T, s *server, u *ui, l *Link) {
		c := NewWorkers(l)
		defer c.Close()
		c.Show()
		u.settle()
		before := s.called("ListWorkers")
		s.live(u, 20*time.Second)
		if n := s.called("ListWorkers") - before; n != 4 {
			t.Fatalf("read %d times, want 4", n)
		}
	})
}

func TestCollection_keeps_its_rows_when_a_reading_fails_and_tries_again(t *testing.T) {
	withLink(t, func(s *server) {
		s.queues = []*kagziv1.QueueDepth{{TaskQueue: "q"}}
	}, func(t *testing.T, s *server, u *ui, l *Link) {
		c := NewQueues(l)
		defer c.Close()
		c.Show()
		u.settle()
		s.refuse = errDown
		s.tell(&kagziv1.WatchEvent{WorkflowsChanged: true})
		u.advance(2 * time.Second)
		if c.Len() != 1 || c.Stale() == nil || c.Err() != nil {
			t.Fatalf("%d rows, stale %v, error %v", c.Len(), c.Stale(), c.Err())
		}
		s.mu.Lock()
		s.refuse = nil
		s.mu.Unlock()
		s.tell(&kagziv1.WatchEvent{})
		u.advance(2 * time.Second)
		if c.Stale() != nil {
			t.Fatalf("still stale: %v", c.Stale())
		}
	})
}

func TestCollection_of_another_namespace_is_forgotten(t *testing.T) {
	withLink(t, func(s *server) {
		s.queues = []*kagziv1.QueueDepth{{TaskQueue: "q"}}
	}, func(t *testing.T, s *server, u *ui, l *Link) {
		c := NewQueues(l)
		defer c.Close()
		c.Show()
		u.settle()
		l.SetNamespace("other")
		if c.Len() != 0 || c.Loaded() {
			t.Fatal("rows of the old namespace are still there")
		}
		u.advance(time.Second)
		if c.Len() != 1 {
			t.Fatal("the new namespace was not read")
		}
	})
}

func TestHeldRuns_and_FinishedBy_ask_for_the_runs_of_a_worker(t *testing.T) {
	withLink(t, func(s *server) {
		for i, status := range []kagziv1.WorkflowStatus{running, completed, running, failed} {
			run := aRun(i+1, status)
			if i != 2 {
				run.WorkerId = new("w")
			}
			s.put(run)
		}
	}, func(t *testing.T, s *server, u *ui, l *Link) {
		held, ended := NewHeldRuns(l, "w"), NewFinishedBy(l, "w")
		defer held.Close()
		defer ended.Close()
		held.Show()
		ended.Show()
		u.settle()
		if diff := cmp.Diff([]string{runID(1)}, ids(held)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{runID(4), runID(2)}, ids(ended)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestEventLog_keeps_2000_and_notes_what_is_missing(t *testing.T) {
	withLink(t, nothing, func(t *testing.T, s *server, u *ui, l *Link) {
		u.settle()
		e := NewEventLog(l)
		defer e.Close()
		e.Show()
		u.settle()
		send := func(from, to int64) {
			for n := from; n <= to; n++ {
				s.eventLogs[len(s.eventLogs)-1].messages <- &kagziv1.ServerEvent{Sequence: n, At: timestamppb.Now()}
			}
			u.settle()
		}
		send(1, 2500)
		send(2504, 2505)
		if n := len(e.Events()); n != eventsMost || e.Missed() != 3 || e.Events()[n-1].GetSequence() != 2505 {
			t.Fatalf("%d events, %d missed", n, e.Missed())
		}
		s.eventLogs[0].end <- errDown
		u.advance(time.Second)
		if asked := s.logAsked[len(s.logAsked)-1]; asked.GetAfter() != 2505 {
			t.Fatalf("asked for what follows %d", asked.GetAfter())
		}
		send(2506, 2506)
		if e.Missed() != 3 {
			t.Fatalf("%d missed after coming back", e.Missed())
		}
		s.eventLogs[1].end <- errDown
		u.advance(time.Second)
		send(1, 2) // another server answers
		if len(e.Events()) != 2 || e.Missed() != 0 {
			t.Fatalf("%d events, %d missed of a server that started again", len(e.Events()), e.Missed())
		}
		l.Freeze(true)
		send(3, 4)
		if len(e.Events()) != 2 {
			t.Fatal("events came while frozen")
		}
		l.Freeze(false)
		if len(e.Events()) != 4 {
			t.Fatalf("%d events after freezing", len(e.Events()))
		}
	})
}

func TestEventLog_names_the_event_that_it_goes_on_from(t *testing.T) {
	withLink(t, nothing, func(t *testing.T, s *server, u *ui, l *Link) {
		u.settle()
		e := NewEventLog(l)
		defer e.Close()
		e.Show()
		u.settle()
		if asked := s.logAsked[0]; asked.GetAfter() != 0 || asked.AfterAt != nil {
			t.Fatalf("at first it asks with %v", asked)
		}
		noted := timestamppb.Now()
		s.eventLogs[0].messages <- &kagziv1.ServerEvent{Sequence: 7, At: noted}
		u.settle()
		s.eventLogs[0].end <- errDown
		u.advance(time.Second)
		if asked := s.logAsked[1]; asked.GetAfter() != 7 || !asked.GetAfterAt().AsTime().Equal(noted.AsTime()) {
			t.Fatalf("after it was lost it asks with %v", asked)
		}
		// the server restarted and reached the same sequence
		s.eventLogs[1].messages <- &kagziv1.ServerEvent{Sequence: 7, At: timestamppb.New(noted.AsTime().Add(time.Hour))}
		u.settle()
		if list := e.Events(); len(list) != 1 || list[0].GetAt().AsTime().Equal(noted.AsTime()) || e.Missed() != 0 {
			t.Fatalf("of a server that started again it has %v, %d missed", list, e.Missed())
		}
	})
}

func TestServer_is_asked_every_5_seconds_while_shown(t *testing.T) {
	withLink(t, nothing, func(t *testing.T, s *server, u *ui, l *Link) {
		u.settle()
		m := NewServer(l)
		defer m.Close()
		m.Show()
		s.live(u, 20*time.Second)
		if n := s.called("GetServerInfo"); n < 4 || n > 5 {
			t.Fatalf("asked %d times in 20 s", n)
		}
		if rate := m.Rate("m"); rate != 10 || m.Info() == nil || m.Health() == nil || m.Err() != nil {
			t.Fatalf("rate %v, info %v", rate, m.Info())
		}
		m.Hide()
		n := s.called("GetServerInfo")
		s.live(u, 20*time.Second)
		if s.called("GetServerInfo") != n {
			t.Fatal("asked while hidden")
		}
	})
}
