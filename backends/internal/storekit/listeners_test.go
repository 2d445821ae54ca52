package storekit

import (
	"reflect"
	"slices"
	"testing"

	"github.com/kagzi/kagzi/engine"
)

func TestAListenerThatIsFarBehindHearsThatAnythingMayHaveChanged(t *testing.T) {
	var ls Listeners
	closed := make(chan struct{})
	var heard []engine.Ring
	err := ls.Listen(t.Context(), closed, func(r engine.Ring) {
		if heard = append(heard, r); len(heard) == 1 { // of having begun to listen; what comes from here on waits until this returns
			for range maxRings {
				ls.Ring([]engine.Ring{{Kind: engine.RingTimer}})
			}
			ls.Ring([]engine.Ring{{Kind: engine.RingKeys}})
			ls.Ring([]engine.Ring{{Kind: engine.RingTimer}})
		}
		if r.Kind == engine.RingTimer {
			close(closed)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []engine.Ring{{Kind: engine.RingAll}, {Kind: engine.RingAll}, {Kind: engine.RingTimer}}; !slices.Equal(heard, want) {
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
	var counted engine.Aside
	const rounds = 10_000
	err := ls.Listen(t.Context(), closed, func(r engine.Ring) {
		switch r.Kind {
		case engine.RingAll:
			if all++; all > 1 {
				return
			}
			for range rounds { // which wait until this returns
				ls.Ring([]engine.Ring{{Kind: engine.RingTimer}, {Kind: engine.RingAside, Aside: &engine.Aside{Handlers: 1, Ticks: 2, Failed: []engine.ID{{1}, {2}, {3}}, Stopped: 4}}})
			}
			ls.Ring([]engine.Ring{{Kind: engine.RingKeys}})
		case engine.RingAside:
			counted.Add(r.Aside)
		case engine.RingKeys:
			close(closed)
		}
	})
	want := engine.Aside{Handlers: rounds, Ticks: 2 * rounds, Failed: slices.Repeat([]engine.ID{{1}, {2}, {3}}, rounds), Stopped: 4 * rounds}
	if err != nil || !reflect.DeepEqual(counted, want) || all != 2 {
		failed := len(counted.Failed)
		counted.Failed, want.Failed = nil, nil
		t.Errorf("counted %+v and %d failed, with %d hints that anything may have changed and the end %v; want %+v and %d, 2 and none",
			counted, failed, all, err, want, 3*rounds)
	}
}
