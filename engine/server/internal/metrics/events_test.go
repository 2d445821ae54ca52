package metrics

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/slogtest"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestTheLogBecomesEventsWithTheirAttributesInOrder(t *testing.T) {
	var e Events
	log := slog.New(e.Handler(slog.DiscardHandler))
	id := engine.NewID(servertest.Began)
	log.Debug("quiet")
	log.Info("started", "run", id, "n", 3, "took", 1500*time.Millisecond, "at", servertest.Began, "never", time.Time{})
	log.With("a", 1).WithGroup("g").With("b", 2).WithGroup("").Warn(
		"grouped", "c", 3, slog.Group("h", "d", 4), slog.Group("", "e", 5), slog.Attr{})
	log.Error("bad", "error", errors.New("line one\nline two"))
	log.Log(t.Context(), slog.LevelWarn+2, "between")
	want := []string{
		"INFO started run=" + id.String() + " n=3 took=1.5s at=" +
			servertest.Began.UTC().Format(time.RFC3339Nano) + " never=",
		"WARN grouped a=1 g.b=2 g.c=3 g.h.d=4 g.e=5",
		"ERROR bad error=line one\nline two",
		"WARN between",
	}
	events := e.Past(0, keptEvents)
	if diff := cmp.Diff(want, servertest.EventTexts(events)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	for i, event := range events {
		if event.Sequence != int64(i+1) || time.Since(event.At.AsTime()) > time.Minute {
			t.Errorf("event %d has the sequence %d and the time %s", i, event.Sequence, event.At.AsTime())
		}
	}
}

func TestEventsOfOneLogAreNotMixedUpWithThoseOfAnother(t *testing.T) {
	var e Events
	handler := e.Handler(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelDebug}))
	base := slog.New(handler).With("x", 1, "y", 2, "z", 3)
	b, c := base.With("b", 4), base.With("c", 5)
	b.Info("of b", "own", 6)
	c.Info("of c")
	b.Info("again")
	b.Debug("more than a log of facts")
	if err := handler.Handle(t.Context(), slog.NewRecord(time.Time{}, slog.LevelInfo, "of no time", 0)); err != nil {
		t.Error(err)
	}
	want := []string{"INFO of b x=1 y=2 z=3 b=4 own=6", "INFO of c x=1 y=2 z=3 c=5", "INFO again x=1 y=2 z=3 b=4",
		"INFO of no time"}
	events := e.Past(0, keptEvents)
	if diff := cmp.Diff(want, servertest.EventTexts(events)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if at := events[len(events)-1].At.AsTime(); time.Since(at) > time.Minute {
		t.Errorf("what has no time of its own is told as of %s", at)
	}
	_, leave := e.follow()
	_, second := e.follow()
	if leave(); len(e.followers) != 1 {
		t.Errorf("%d follow after one of two has left", len(e.followers))
	}
	second()
}

func TestTheLogItselfStaysAsItIs(t *testing.T) {
	var e Events
	var plain, teed bytes.Buffer
	options := &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
	for _, to := range []struct {
		handler slog.Handler
	}{{slog.NewTextHandler(&plain, options)}, {e.Handler(slog.NewTextHandler(&teed, options))}} {
		log := slog.New(to.handler).With("a", 1).WithGroup("g")
		log.Info("below the level")
		log.Warn("loud", "lease_token", "x", "b", 2)
	}
	if plain.String() != teed.String() {
		t.Errorf("the log reads %q, want %q", teed.String(), plain.String())
	}
	if got := servertest.EventTexts(e.Past(0, 9)); len(got) != 2 || got[0] != "INFO below the level a=1" {
		t.Errorf("events %q, want also what the log left out", got)
	}
}

