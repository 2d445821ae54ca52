package engine

import (
	"reflect"
	"slices"
	"testing"
)

func TestAListenerThatIsFarBehindHearsThatAnythingMayHaveChanged(t *testing.T) {
	var ls Listeners
	closed := make(chan struct{})
	var heard []Ring
	err := ls.Listen(t.Context(), closed, func(r Ring) {
		if heard = append(heard, r); len(heard) == 1 { // of having begun to listen; what comes from here on waits until this returns
			for range maxRings {
				ls.Ring([]Ring{{Kind: RingTimer}})
			}
			ls.Ring([]Ring{{Kind: RingKeys}})
			ls.Ring([]Ring{{Kind: RingTimer}})
		}
		if r.Kind == RingTimer {
			close(closed)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []Ring{{Kind: RingAll}, {Kind: RingAll}, {Kind: RingTimer}}; !slices.Equal(heard, want) {
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
	var counted Aside
	const rounds = 10_000
	err := ls.Listen(t.Context(), closed, func(r Ring) {
		switch r.Kind {
		case RingAll:
			if all++; all > 1 {
				return
			}
			for range rounds { // which wait until this returns
				ls.Ring([]Ring{{Kind: RingTimer}, {Kind: RingAside, Aside: &Aside{Handlers: 1, Ticks: 2, Failed: []ID{{1}, {2}, {3}}, Stopped: 4}}})
			}
			ls.Ring([]Ring{{Kind: RingKeys}})
		case RingAside:
			counted.Add(r.Aside)
		case RingKeys:
			close(closed)
		}
	})
	want := Aside{Handlers: rounds, Ticks: 2 * rounds, Failed: slices.Repeat([]ID{{1}, {2}, {3}}, rounds), Stopped: 4 * rounds}
	if err != nil || !reflect.DeepEqual(counted, want) || all != 2 {
		failed := len(counted.Failed)
		counted.Failed, want.Failed = nil, nil
		t.Errorf("counted %+v and %d failed, with %d hints that anything may have changed and the end %v; want %+v and %d, 2 and none",
			counted, failed, all, err, want, 3*rounds)
	}
}
