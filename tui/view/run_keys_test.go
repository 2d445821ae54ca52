package view

import (
	"slices"
	"strings"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/scenario"
)

func TestARunIsFoundByWhatPeopleCallIt(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "overview"), 100, 24, func(r *fixture) {
		id := w.ID(scenario.Failed)
		for _, ref := range []string{id, strings.ToUpper(id), "order-70344", id[:30], format.ShortID(id)} {
			if err := r.app.command("run " + ref); err != nil {
				t.Fatalf("run %s: %v", ref, err)
			}
			r.settle()
			p := r.app.trails.top().(*runPage)
			if p.workflow().GetRunId() != id {
				t.Errorf("run %s shows %q, %v", ref, p.workflow().GetRunId(), p.Failure())
			}
		}
		for ref, want := range map[string]string{
			"01a1f82": "no such run", "no-such-order": "no such run", absent: "no such run",
			w.ID(scenario.FanOut)[:8]: "type more of it", absent[:13]: "no such run",
		} {
			if err := r.app.command("run " + ref); err != nil {
				t.Fatalf("run %s: %v", ref, err)
			}
			r.settle()
			if err := r.app.trails.top().(*runPage).Failure(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("run %s fails with %v, want %q", ref, err, want)
			}
		}
	})
}

func TestARunThatIsAskedForByNameIsFoundWhenTheServerComesBack(t *testing.T) {
	var w *shop
	options := func() Options {
		w = newShop()
		w.Down(errGone)
		return Options{API: w, Open: "run order-70344", Now: w.Now}
	}
	onFixture(t, options, 100, 24, func(r *fixture) {
		r.shows("Cannot show this: no server answers")
		w.Up()
		r.pass(5 * time.Second)
		r.shows("✗ failed", "AddressError")
	})
}

func TestARetryBeginsAtTheStepUnderTheCursorElseAtTheOneThatFailed(t *testing.T) {
	onPiece(t, scenario.Failed, 120, 32, func(r *fixture, _ *shop, p *runPage) {
		for _, want := range []struct{ keys, step string }{
			{"1", "ship"}, {"k", "cool-off"}, {"2", "ship"}, {"g", "validate"}, {"4", "ship"}, {"3", "ship"},
			{"1", "cool-off"}, {"f", "ship"},
		} {
			r.press(want.keys)
			if got := p.fromStep(); got != want.step {
				t.Errorf("after %s a retry begins at %q, want %q", want.keys, got, want.step)
			}
		}
	})
}

func TestAPayloadIsSearchedFoldedAndCopied(t *testing.T) {
	onPiece(t, scenario.Failed, 120, 32, func(r *fixture, w *shop, p *runPage) {
		r.press("3", "/")
		r.enter("sku")
		r.press("enter", "Y")
		if got := string(r.screen.GetClipboardData()); got != "$.items[0].sku" {
			t.Errorf("the path that was copied is %q", got)
		}
		r.press("y")
		if got := string(r.screen.GetClipboardData()); got == "" ||
			!strings.Contains(string(p.workflow().GetInput().GetData()), `"`+got+`"`) {
			t.Errorf("the value that was copied is %q", got)
		}
		r.press("g", "enter")
		r.shows("3 keys")
		r.press("right")
		if p.tabs[2].(*payloadsTab).focus != 1 {
			t.Error("right does not go to the output")
		}
		r.shows("› Output", "No output: the run failed.")
		r.press("i", "/")
		r.enter("nowhere")
		r.press("enter")
		r.shows("not found")
		r.press("esc", "esc")
	})
}

func TestAPayloadStaysFoldedWhileItsRunGoesOn(t *testing.T) {
	onPiece(t, scenario.Growing, 120, 32, func(r *fixture, w *shop, p *runPage) {
		r.press("3", "enter")
		r.shows("keys")
		before := p.workflow()
		r.goOn(w, 20*time.Second)
		if p.workflow() == before {
			t.Fatal("the run has not changed within 20 s")
		}
		r.shows("keys")
	})
}