func TestTheHandlerKeepsTheRulesOfHandlers(t *testing.T) {
	var e Events
	err := slogtest.TestHandler(e.Handler(slog.DiscardHandler), func() (results []map[string]any) {
		for _, event := range e.Past(0, keptEvents) {
			result := map[string]any{slog.LevelKey: event.Level, slog.MessageKey: event.Message,
				slog.TimeKey: event.At.AsTime()}
			for _, a := range event.Attributes {
				place, parts := result, strings.Split(a.Key, ".")
				for _, group := range parts[:len(parts)-1] {
					inner, _ := place[group].(map[string]any)
					if inner == nil {
						inner = map[string]any{}
						place[group] = inner
					}
					place = inner
				}
				place[parts[len(parts)-1]] = a.Value
			}
			results = append(results, result)
		}
		return results
	})
	all, _ := err.(interface{ Unwrap() []error })
	for _, broken := range all.Unwrap() {
		if !strings.Contains(broken.Error(), "a Handler should ignore a zero Record.Time") {
			// an event always has a time
			t.Error(broken)
		}
	}
}

func TestEventsHoldNoSecretAndNothingThatAMessageCannot(t *testing.T) {
	var e Events
	log := slog.New(e.Handler(slog.DiscardHandler))
	lease := engine.NewToken()
	long := strings.Repeat("é", maxEventValue)
	log.Info("kept", "lease_token", lease.Wire(), "Password", "hunter2", "token", lease, "lease", lease,
		"client_secret", "s", "KAGZI_API_KEY", "k",
		"error", errors.New(`dial postgres://kagzi:hun:ter2@db/kagzi: refused`), "url", "https://host/a:b@c", "wrong",
		"a\xffb", "nul", "\x1b[2J\x00", "long", long)
	got := e.Past(0, 1)[0]
	want := map[string]string{
		"lease_token": hidden, "Password": hidden, "token": hidden, "lease": "(lease token)", "client_secret": hidden,
		"KAGZI_API_KEY": hidden,
		"error":         "dial postgres://kagzi:" + hidden + "@db/kagzi: refused", "url": "https://host/a:b@c",
		"wrong": "a\ufffdb", "nul": "\x1b[2J\x00",
	}
	for _, a := range got.Attributes {
		if a.Key == "long" {
			if len(a.Value) > maxEventValue || len(a.Value) < maxEventValue-4 || !utf8.ValidString(a.Value) ||
				!strings.HasSuffix(a.Value, engine.CutMark) {
				t.Errorf("a value of %d bytes is kept as %d bytes %q", len(long), len(a.Value), a.Value)
			}
		} else if a.Value != want[a.Key] {
			t.Errorf("%s is kept as %q, want %q", a.Key, a.Value, want[a.Key])
		}
	}
	if len(got.Attributes) != len(want)+1 {
		t.Errorf("%d attributes, want %d", len(got.Attributes), len(want)+1)
	}
	var many []any
	for i := range 100 {
		many = append(many, slog.Int(fmt.Sprint("a", i), i))
	}
	log.Info("wide", many...)
	if n := len(e.Past(1, 1)[0].Attributes); n != maxEventAttributes {
		t.Errorf("%d attributes are kept of 100, want %d", n, maxEventAttributes)
	}
}

func TestTheLatestEventsAreKeptWithoutGaps(t *testing.T) {
	var e Events
	for i := range 3*keptEvents + 7 {
		e.keep(servertest.Began, slog.LevelInfo, fmt.Sprint("m", i), nil)
	}
	for _, c := range []struct {
		after       int64
		most        int
		first, last int64
	}{
		{0, keptEvents, 2*keptEvents + 8, 3*keptEvents + 7}, {0, 3, 3*keptEvents + 5, 3*keptEvents + 7},
		{3*keptEvents + 5, 200, 3*keptEvents + 6, 3*keptEvents + 7},
		{3*keptEvents + 5, 1, 3*keptEvents + 7, 3*keptEvents + 7},
	} {
		events := e.Past(c.after, c.most)
		if events[0].Sequence != c.first || events[len(events)-1].Sequence != c.last ||
			int64(len(events)) != c.last-c.first+1 {
			t.Errorf("after %d at most %d: %d to %d, %d of them, want %d to %d", c.after, c.most, events[0].Sequence,
				events[len(events)-1].Sequence,
				len(events), c.first, c.last)
		}
		for _, one := range events {
			if one.Message != fmt.Sprint("m", one.Sequence-1) {
				t.Fatalf("event %d says %q", one.Sequence, one.Message)
			}
		}
	}
	if events := e.Past(3*keptEvents+7, 10); len(events) != 0 {
		t.Errorf("after the newest come %v", events)
	}
}

