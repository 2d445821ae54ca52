package storekit

import (
	"reflect"
	"slices"
	"testing"

	"github.com/kagzi/kagzi/engine"
)

func TestSlowListenerGetsNotifyAll(t *testing.T) {
	var ls Listeners
	closed := make(chan struct{})
	var heard []engine.Notification
	err := ls.Listen(t.Context(), closed, func(r engine.Notification) {
		if heard = append(heard, r); len(heard) == 1 {
			// Listen has begun; events from here on wait until this returns
			for range maxPending {
				ls.Notify(Events(engine.Notification{Kind: engine.NotifyTimer}))
			}
			ls.Notify(Events(engine.Notification{Kind: engine.NotifyKeys}))
			ls.Notify(Events(engine.Notification{Kind: engine.NotifyTimer}))
		}
		if r.Kind == engine.NotifyTimer {
			close(closed)
		}
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := []engine.Notification{{Kind: engine.NotifyAll}, {Kind: engine.NotifyAll},
		{Kind: engine.NotifyTimer}}; !slices.Equal(heard, want) {
		t.Fatalf("heard %v, want %v", heard, want)
	}
	if len(ls.list) != 0 {
		t.Fatalf("%d listeners stayed after the end, want none", len(ls.list))
	}
}

// counter adds up side effects.
type counter struct{ sum engine.SideEffects }

func (c *counter) RunEnded(engine.ID, *engine.Ending) {}

func (c *counter) SideEffects(e *engine.SideEffects) { c.sum.Add(e) }

func TestSideEffectsSurviveNotifyAll(t *testing.T) {
	var ls Listeners
	closed := make(chan struct{})
	var all int
	var counted counter
	const rounds = 10_000
	err := ls.Listen(t.Context(), closed, func(r engine.Notification) {
		switch r.Kind {
		case engine.NotifyAll:
			if all++; all > 1 {
				return
			}
			for range rounds { // events wait until this returns
				ls.Notify([]Event{{Notification: engine.Notification{Kind: engine.NotifyTimer}},
					{SideEffects: &engine.SideEffects{Handlers: 1, Ticks: 2, Failed: []engine.ID{{1}, {2}, {3}},
						Stopped: 4}}})
			}
			ls.Notify(Events(engine.Notification{Kind: engine.NotifyKeys}))
		case engine.NotifyKeys:
			close(closed)
		}
	}, &counted)
	want := engine.SideEffects{Handlers: rounds, Ticks: 2 * rounds,
		Failed: slices.Repeat([]engine.ID{{1}, {2}, {3}}, rounds), Stopped: 4 * rounds}
	if err != nil || !reflect.DeepEqual(counted.sum, want) || all != 2 {
		failed := len(counted.sum.Failed)
		counted.sum.Failed, want.Failed = nil, nil
		t.Errorf(
			"counted %+v and %d failed, with %d hints that anything may have changed and the end %v; want %+v and %d, 2 and none",
			counted.sum, failed, all, err, want, 3*rounds)
	}
}