func TestAPayloadThatACodecMadeSaysSo(t *testing.T) {
	p := &kagziv1.Payload{Data: []byte("\x01\x02\x03"),
		Metadata: map[string]string{"encoding": "aes-gcm", "content-type": "application/json"}}
	if got, want := format.PayloadKind(p), `3 B, encoded by "aes-gcm": shown as it is stored`; got != want {
		t.Errorf("the payload is said to be %q, want %q", got, want)
	}
	if got := payloadType(p); got != "application/octet-stream" {
		t.Errorf("it is shown as %q", got)
	}
}

func TestTheNewestEventIsFollowedUntilOneGoesUp(t *testing.T) {
	onPiece(t, scenario.Growing, 120, 32, func(r *fixture, w *shop, p *runPage) {
		r.press("5")
		tab := p.tabs[p.tab].(*historyTab)
		atEnd := func() bool { return tab.tab.Index() == len(p.run.Events())-1 }
		before := len(p.run.Events())
		r.goOn(w, 30*time.Second)
		if len(p.run.Events()) == before || !atEnd() {
			t.Fatalf("the cursor is on event %d of %d, before there were %d", tab.tab.Index()+1,
				len(p.run.Events()), before)
		}
		r.press("k")
		r.goOn(w, 30*time.Second)
		if atEnd() {
			t.Error("the cursor was moved up and went to the end again")
		}
		r.press("G")
		r.goOn(w, 30*time.Second)
		if !atEnd() {
			t.Error("the cursor was moved to the end and does not stay there")
		}
	})
}

func TestEventsOpenWhatCameWithThem(t *testing.T) {
	onPiece(t, scenario.Chatty, 120, 40, func(r *fixture, _ *shop, p *runPage) {
		r.press("5")
		for _, test := range []struct{ kind, want string }{
			{"run created", "$"}, {"signal received", "seen_by"}, {"step completed", "Attempt 1"},
			{"run started", "run started"}, {"run completed", "$"},
		} {
			at := slices.IndexFunc(p.run.Events(), func(e model.Event) bool { return e.Kind == test.kind })
			if at < 0 {
				t.Fatalf("there is no event %q", test.kind)
			}
			p.tabs[p.tab].(*historyTab).tab.Go(at)
			r.press("enter")
			if r.app.layer() == nil {
				t.Fatalf("enter on %q opened nothing", test.kind)
			}
			r.shows(test.want)
			r.press("esc")
		}
	})
}

func TestARunIsSavedWithItsStepsAndItsHistory(t *testing.T) {
	onPiece(t, scenario.Failed, 120, 32, func(_ *fixture, _ *shop, p *runPage) {
		raw, err := p.JSON()
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`"workflow": {`, `"steps": [`, `"name": "ship"`, `"audit_events": [`} {
			if !strings.Contains(string(raw), want) {
				t.Errorf("the JSON has no %s", want)
			}
		}
		titles, rows := p.Rows()
		if len(titles) != 6 || len(rows) != len(p.run.Events()) || rows[0][3] != "run created" {
			t.Errorf("the history has %d titles and %d rows, the first %q", len(titles), len(rows), rows[0])
		}
	})
}

func TestAWaitingStepOfAnotherRunIsReadOnlyWhileItIsOpen(t *testing.T) {
	onPiece(t, scenario.Parent, 120, 32, func(r *fixture, w *shop, p *runPage) {
		r.press("2")
		tab := p.tabs[1].(*treeTab)
		if len(tab.live) != 0 {
			t.Fatalf("%d child runs are followed before one is opened", len(tab.live))
		}
		r.press("G", "l")
		r.shows("render-pdf", "attempts")
		if len(tab.live) != 1 {
			t.Errorf("%d child runs are followed, want the one that is open", len(tab.live))
		}
		r.press("h")
		if len(tab.live) != 0 {
			t.Error("a child run that was folded is still followed")
		}
		r.press("l", "1")
		if len(tab.live) != 0 {
			t.Error("a child run is followed while the tree is not on the screen")
		}
	})
}