func TestManyEventsOfOneMessageDoNotDisplaceOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e Events
		for second := range 3 {
			for i := range 5000 {
				e.Note(slog.LevelWarn, "run failed", slog.Int("i", i))
			}
			e.Note(slog.LevelInfo, "worker registered")
			time.Sleep(time.Second)
			synctest.Wait()
			events := e.Past(0, keptEvents)
			if want := (second + 1) * (eventsPerSecond + 2); len(events) != want {
				t.Fatalf("%d events after second %d, want %d", len(events), second, want)
			}
			more := events[len(events)-1]
			if servertest.EventText(more) != "WARN run failed … and 4950 more more=4950" {
				t.Errorf("what was left out is told as %q", servertest.EventText(more))
			}
		}
		if first := e.Past(0, keptEvents)[0]; servertest.EventText(first) != "WARN run failed i=0" {
			t.Errorf("the first event is %q", servertest.EventText(first))
		}
		for range 10 * eventsPerSecond { // 40 a second are none too many
			e.Note(slog.LevelInfo, "steady")
			time.Sleep(25 * time.Millisecond)
		}
		for _, event := range e.Past(0, keptEvents) {
			if strings.HasPrefix(event.Message, "steady …") {
				t.Errorf("40 events a second are answered with %q", event.Message)
			}
		}
	})
}

// listener is the receiving end of a stream of events.
type listener struct {
	grpc.ServerStream
	ctx    context.Context
	events chan *kagziv1.ServerEvent
}

func (r *listener) Context() context.Context { return r.ctx }
func (r *listener) Send(e *kagziv1.ServerEvent) error {
	select {
	case r.events <- e:
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

// reading begins to read events; a read that gets none by the time that everything is at rest is
// nil.
func reading(t *testing.T, e *Events, request *kagziv1.WatchEventsRequest) (next func() *kagziv1.ServerEvent) {
	ctx, stop := context.WithCancel(t.Context())
	r := &listener{ctx: ctx, events: make(chan *kagziv1.ServerEvent)}
	var group sync.WaitGroup
	group.Go(func() {
		if err := e.Watch(request, r, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("WatchEvents ends with %v", err)
		}
	})
	t.Cleanup(func() { stop(); group.Wait() })
	return func() *kagziv1.ServerEvent {
		synctest.Wait()
		select {
		case e := <-r.events:
			return e
		default:
			return nil
		}
	}
}

// bubble is when time begins in synctest.
var bubble = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

func TestEventsAreFollowedFromWhereTheReaderWants(t *testing.T) {
	for _, c := range []struct {
		name    string
		request *kagziv1.WatchEventsRequest
		past    int // how many of 300 come at first
	}{
		{"nothing said", &kagziv1.WatchEventsRequest{}, defaultTail},
		{"a tail", &kagziv1.WatchEventsRequest{Tail: 3}, 3},
		{"all", &kagziv1.WatchEventsRequest{Tail: keptEvents}, 300},
		{"after one", &kagziv1.WatchEventsRequest{After: 290}, 10},
		{"after one, with a tail", &kagziv1.WatchEventsRequest{After: 290, Tail: 4}, 4},
		{"after the newest", &kagziv1.WatchEventsRequest{After: 300}, 0},
		{"after one of an earlier life of the server", &kagziv1.WatchEventsRequest{After: 9999}, defaultTail},
		{"after one of an earlier life that had come as far",
			&kagziv1.WatchEventsRequest{After: 300, AfterAt: timestamppb.New(servertest.Began)}, defaultTail},
		{"after one of an earlier life that had come less far",
			&kagziv1.WatchEventsRequest{After: 290, AfterAt: timestamppb.New(servertest.Began)}, defaultTail},
		{"after one of this life", &kagziv1.WatchEventsRequest{After: 290, AfterAt: timestamppb.New(bubble)}, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log Events
				for range 300 {
					log.keep(time.Now(), slog.LevelInfo, "past", nil)
				}
				next := reading(t, &log, c.request)
				for i := range c.past {
					if e := next(); e.GetSequence() != int64(300-c.past+i+1) {
						t.Fatalf("event %d is %v", i, e)
					}
				}
				if e := next(); e != nil {
					t.Fatalf("after the past comes %v", e)
				}
				log.keep(time.Now(), slog.LevelInfo, "new", nil)
				if e := next(); e.GetSequence() != 301 || e.Message != "new" {
					t.Errorf("what is noted next comes as %v", e)
				}
			})
		})
	}
}

