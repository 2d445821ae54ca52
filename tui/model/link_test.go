package model

import (
	"io"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// listen collects the changes of a link.
func listen(l *Link) *[]Change {
	var changes []Change
	l.Subscribe(func(c Change) { changes = append(changes, c) })
	return &changes
}

func backs(changes []Change) int {
	n := 0
	for _, c := range changes {
		if c.Back {
			n++
		}
	}
	return n
}

func nothing(*server) {}

func TestLink_is_live_with_the_first_event_and_knows_the_servers_clock(t *testing.T) {
	withLink(t, func(s *server) { s.ahead = time.Hour }, func(t *testing.T, s *server, u *ui, l *Link) {
		changes := listen(l)
		if l.Ready() || l.State().Phase != Connecting {
			t.Fatalf("before the first event: %+v", l.State())
		}
		u.settle()
		if l.State().Phase != Live || backs(*changes) != 1 || !(*changes)[0].Beat {
			t.Fatalf("after the first event: %+v, told %+v", l.State(), *changes)
		}
		if off := time.Until(l.Now()) - time.Hour; off < 0 || off > time.Millisecond {
			t.Fatalf("the server's clock is off by %s", off)
		}
		if l.RoundTrip() == 0 || l.AsOf().IsZero() || l.Health() == nil {
			t.Fatalf("round trip %s, as of %s, health %v", l.RoundTrip(), l.AsOf(), l.Health())
		}
		s.tell(&kagziv1.WatchEvent{WorkersChanged: true, Workflows: []*kagziv1.Workflow{aRun(1, running)}})
		u.settle()
		if last := (*changes)[len(*changes)-1]; last.Back || !last.WorkersChanged || last.RunsChanged ||
			len(last.Runs) != 1 {
			t.Fatalf("told %+v", last)
		}
	})
}

func TestLink_connects_again_with_growing_pauses_and_then_has_everything_read_again(t *testing.T) {
	withLink(t, nothing, func(t *testing.T, s *server, u *ui, l *Link) {
		u.settle()
		changes := listen(l)
		s.watchErr = errDown
		s.watches[0].end <- errDown
		u.settle()
		var pauses []time.Duration
		for range 8 {
			state := l.State()
			if !state.Down() || state.Err == nil || state.Attempt != len(pauses)+1 {
				t.Fatalf("state %+v after %d tries", state, len(pauses))
			}
			pauses = append(pauses, time.Until(state.NextTry))
			u.advance(time.Until(state.NextTry)) // to the instant: what is left of it would shorten the next pause
		}
		for i, pause := range pauses {
			want := min(firstPause<<i, longestPause)
			if pause < want*8/10 || pause > want*12/10 {
				t.Errorf("pause %d is %s, want about %s", i+1, pause, want)
			}
		}
		if len(*changes) != 0 {
			t.Fatalf("told %+v while nothing was known", *changes)
		}
		s.watchErr = nil
		l.Retry()
		u.settle()
		if l.State().Phase != Live || l.State().Attempt != 0 || backs(*changes) != 1 {
			t.Fatalf("after Retry: %+v, told %+v", l.State(), *changes)
		}
	})
}

func TestLink_counts_a_server_that_is_silent_as_lost(t *testing.T) {
	withLink(t, nothing, func(t *testing.T, s *server, u *ui, l *Link) {
		u.settle()
		for range 4 { // a heartbeat each 5 s keeps it
			u.advance(5 * time.Second)
			s.tell(&kagziv1.WatchEvent{})
		}
		u.settle()
		if l.State().Phase != Live {
			t.Fatalf("state %+v although it said something", l.State())
		}
		u.advance(11 * time.Second)
		if l.State().Phase != Live {
			t.Fatalf("lost too early: %+v", l.State())
		}
		u.advance(1001 * time.Millisecond)
		if l.State().Phase != Reconnecting {
			t.Fatalf("state %+v after 12 s of silence", l.State())
		}
		if s.watches[0].ctx.Err() == nil {
			t.Fatal("the silent stream is still open")
		}
	})
}

func TestLink_polls_a_server_that_cannot_tell_what_changes(t *testing.T) {
	withLink(t, func(s *server) {
		s.watchErr = status.Error(codes.Unimplemented, "unknown method")
	}, func(t *testing.T, s *server, u *ui, l *Link) {
		changes := listen(l)
		u.settle()
		if l.State().Phase != Polling || l.State().Down() || !l.Ready() || backs(*changes) != 1 {
			t.Fatalf("state %+v, told %+v", l.State(), *changes)
		}
		before := len(*changes)
		u.advance(20 * time.Second)
		if n := len(*changes) - before; n < 8 || n > 13 {
			t.Fatalf("polled %d times in 20 s, want about 10", n)
		}
		if c := (*changes)[len(*changes)-1]; !c.RunsChanged || !c.WorkersChanged || !c.SchedulesChanged ||
			!c.Beat || c.Back {
			t.Fatalf("told %+v", c)
		}
		s.mu.Lock()
		s.refuse, s.watchErr = errDown, errDown
		s.mu.Unlock()
		u.advance(3 * time.Second)
		if l.State().Phase != Reconnecting {
			t.Fatalf("state %+v after the server went away", l.State())
		}
	})
}

func TestLink_does_not_press_a_server_that_refuses_it(t *testing.T) {
	for _, code := range []codes.Code{codes.Unauthenticated, codes.PermissionDenied} {
		withLink(t, func(s *server) {
			s.watchErr = status.Error(code, "no")
		}, func(t *testing.T, s *server, u *ui, l *Link) {
			changes := listen(l)
			u.settle()
			if l.State().Phase != Refused || !l.State().Down() || backs(*changes) != 1 {
				t.Fatalf("state %+v, told %+v", l.State(), *changes)
			}
			u.advance(40 * time.Second)
			if n := s.called("Watch"); n != 1 {
				t.Fatalf("tried %d times in 40 s", n)
			}
			u.advance(40 * time.Second)
			if n := s.called("Watch"); n != 2 {
				t.Fatalf("tried %d times in 80 s, want 2", n)
			}
		})
	}
}

func TestLink_that_is_frozen_tells_nothing_until_it_may_go_on(t *testing.T) {
	withLink(t, nothing, func(t *testing.T, s *server, u *ui, l *Link) {
		u.settle()
		changes := listen(l)
		l.Freeze(true)
		s.tell(&kagziv1.WatchEvent{WorkflowsChanged: true})
		u.advance(4 * time.Second)
		if len(*changes) != 0 {
			t.Fatalf("told %+v while frozen", *changes)
		}
		l.Freeze(false)
		if backs(*changes) != 1 {
			t.Fatalf("told %+v, want Back", *changes)
		}
	})
}

func TestLink_drops_what_the_namespace_before_still_tells(t *testing.T) {
	withLink(t, nothing, func(t *testing.T, s *server, u *ui, l *Link) {
		u.settle()
		s.tell(&kagziv1.WatchEvent{SchedulesChanged: true}) // is on its way when another namespace is chosen
		changes := listen(l)
		l.SetNamespace("other")
		u.settle()
		if len(*changes) != 2 || !(*changes)[0].Moved || !(*changes)[1].Back || (*changes)[1].SchedulesChanged {
			t.Fatalf("told %+v, want Moved and Back", *changes)
		}
		if l.Namespace() != "other" || s.watches[0].ctx.Err() == nil {
			t.Fatal("the stream of the old namespace is still open")
		}
	})
}

func TestLink_takes_the_end_of_the_stream_for_a_server_that_stops(t *testing.T) {
	withLink(t, nothing, func(t *testing.T, s *server, u *ui, l *Link) {
		u.settle()
		s.watches[0].end <- io.EOF
		u.settle()
		if l.State().Phase != Reconnecting {
			t.Fatalf("state %+v", l.State())
		}
		u.advance(time.Second)
		if l.State().Phase != Live {
			t.Fatalf("state %+v a second later", l.State())
		}
	})
}

func TestLink_reads_no_further_than_the_screen_takes(t *testing.T) {
	withLink(t, nothing, func(t *testing.T, s *server, u *ui, l *Link) {
		u.settle()
		for range 1000 {
			s.tell(&kagziv1.WatchEvent{WorkflowsChanged: true})
		}
		<-time.After(10 * time.Second) // the UI goroutine is held up, as by an editor
		if n := s.watches[0].read.Load(); n > 1+backlogMost {
			t.Fatalf("%d events were read ahead", n)
		}
		u.settle()
		if n := s.watches[0].read.Load(); n != 1001 || l.State().Phase != Live {
			t.Fatalf("%d events came in the end, state %+v", n, l.State())
		}
	})
}

func TestLink_asks_anew_what_time_it_is_after_coming_back(t *testing.T) {
	withLink(t, func(s *server) { s.ahead = time.Hour }, func(t *testing.T, s *server, u *ui, l *Link) {
		u.settle()
		s.ahead = -time.Hour // another server
		s.watches[0].end <- errDown
		u.advance(time.Second)
		if off := l.Skew() + time.Hour; off < 0 || off > time.Millisecond {
			t.Fatalf("the server's clock is off by %s", off)
		}
	})
}

func TestLink_forgets_who_unsubscribes(t *testing.T) {
	withLink(t, nothing, func(t *testing.T, s *server, u *ui, l *Link) {
		n := 0
		var cancel func()
		cancel = l.Subscribe(func(Change) { n++; cancel() })
		others := listen(l)
		u.settle()
		s.tell(&kagziv1.WatchEvent{})
		u.settle()
		if n != 1 || len(*others) != 2 {
			t.Fatalf("told %d times, another %d times; want 1 and 2", n, len(*others))
		}
	})
}

func TestLink_takes_what_waits_in_few_frames(t *testing.T) {
	withLink(t, nothing, func(t *testing.T, s *server, u *ui, l *Link) {
		u.settle()
		for range 500 {
			s.tell(&kagziv1.WatchEvent{WorkflowsChanged: true})
		}
		u.updates = 0
		u.settle()
		if n := s.watches[0].read.Load(); n != 501 || u.updates > 2*500/backlogMost {
			t.Fatalf("%d events were taken in %d frames", n, u.updates)
		}
	})
}
