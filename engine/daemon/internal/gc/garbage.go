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
	// leastGarbage is how much a server lets come together before it collects, in bytes, however little it keeps.
	leastGarbage = 48 << 20
	// leastPercent is by how much of what it keeps the heap may grow at least.
	leastPercent = 25
	// worthReturning is how much the system is to have back at once.
	worthReturning = 8 << 20
	// Interval is how often a look is taken whether a server still works: where it has asked for
	// less than littleWork bytes since, or for less than one in fewNeeded of what it could give
	// back, it does not. Thousands of idle workers still ask for some, by their heartbeats.
	Interval   = 3 * time.Second
	littleWork = 1 << 20
	fewNeeded  = 8
)

// Tune has what a server does not need any more collected when there is enough of it. Left to
// itself Go collects whenever the heap has doubled: a server keeps little and throws much away, and
// spends a tenth of its time under load on going through that little again and again. After the
// load the memory goes back to the system. With GOGC in the environment everything is as that says.
//
// It returns at once, and ends with ctx.
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

// worthIt says that the system is to have back what is unused, of a server that has asked for so much lately.
func worthIt(asked, unused int64) bool {
	return unused > worthReturning && asked < max(littleWork, unused/fewNeeded)
}

// unused is what the process has of the system for its heap and does not need, in bytes.
func unused() int64 {
	return measure("/memory/classes/heap/objects:bytes") - measure("/gc/heap/live:bytes") +
		measure("/memory/classes/heap/free:bytes")
}

// lookOut tells of every collection.
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

// percentFor is by how many percent of what is kept, live bytes, the heap may grow, in steps, since
// to change it stops everything for a moment. What a collection costs is going through what is
// scanned for pointers. Payloads are not: a server that holds many of them for its database keeps
// much and collects cheaply, and need not let as much garbage come together.
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

// measure is one of the runtime's figures.
func measure(name string) int64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
