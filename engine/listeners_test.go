package engine

import (
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
