package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestAChangeAfterASilenceIsToldAtOnceAndLaterOnesTogether(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Service, store *shelf) {
		sc := watching(t, s, &kagziv1.WatchRequest{})
		pass(time.Second)
		began := time.Now()
		notifyRun(s, 1)
		synctest.Wait()
		first := sc.taken()
		if len(first) != 1 || !first[0].at.Equal(began) || len(first[0].event.Workflows) != 1 ||
			first[0].event.Workflows[0].RunId != servertest.NthID(1).String() {
			t.Fatalf("at once came %v, want the run that was notified", first)
		}
		for range 50 { // for 500 ms
			notifyRun(s, 2)
			notifyRun(s, 3)
			s.Notify(engine.Notification{Kind: engine.NotifyEnd, ID: servertest.NthID(2)})
			pass(10 * time.Millisecond)
		}
		pass(100 * time.Millisecond)
		later := sc.taken()
		if len(later) != 5 && len(later) != 6 {
			t.Fatalf("%d events in half a second of changes, want one in 100 ms", len(later))
		}
		for i, one := range later {
			if len(one.event.Workflows) != 2 || one.event.WorkflowsChanged {
				t.Errorf("event %d is %v, want the two runs", i, one.event)
			}
			if i > 0 && one.at.Sub(later[i-1].at) < 100*time.Millisecond {
				t.Errorf("event %d comes %s after the one before", i, one.at.Sub(later[i-1].at))
			}
		}
		if reads := store.asked(); len(reads) != len(later)+1 {
			t.Errorf("%d reads for %d events", len(reads), len(later)+1)
		}
	})
}

func TestAWatcherGetsAChangeWithinItsInterval(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Service, _ *shelf) {
		watching(t, s, &kagziv1.WatchRequest{Interval: durationpb.New(10 * time.Second)})
		notifyRun(s, 1) // from now on the reader is at rest, for as long as its only watcher wants
		pass(time.Millisecond)
		sc := watching(t, s, &kagziv1.WatchRequest{Interval: durationpb.New(70 * time.Millisecond)})
		for i := range 100 {
			pass(time.Duration(i) * time.Millisecond)
			sc.taken()
			began := time.Now()
			notifyRun(s, 1)
			pass(70 * time.Millisecond)
			if told := sc.taken(); len(told) == 0 || len(told[len(told)-1].event.Workflows) != 1 {
				t.Fatalf("70 ms after notification %d came %v", i, told)
			} else if late := told[0].at.Sub(began); late > 70*time.Millisecond {
				t.Fatalf("notification %d was told after %s", i, late)
			}
		}
	})
}

func TestAWatcherGetsNoMoreThanOneEventPerInterval(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Service, _ *shelf) {
		watching(t, s, &kagziv1.WatchRequest{Interval: durationpb.New(50 * time.Millisecond)})
		sc := watching(t, s, &kagziv1.WatchRequest{Interval: durationpb.New(time.Second)})
		for range 500 { // for 5 s
			notifyRun(s, 1)
			pass(10 * time.Millisecond)
		}
		told := sc.taken()
		for i := 1; i < len(told); i++ {
			if gap := told[i].at.Sub(told[i-1].at); gap < time.Second {
				t.Errorf("event %d comes %s after the one before", i, gap)
			}
		}
		if len(told) != 5 && len(told) != 6 {
			t.Errorf("%d events in 5 s, want one a second", len(told))
		}
	})
}

func TestAWatcherOfAnIdleNamespaceGetsOnlyTheTime(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Service, store *shelf) {
		sc := watching(t, s, &kagziv1.WatchRequest{})
		began := time.Now()
		pass(time.Minute)
		events := sc.taken()
		if len(events) != 12 {
			t.Errorf("%d events in a minute of silence, want one in 5 s", len(events))
		}
		for i, one := range events {
			if !changesNothing(one.event) || one.at.Sub(began) != time.Duration(i+1)*5*time.Second {
				t.Errorf("after %s came %v", one.at.Sub(began), one.event)
			}
		}
		if reads := store.asked(); len(reads) != 0 {
			t.Errorf("asked %v of the store, want nothing", reads)
		}
	})
}

