package metrics

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// statsCache keeps counts for a while, because counting everything may cost a scan: twenty times as
// long as they took to count, and at least a quarter of a second, so that dashboards cost at most a
// twentieth of the database however many there are.
type statsCache struct {
	mu      sync.Mutex
	entries map[string]*cached[engine.Stats] // by namespace; "" is all
	places  chan struct{}                    // has room for statsAtOnce
}

// cached is something that may be costly to find.
type cached[T any] struct {
	mu     sync.Mutex // held while finding, so that all who ask share one
	value  T
	until  time.Time
	places chan struct{} // taken while finding; nil: none is needed
}

const (
	statsAtOnce  = 2 // counts, of several namespaces: those who need the store for their work are not to wait for them
	statsFor     = 250 * time.Millisecond
	statsShare   = 20
	maxStatsKeys = 1000
)

func (c *statsCache) get(ctx context.Context, namespace string,
	count func() (engine.Stats, error)) (engine.Stats, error) {
	c.mu.Lock()
	if c.entries == nil || len(c.entries) >= maxStatsKeys {
		c.entries = map[string]*cached[engine.Stats]{}
	}
	entry := c.entries[namespace]
	if entry == nil {
		entry = &cached[engine.Stats]{places: c.places}
		c.entries[namespace] = entry
	}
	c.mu.Unlock()
	return entry.get(ctx, count)
}

func (c *cached[T]) get(ctx context.Context, find func() (T, error)) (none T, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Now().Before(c.until) {
		return c.value, nil
	}
	if c.places != nil {
		select {
		case c.places <- struct{}{}:
			defer func() { <-c.places }()
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
	began := time.Now()
	value, err := find()
	if err != nil {
		return none, err
	}
	c.value = value
	c.until = time.Now().Add(max(statsFor, statsShare*time.Since(began)))
	return value, nil
}

// counters are what this server has acknowledged since it started.
type counters [numCounted]atomic.Int64

func (c *counters) started() int64 { return c[RunStarted].Load() }

func (c *counters) finished() int64 {
	return c[RunCompleted].Load() + c[RunFailed].Load() + c[RunStopped].Load()
}

func (c *counters) steps() int64 { return c[StepCompleted].Load() }

// Totals turns the server's counters into rates between two looks.
type Totals struct {
	At                       time.Time
	Started, Finished, Steps int64
}

func (c *counters) read(now time.Time) Totals {
	return Totals{At: now, Started: c.started(), Finished: c.finished(), Steps: c.steps()}
}

// Rates is what was done in a second.
type Rates struct{ Started, Finished, Steps float64 }

// Mark returns the counters now, for Since.
func (r *Recorder) Mark() Totals { return r.counters.read(r.now()) }

// Since returns the rates since a mark.
func (r *Recorder) Since(since Totals) (done Rates) {
	read := r.counters.read(r.now())
	if seconds := read.At.Sub(since.At).Seconds(); seconds > 0 {
		done.Started = float64(read.Started-since.Started) / seconds
		done.Finished = float64(read.Finished-since.Finished) / seconds
		done.Steps = float64(read.Steps-since.Steps) / seconds
	}
	return done
}

// Origin is the mark from when the server started.
func (r *Recorder) Origin() Totals { return r.origin }
