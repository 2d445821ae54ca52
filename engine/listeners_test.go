package engine

import (
	"reflect"
	"slices"
	"testing"
)

func TestAListenerThatIsFarBehindHearsThatAnythingMayHaveChanged(t *testing.T) {
	var ls Listeners
	closed := make(chan struct{})
	var heard []Notification
	err := ls.Listen(t.Context(), closed, func(r Notification) {
		if heard = append(heard, r); len(heard) == 1 { // of having begun to listen; what comes from here on waits until this returns
			for range maxPending {
				ls.Notify([]Notification{{Kind: NotifyTimer}})
			}
			ls.Notify([]Notification{{Kind: NotifyKeys}})
			ls.Notify([]Notification{{Kind: NotifyTimer}})
		}
		if r.Kind == NotifyTimer {
			close(closed)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []Notification{{Kind: NotifyAll}, {Kind: NotifyAll}, {Kind: NotifyTimer}}; !slices.Equal(heard, want) {
		t.Fatalf("heard %v, want %v", heard, want)
	}
	if len(ls.list) != 0 {
		t.Fatalf("%d listeners stayed after the end, want none", len(ls.list))
	}
}

func TestWhatIsCountedOutlivesAHintThatTakesThePlaceOfOthers(t *testing.T) {
	var ls Listeners
	closed := make(chan struct{})
	var all int
	var counted SideEffects
	const rounds = 10_000
	err := ls.Listen(t.Context(), closed, func(r Notification) {
		switch r.Kind {
		case NotifyAll:
			if all++; all > 1 {
				return
			}
			for range rounds { // which wait until this returns
				ls.Notify([]Notification{{Kind: NotifyTimer}, {Kind: NotifySideEffects, SideEffects: &SideEffects{Handlers: 1, Ticks: 2, Failed: []ID{{1}, {2}, {3}}, Stopped: 4}}})
			}
			ls.Notify([]Notification{{Kind: NotifyKeys}})
		case NotifySideEffects:
			counted.Add(r.SideEffects)
		case NotifyKeys:
			close(closed)
		}
	})
	want := SideEffects{Handlers: rounds, Ticks: 2 * rounds, Failed: slices.Repeat([]ID{{1}, {2}, {3}}, rounds), Stopped: 4 * rounds}
	if err != nil || !reflect.DeepEqual(counted, want) || all != 2 {
		failed := len(counted.Failed)
		counted.Failed, want.Failed = nil, nil
		t.Errorf("counted %+v and %d failed, with %d hints that anything may have changed and the end %v; want %+v and %d, 2 and none",
			counted, failed, all, err, want, 3*rounds)
	}
}