func TestWatchersOfANamespaceShareOneReading(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Service, store *shelf) {
		var screens []*screen
		for range 20 {
			screens = append(screens, watching(t, s, &kagziv1.WatchRequest{}))
		}
		other := watching(t, s, &kagziv1.WatchRequest{Namespace: "team"})
		store.set(func() { store.elsewhere[servertest.NthID(2)] = "team" })
		pass(time.Second)
		notifyRun(s, 1)
		synctest.Wait()
		notifyRun(s, 2)
		pass(time.Second)
		for i, sc := range screens {
			if told := sc.taken(); len(told) != 1 || told[0].event.Workflows[0].RunId != servertest.NthID(1).String() {
				t.Errorf("screen %d was told %v, want the run of its namespace", i, told)
			}
		}
		if told := other.taken(); len(told) != 1 || told[0].event.Workflows[0].RunId != servertest.NthID(2).String() {
			t.Errorf("the other namespace was told %v", told)
		}
		count := map[string]int{}
		for _, r := range store.asked() {
			count[r.namespace]++
		}
		if count["default"] != 2 || count["team"] != 2 {
			t.Errorf("the store was asked %v, want once for each notification and namespace", count)
		}
	})
}

func TestAReadingTakesAtMostATenthOfTheTime(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Service, store *shelf) {
		store.set(func() { store.slow = 50 * time.Millisecond })
		watching(t, s, &kagziv1.WatchRequest{})
		for range 500 { // for 5 s
			notifyRun(s, 1)
			pass(10 * time.Millisecond)
		}
		if reads := store.asked(); len(reads) < 9 || len(reads) > 11 {
			t.Errorf("%d reads of 50 ms in 5 s, want one in 500 ms", len(reads))
		}
	})
}

func TestEachNotificationReachesTheWatchersItConcerns(t *testing.T) {
	for _, c := range []struct {
		notification engine.Notification
		want         *kagziv1.WatchEvent
	}{
		{engine.Notification{Kind: engine.NotifyQueue, Namespace: "default", Name: "q"},
			&kagziv1.WatchEvent{WorkflowsChanged: true}},
		{engine.Notification{Kind: engine.NotifyQueue, Namespace: "other", Name: "q"}, nil},
		{engine.Notification{Kind: engine.NotifyWorker, Name: "w"}, &kagziv1.WatchEvent{WorkersChanged: true}},
		{engine.Notification{Kind: engine.NotifySchedule, Namespace: "default", Name: "s"},
			&kagziv1.WatchEvent{SchedulesChanged: true}},
		{engine.Notification{Kind: engine.NotifySchedule, Namespace: "other", Name: "s"}, nil},
		{engine.Notification{Kind: engine.NotifyNamespace, Name: "other"},
			&kagziv1.WatchEvent{NamespacesChanged: true}},
		{engine.Notification{Kind: engine.NotifyQueue, Namespace: "new", Name: "q"},
			&kagziv1.WatchEvent{NamespacesChanged: true}},
		{engine.Notification{Kind: engine.NotifySlot, Namespace: "default", Name: "q"}, nil},
		{engine.Notification{Kind: engine.NotifyTimer}, nil},
		{engine.Notification{Kind: engine.NotifyAll},
			&kagziv1.WatchEvent{WorkflowsChanged: true, WorkersChanged: true, SchedulesChanged: true,
				NamespacesChanged: true}},
	} {
		t.Run(fmt.Sprint(c.notification), func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *Service, store *shelf) {
				sc := watching(t, s, &kagziv1.WatchRequest{})
				s.Notify(engine.Notification{Kind: engine.NotifyQueue, Namespace: "other"})
				s.Notify(engine.Notification{Kind: engine.NotifyQueue, Namespace: "default"})
				pass(time.Second) // both namespaces are known by now
				sc.taken()
				s.Notify(c.notification)
				synctest.Wait()
				told := sc.taken()
				if c.want == nil {
					if len(told) != 0 {
						t.Errorf("told %v, want nothing", told)
					}
					return
				}
				if len(told) != 1 {
					t.Fatalf("told %v, want one event", told)
				}
				c.want.At = told[0].event.At
				if !proto.Equal(told[0].event, c.want) {
					t.Errorf("told %v, want %v", told[0].event, c.want)
				}
				if reads := store.asked(); len(reads) != 0 {
					t.Errorf("asked %v of the store", reads)
				}
			})
		})
	}
}

