package metrics

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// statsCache caches counts, because counting may cost a scan. A count is kept for twenty times as
// long as it took, and at least 250 ms, so that any number of dashboards uses at most a twentieth
// of the database's time.
type statsCache struct {
	mu      sync.Mutex
	entries map[string]*cached[engine.Stats] // by namespace; "" is all
	places  chan struct{}                    // semaphore of capacity statsAtOnce
}

// cached is a cached value that may be costly to find.
type cached[T any] struct {
	mu     sync.Mutex // held while finding, so that all callers share one result
	value  T
	until  time.Time
	places chan struct{} // semaphore held while finding; nil: no limit
}

const (
	statsAtOnce  = 2 // concurrent counts, so that they do not delay other calls of the store
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

// counters count what this server has acknowledged since it started.
type counters [numCounted]atomic.Int64

func (c *counters) started() int64 { return c[RunStarted].Load() }

func (c *counters) finished() int64 {
	return c[RunCompleted].Load() + c[RunFailed].Load() + c[RunStopped].Load()
}

func (c *counters) steps() int64 { return c[StepCompleted].Load() }

// Totals holds the server's counters at one time. Rates are computed from two of them.
type Totals struct {
	At                       time.Time
	Started, Finished, Steps int64
}

func (c *counters) read(now time.Time) Totals {
	return Totals{At: now, Started: c.started(), Finished: c.finished(), Steps: c.steps()}
}

// Rates says what was done per second.
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

// Origin returns the mark of the server's start.
func (r *Recorder) Origin() Totals { return r.origin }