func TestAnEventThatIsNotKeptAnyMoreMayBeThatOfTheReader(t *testing.T) {
	var e Events
	for i := range keptEvents + 2 {
		e.keep(servertest.Began.Add(time.Duration(i)), slog.LevelInfo, "noted", nil)
	}
	other := timestamppb.New(servertest.Began.Add(-time.Hour))
	for sequence, want := range map[int64]bool{
		0: true, 1: true, 2: true, 3: false, keptEvents + 2: false, keptEvents + 3: false} {
		if got := e.mayBe(sequence, other); got != want {
			t.Errorf("event %d may be one of another moment: %v, want %v", sequence, got, want)
		}
	}
	if !e.mayBe(3, timestamppb.New(servertest.Began.Add(2))) ||
		!e.mayBe(keptEvents+2, timestamppb.New(servertest.Began.Add(keptEvents+1))) {
		t.Error("the oldest and the newest that are kept are not known again")
	}
}

func TestASlowReaderOfEventsSeesTheGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log Events
		log.keep(time.Now(), slog.LevelInfo, "first", nil)
		next := reading(t, &log, &kagziv1.WatchEventsRequest{})
		synctest.Wait() // it is about to send the first
		for range 2*keptEvents + 5 {
			log.keep(time.Now(), slog.LevelInfo, "flood", nil)
		}
		if e := next(); e.GetSequence() != 1 {
			t.Fatalf("the first is %v", e)
		}
		for i := range keptEvents {
			if e := next(); e.GetSequence() != int64(keptEvents+6+i+1) {
				t.Fatalf("event %d after the gap is %v", i, e)
			}
		}
		if e := next(); e != nil {
			t.Errorf("at the end comes %v", e)
		}
	})
}

func TestARequestForEventsThatMakesNoSenseIsRefused(t *testing.T) {
	for field, request := range map[string]*kagziv1.WatchEventsRequest{
		"after": {After: -1}, "tail": {Tail: keptEvents + 1}, "after_at": {AfterAt: &timestamppb.Timestamp{Nanos: -1}},
	} {
		if err := new(Events).Watch(request, nil, nil); servertest.FieldOf(err) != field {
			t.Errorf("%v is refused with %v, want %s named", request, err, field)
		}
	}
	if err := new(Events).Watch(&kagziv1.WatchEventsRequest{Tail: -1}, nil, nil); servertest.FieldOf(err) != "tail" {
		t.Errorf("a negative tail is refused with %v", err)
	}
}

func BenchmarkNoting(b *testing.B) {
	var e Events
	b.ReportAllocs()
	for b.Loop() { // nearly all of them only counted
		e.Note(slog.LevelWarn, "run failed", slog.String("run", servertest.AnID))
	}
}