func TestMoreRunsThanAnEventHoldsAreToldAsAChangeOfTheLists(t *testing.T) {
	for n, named := range map[int]int{maxNamed: maxNamed, maxNamed + 1: 0} {
		inBubble(t, func(t *testing.T, s *Service, store *shelf) {
			sc := watching(t, s, &kagziv1.WatchRequest{})
			s.Notify(engine.Notification{Kind: engine.NotifyWorker})
			synctest.Wait()
			sc.taken()
			for i := range n {
				notifyRun(s, i+1)
			}
			pass(time.Second)
			told := sc.taken()
			if len(told) != 1 || len(told[0].event.Workflows) != named ||
				told[0].event.WorkflowsChanged != (named == 0) {
				t.Errorf("%d runs are told as %v", n, told)
			}
			if reads := store.asked(); len(reads) > 1 || named == 0 && len(reads) > 0 {
				t.Errorf("%d runs are asked for as %v", n, reads)
			}
		})
	}
}

func TestASlowWatcherGetsEachRunOnceAsItStands(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Service, store *shelf) {
		sc := watching(t, s, &kagziv1.WatchRequest{})
		quick := watching(t, s, &kagziv1.WatchRequest{})
		blocked := make(chan struct{})
		sc.mu.Lock()
		sc.blocked = blocked
		sc.mu.Unlock()
		s.Notify(engine.Notification{Kind: engine.NotifyWorker})
		synctest.Wait()
		sc.taken() // it is being sent, and nothing more gets through
		for i := range 30 {
			store.set(func() { store.note = fmt.Sprint("round ", i) })
			notifyRun(s, 1)
			notifyRun(s, i+2)
			pass(200 * time.Millisecond)
		}
		if told := quick.taken(); len(told) < 30 {
			t.Errorf("the quick one was told %d times, want 30", len(told))
		}
		sc.mu.Lock()
		sc.blocked = nil
		sc.mu.Unlock()
		close(blocked)
		pass(time.Second)
		told := sc.taken()
		if len(told) != 1 || len(told[0].event.Workflows) != 31 || told[0].event.WorkflowsChanged {
			t.Fatalf("the slow one was told %v, want 31 runs at once", told)
		}
		for _, w := range told[0].event.Workflows {
			if w.RunId == servertest.NthID(1).String() && w.GetNote() != "round 29" {
				t.Errorf("the run that changed in each round has the note %q", w.GetNote())
			}
		}
	})
}

func TestWhatAWatcherHasNotTakenStaysBounded(t *testing.T) {
	w := &watcher{wake: make(chan struct{}, 1)}
	for i := range 10 * maxNamed {
		more := batch{}
		more.add(servertest.NthID(i), changedRun{&kagziv1.Workflow{}, 10})
		w.add(&more)
		if len(w.pending.runs) > maxNamed {
			t.Fatalf("%d runs are kept, want at most %d", len(w.pending.runs), maxNamed)
		}
	}
	if e := w.take(); !e.workflows || len(e.runs) != 0 {
		t.Errorf("it is told of %d runs, lists changed %v", len(e.runs), e.workflows)
	}
	large := batch{}
	for i := range 5 {
		large.add(servertest.NthID(i), changedRun{&kagziv1.Workflow{}, maxNamedBytes / 4})
	}
	if len(large.runs) != 0 || !large.workflows {
		t.Errorf("%d runs of %d bytes are named in one event", len(large.runs), maxNamedBytes/4)
	}
	again := batch{}
	for range 10 {
		again.add(servertest.NthID(1), changedRun{&kagziv1.Workflow{}, maxNamedBytes / 4})
	}
	if len(again.runs) != 1 || again.size != maxNamedBytes/4 {
		t.Errorf("a run that changed ten times takes %d bytes", again.size)
	}
}

