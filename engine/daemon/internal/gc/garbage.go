// Package gc tunes the garbage collector for a server that keeps little and allocates much.
package gc

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// leastGarbage is how many bytes of garbage may collect before a collection, however little is
	// live.
	leastGarbage = 48 << 20
	// leastPercent is the least growth of the heap between collections, in percent of the live
	// heap.
	leastPercent = 25
	// worthReturning is how many unused bytes are worth returning to the system at once.
	worthReturning = 8 << 20
	// Interval is how often Tune checks whether the server is still working: it is idle if it has
	// allocated less than littleWork bytes since, or less than one fewNeeded-th of what it could
	// return. Heartbeats of thousands of idle workers still allocate a little.
	Interval   = 3 * time.Second
	littleWork = 1 << 20
	fewNeeded  = 8
)

// Tune makes the garbage collector run less often. By default Go collects whenever the heap has
// doubled: a server with a small live heap and many short-lived objects spends a tenth of its time
// under load on that. When the load ends, memory goes back to the system. If GOGC is set, Tune does
// nothing.
//
// It returns at once and stops with ctx.
func Tune(ctx context.Context, lookEvery time.Duration) {
	if os.Getenv("GOGC") != "" {
		return
	}
	collected := make(chan struct{}, 1)
	lookOut(ctx, collected)
	go func() {
		percent := 100
		defer func() { debug.SetGCPercent(100) }()
		look := time.NewTicker(lookEvery)
		defer look.Stop()
		asked := int64(0)
		for {
			select {
			case <-ctx.Done():
				return
			case <-collected:
				if next := percentFor(measure("/gc/heap/live:bytes"),
					measure("/gc/scan/total:bytes")); next != percent {
					percent = next
					debug.SetGCPercent(percent)
				}
			case <-look.C:
				before := asked
				asked = measure("/gc/heap/allocs:bytes")
				if worthIt(asked-before, unused()) {
					debug.FreeOSMemory()
				}
			}
		}
	}()
}

// worthIt reports whether to return unused bytes to the system, given how many bytes were allocated
// lately.
func worthIt(asked, unused int64) bool {
	return unused > worthReturning && asked < max(littleWork, unused/fewNeeded)
}

// unused returns how many bytes of heap the process holds without using them.
func unused() int64 {
	return measure("/memory/classes/heap/objects:bytes") - measure("/gc/heap/live:bytes") +
		measure("/memory/classes/heap/free:bytes")
}

// lookOut signals every collection.
func lookOut(ctx context.Context, collected chan<- struct{}) {
	runtime.AddCleanup(new([64]byte), func(struct{}) {
		if ctx.Err() != nil {
			return
		}
		select {
		case collected <- struct{}{}:
		default:
		}
		lookOut(ctx, collected)
	}, struct{}{})
}

// percentFor returns how much the heap may grow, in percent of the live bytes. It moves in steps,
// because a change stops the world for a moment. The cost of a collection depends on the bytes
// scanned for pointers. Payloads are not scanned: a server that holds many of them collects cheaply
// and may collect sooner.
func percentFor(live, scanned int64) int {
	percent := int64(100)
	for percent < 1600 && live*percent*2 <= leastGarbage*100 {
		percent *= 2
	}
	for percent > leastPercent && live*percent > 2*max(leastGarbage, scanned)*100 {
		percent /= 2
	}
	return int(percent)
}

// measure returns a metric of the runtime.
func measure(name string) int64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
