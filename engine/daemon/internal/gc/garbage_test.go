package gc

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestTheHeapMayGrowByAFixedAmountWhileItIsSmallOrMadeOfPayloads(t *testing.T) {
	for _, test := range []struct {
		live, scanned int64
		percent       int
	}{
		{0, 0, 1600}, {2 << 20, 0, 1600}, {6 << 20, 0, 800}, {10 << 20, 0, 400}, {12 << 20, 0, 400}, {13 << 20, 0, 200},
		{24 << 20, 0, 200}, {25 << 20, 0, 100},
		{96 << 20, 0, 100}, {97 << 20, 0, 50}, {192 << 20, 0, 50}, {193 << 20, 0, 25}, {1 << 40, 0, 25},
		{260 << 20, 130 << 20, 100}, {260 << 20, 100 << 20, 50}, {1 << 40, 1 << 40, 100}, {2 << 20, 1 << 40, 1600},
	} {
		percent := percentFor(test.live, test.scanned)
		if percent != test.percent {
			t.Errorf("with %d bytes kept, %d of them scanned: %d %%, want %d", test.live, test.scanned, percent,
				test.percent)
		}
		if percent > 100 && test.live*int64(percent)/100 > leastGarbage {
			t.Errorf("with %d bytes kept %d of garbage may come together", test.live, test.live*int64(percent)/100)
		}
	}
}

func TestUnusedMemoryIsReturnedWhenIdle(t *testing.T) {
	for _, test := range []struct {
		asked, unused int64
		want          bool
	}{
		{0, worthReturning, false}, {0, worthReturning + 1, true},
		{littleWork - 1, worthReturning + 1, true}, {2 * littleWork, 2 * worthReturning, false},
		{7 << 20, 110 << 20, true}, {14 << 20, 110 << 20, false}, {300 << 20, 110 << 20, false},
	} {
		if got := worthIt(test.asked, test.unused); got != test.want {
			t.Errorf("having asked for %d bytes, with %d unused: %v, want %v", test.asked, test.unused, got, test.want)
		}
	}
}

func TestCollectionsAreRareUnderLoadAndMemoryGoesBackAfterIt(t *testing.T) {
	t.Setenv("GOGC", "") // as if nobody had chosen
	chosen := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(chosen) })
	ctx, stop := context.WithCancel(t.Context())
	Tune(ctx, time.Millisecond)
	for measure("/gc/gogc:percent") == 100 {
		runtime.GC()
		if t.Context().Err() != nil {
			t.Fatal("after collections the heap may grow by no more than it keeps")
		}
	}
	garbage := make([]byte, 4*worthReturning)
	for i := range garbage {
		garbage[i] = 1
	}
	before := measure("/memory/classes/heap/released:bytes")
	runtime.KeepAlive(garbage)
	garbage = nil //nolint:ineffassign // the collector reads it
	for measure("/memory/classes/heap/released:bytes")-before < 2*worthReturning {
		runtime.Gosched()
		if t.Context().Err() != nil {
			t.Fatal("the memory stays with the process")
		}
	}
	stop()
	for measure("/gc/gogc:percent") != 100 {
		runtime.Gosched()
	}
	debug.SetGCPercent(100)
}