func TestWatchersReadWhatTheServerCouldNot(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Service, store *shelf) {
		store.set(func() { store.broken = engine.ErrUnavailable })
		sc := watching(t, s, &kagziv1.WatchRequest{})
		notifyRun(s, 1)
		synctest.Wait()
		if told := sc.taken(); len(told) != 1 || !told[0].event.WorkflowsChanged {
			t.Errorf("told %v, want that lists have changed", told)
		}
	})
}

func TestAPanicInAReadingDoesNotEndTheServer(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Service, _ *shelf) {
		var log strings.Builder
		s.hub.store, s.hub.log = servertest.StubStore{}, slog.New(slog.NewTextHandler(&log, nil)) // it panics
		sc := watching(t, s, &kagziv1.WatchRequest{})
		notifyRun(s, 1)
		synctest.Wait()
		if told := sc.taken(); len(told) != 1 || !told[0].event.WorkflowsChanged {
			t.Errorf("told %v, want that lists have changed", told)
		}
		if !strings.Contains(log.String(), "could not be read") {
			t.Errorf("logged %q", log.String())
		}
	})
}

func TestNothingIsLeftAfterTheLastWatcher(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Service, store *shelf) {
		a, b := watching(t, s, &kagziv1.WatchRequest{}), watching(t, s, &kagziv1.WatchRequest{})
		a.stop()
		if err := <-a.done; !errors.Is(err, context.Canceled) {
			t.Errorf("a watcher that left ends with %v", err)
		}
		notifyRun(s, 1)
		synctest.Wait()
		if told := b.taken(); len(told) != 1 {
			t.Errorf("the one that stayed was told %v", told)
		}
		b.stop()
		<-b.done
		if len(s.hub.broadcasters) != 0 || s.hub.watched.Load() != 0 {
			t.Errorf("%d feeds are left", len(s.hub.broadcasters))
		}
		before := len(store.asked())
		s.hub.mu.Lock() // for which a notification that nobody hears does not wait
		notifyRun(s, 2)
		s.hub.mu.Unlock()
		pass(time.Second)
		if n := len(store.asked()) - before; n != 0 {
			t.Errorf("%d reads though nobody watches", n)
		}
	})
}

func TestAStoppingServerEndsItsWatchers(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Service, store *shelf) {
		sc := watching(t, s, &kagziv1.WatchRequest{})
		store.stop()
		if code, _ := s.errors.Detail(<-sc.done); code != codes.Unavailable {
			t.Errorf("it ends with %s, want UNAVAILABLE", code)
		}
	})
}

func TestAnIntervalOutOfBoundsIsRefused(t *testing.T) {
	for interval, field := range map[time.Duration]string{
		49 * time.Millisecond: "interval", -time.Second: "interval", 10*time.Second + 1: "interval",
		50 * time.Millisecond: "", 10 * time.Second: "",
	} {
		_, err := watchIntervalOf(&kagziv1.WatchRequest{Interval: durationpb.New(interval)})
		if got := servertest.FieldOf(err); got != field {
			t.Errorf("an interval of %s is refused for %q (%v), want %q", interval, got, err, field)
		}
	}
	if interval, err := watchIntervalOf(&kagziv1.WatchRequest{}); interval != 100*time.Millisecond || err != nil {
		t.Errorf("no interval means %s, %v", interval, err)
	}
}

func BenchmarkNotifyWhileNobodyWatches(b *testing.B) {
	s, _ := newTestWatch(servertest.StubStore{})
	r := engine.Notification{Kind: engine.NotifyRun, ID: servertest.NthID(1)}
	b.ReportAllocs()
	for b.Loop() {
		s.hub.notify(r)
	}
}
