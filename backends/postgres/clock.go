package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kagzi/kagzi/engine"
)

const (
	measureEvery = time.Minute
	// suspended is how far wall clock and monotonic clock may drift apart before the offset is not believed any more.
	suspended = time.Second
)

// clock is the database's clock, read from this machine's: a reading of the database, and the time that has passed since by
// the local monotonic clock. Nothing is asked of the database but when somebody asks for the time and the reading is old.
type clock struct {
	measure   func(ctx context.Context) (time.Time, error) // asks the database
	reading   atomic.Pointer[reading]
	measuring sync.Mutex
	group     sync.WaitGroup
}

// reading says that the database's clock showed remote when the local one showed local.
type reading struct {
	local    time.Time
	remote   time.Time
	measured time.Time // by the local clock; before local where the database did not answer since
}

// text is by how much the database's clock is ahead of this machine's, for people.
func (c *clock) text() string {
	r := c.reading.Load()
	offset := r.remote.Sub(r.local.Round(0)).Round(100 * time.Microsecond)
	return fmt.Sprintf("%+.1f ms, measured %s", float64(offset)/float64(time.Millisecond), moment(r.measured))
}

func (r *reading) at(local time.Time) time.Time { return r.remote.Add(local.Sub(r.local)) }

func (r *reading) stale(local time.Time) bool {
	monotonic, wall := local.Sub(r.local), local.Round(0).Sub(r.local.Round(0))
	return monotonic > measureEvery || (wall-monotonic).Abs() > suspended
}

// now is the database's time. When the reading is old, a new one is taken in the background.
func (c *clock) now() time.Time {
	local := time.Now()
	r := c.reading.Load()
	if r.stale(local) && c.measuring.TryLock() {
		c.group.Go(func() {
			defer c.measuring.Unlock()
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			if err := c.read(ctx); err != nil {
				// The old offset serves on; ask again in a minute, not at every call.
				c.reading.CompareAndSwap(r, &reading{local: local, remote: r.at(local), measured: r.measured})
			}
		})
	}
	return engine.Micros(r.at(local))
}

// read takes three readings and keeps the one that took the least time, for it is the most exact. What the database's clock showed when it was read it
// shows by the moment of the answer at the latest, so that this clock is never ahead of it: a sleep that ended by it has ended. Under load a reading may
// have waited for seconds, and for a connection at that: what it does not refute stays.
func (c *clock) read(ctx context.Context) error {
	var best *reading
	var took time.Duration
	for range 3 {
		before := time.Now()
		remote, err := c.measure(ctx)
		if err != nil {
			return err
		}
		after := time.Now()
		if d := after.Sub(before); best == nil || d < took {
			best, took = &reading{local: after, remote: remote, measured: after}, d
		}
	}
	if old := c.reading.Load(); old != nil {
		if ahead := old.at(best.local).Sub(best.remote); ahead >= 0 && ahead <= took {
			best.remote = old.at(best.local)
		}
	}
	c.reading.Store(best)
	return nil
}

func (c *clock) wait() { c.group.Wait() }

//go:embed sql/read_clock.sql
var readClockSQL string
