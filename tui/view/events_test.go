package view

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
)

func TestEventsLookRight(t *testing.T) { goldenView(t, "events", always("events")) }

func TestEventsLookRightWhenTheyAreWrapped(t *testing.T) {
	goldenView(t, "events_wrapped", always("events level:warn"), "w", "g")
}

func TestEventsAreFollowedUntilSomebodyLooksBack(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "events"), 100, 20, func(r *fixture) {
		p := r.app.trails.top().(*eventsPage)
		last := func() int64 { return p.log.Events()[len(p.log.Events())-1].GetSequence() }
		grow := func() {
			for before := last(); last() == before; {
				w.Advance(time.Minute)
				r.pass(200 * time.Millisecond)
			}
		}
		r.shows("following")
		grow()
		if got := p.under().GetSequence(); got != last() {
			t.Fatalf("the cursor is on event %d, want the newest, %d", got, last())
		}
		r.press("k", "k")
		at := p.under().GetSequence()
		grow()
		if got := p.under().GetSequence(); got != at {
			t.Errorf("the cursor went from event %d to %d while nobody followed", at, got)
		}
		r.shows("below, s follows")
		r.press("s")
		if got := p.under().GetSequence(); got != last() {
			t.Errorf("after s the cursor is on event %d, want the newest, %d", got, last())
		}
	})
}

func TestEventsAreFilteredByTextAndLevel(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "events"), 100, 20, func(r *fixture) {
		p := r.app.trails.top().(*eventsPage)
		for _, c := range []struct {
			filter string
			keeps  func(*kagziv1.ServerEvent) bool
		}{
			{"level:warn", func(e *kagziv1.ServerEvent) bool { return e.GetLevel() != "INFO" }},
			{"Worker", func(e *kagziv1.ServerEvent) bool { return strings.Contains(e.String(), "worker") }},
			{"level:warn !card", func(e *kagziv1.ServerEvent) bool {
				return e.GetLevel() != "INFO" && !strings.Contains(e.String(), "card")
			}},
		} {
			if err := p.SetFilter(c.filter); err != nil {
				t.Fatal(err)
			}
			r.draw()
			want := 0
			for _, e := range p.log.Events() {
				if c.keeps(e) {
					want++
				}
			}
			if p.rows.Count != want || want == 0 {
				t.Errorf("%q keeps %d events, want %d, and more than none", c.filter, p.rows.Count, want)
			}
		}
		if err := p.SetFilter("level:loud"); err == nil {
			t.Error("a level that there is not was taken")
		}
		r.press("esc")
		if p.Filter() != "" {
			t.Error("esc did not clear the filter")
		}
		r.press("f")
		r.shows("level:warn")
		r.press("f")
		r.lacks("level:warn")
	})
}

func TestAnEventShowsAllOfItselfAndOpensWhatItIsAbout(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "events level:warn carrier"), 100, 24, func(r *fixture) {
		r.press("G", "enter")
		r.shows("Event: run failed", "▲ warn", "namespace", "error           carrier: postcode")
		r.press("o")
		r.shows("run order")
		r.press("esc")
		r.shows("Events (")
		if err := r.app.command("filter registered"); err != nil {
			t.Fatal(err)
		}
		r.press("o")
		r.shows("› worker ")
	})
}

// lossy is a server that loses some of its events.
type lossy struct{ tui.API }

type lossyStream struct {
	grpc.ServerStreamingClient[kagziv1.ServerEvent]
}

func (a lossy) WatchEvents(ctx context.Context, request *kagziv1.WatchEventsRequest,
	options ...grpc.CallOption) (grpc.ServerStreamingClient[kagziv1.ServerEvent], error) {
	stream, err := a.API.WatchEvents(ctx, request, options...)
	return lossyStream{stream}, err
}

func (s lossyStream) Recv() (*kagziv1.ServerEvent, error) {
	for {
		e, err := s.ServerStreamingClient.Recv()
		if err != nil || e.GetSequence()%100 != 0 && e.GetSequence()%100 != 99 {
			return e, err
		}
	}
}

func TestEventsThatNeverCameAreShownAsAGap(t *testing.T) {
	onFixture(t, func() Options {
		w := newShop()
		return Options{API: lossy{w}, Open: "events", Now: w.Now}
	}, 100, 24, func(r *fixture) {
		p := r.app.trails.top().(*eventsPage)
		missed := p.log.Missed()
		if missed == 0 {
			t.Fatal("nothing was missed")
		}
		r.shows(fmt.Sprintf("▲ %d events were missed", missed))
		for range p.log.Events() {
			r.press("k")
			if strings.Contains(r.draw(), "≈ 2 events were missed") {
				return
			}
		}
		t.Error("no gap was shown between the events")
	})
}
