package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/describe.sql
var describeSQL string

// Describe returns what the store is and where it is.
func (s *Store) Describe(ctx context.Context) (engine.Description, error) {
	d := engine.Description{Backend: "postgres", Database: s.database, Schema: s.schema, Warnings: s.warnings}
	writing, reading := poolText(s.pool.Stat()), poolText(s.views.Stat()) // before this call takes one itself
	restored, syncCommit, fsync, fullPages := "", "", "", ""
	err := s.view(ctx, "describe the database", func(ctx context.Context) (err error) {
		if restored, err = s.restored(ctx); err != nil {
			return err
		}
		return s.views.QueryRow(ctx, describeSQL).Scan(&d.Version, &d.Bytes, &syncCommit, &fsync, &fullPages)
	})
	listening, since := s.notifier.state()
	d.Notifications = s.notifier.mode()
	d.Facts = []engine.Fact{
		{Name: "schema", Value: s.schemaName},
		{Name: "durability", Value: fmt.Sprintf(
			"synchronous_commit=%s, fsync=%s, full_page_writes=%s", syncCommit, fsync, fullPages)},
		{Name: "connections to write", Value: writing},
		{Name: "connections to read", Value: reading},
		{Name: "notifications", Value: s.listenText(listening, since)},
		{Name: "clock offset", Value: s.clock.text()},
		{Name: "clock uncertainty", Value: fmt.Sprintf(
			"%.1f ms", float64(s.clock.uncertainty())/float64(time.Millisecond))},
	}
	if restored != "" {
		d.Facts = append([]engine.Fact{{Name: "restored", Value: restored}}, d.Facts...)
	}
	return d, err
}

func poolText(p *pgxpool.Stat) string {
	return fmt.Sprintf("%d busy, %d idle, at most %d", p.AcquiredConns(), p.IdleConns(), p.MaxConns())
}

func (s *Store) listenText(listening bool, since time.Time) string {
	switch {
	case s.pooled:
		return fmt.Sprintf("not heard behind a pooler, looking every %s", pollEvery)
	case listening:
		return "listening since " + moment(since)
	}
	return fmt.Sprintf("not listening since %s, looking every %s", moment(since), pollEvery)
}

// moment formats a time by this machine's clock.
func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// lateAfter is how long a write may take before Health checks by a write of its own whether the
// database accepts writes. That one may take healthTimeout, and Health must report a problem within
// 5 s.
const lateAfter = 2 * time.Second

// suspicions records signs that the database answers reads but does not accept writes: its disk is
// full or hangs, or a synchronous standby is gone. The zero value has none.
type suspicions struct {
	mu     sync.Mutex
	begun  map[uint64]time.Time // writes in progress
	next   uint64
	failed bool // the last write failed because the database was not available
}

// write records that a write begins; the function that it returns records how it ended.
func (p *suspicions) write() (ended func(error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun == nil {
		p.begun = map[uint64]time.Time{}
	}
	number := p.next
	p.next++
	p.begun[number] = time.Now()
	return func(err error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.begun, number)
		if err == nil {
			p.failed = false
			return
		}
		switch engine.KindOf(translate("write", err)) {
		case engine.KindUnavailable, engine.KindExhausted:
			p.failed = true
		}
	}
}

// any says whether only a write can show that writes are accepted.
func (p *suspicions) any() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, begun := range p.begun {
		if time.Since(begun) >= lateAfter {
			return true
		}
	}
	return p.failed
}

//go:embed sql/take_room.sql
var takeRoomSQL string

//go:embed sql/drop_room.sql
var dropRoomSQL string

// tryToWrite makes a write that leaves nothing behind.
func (s *Store) tryToWrite(ctx context.Context) error {
	ended := s.suspicions.write()
	batch := &pgx.Batch{}
	batch.Queue(takeRoomSQL)
	batch.Queue(dropRoomSQL)
	err := s.pool.send(ctx, batch)
	ended(err)
	return translate("try to write", err)
}

const (
	measureEvery = time.Minute
	measureSoon  = 10 * time.Second      // after a coarse reading, because timers are late by its uncertainty
	coarse       = 10 * time.Millisecond // uncertainty of a coarse reading
	// suspended is how far wall clock and monotonic clock may drift apart before the offset is
	// measured again.
	suspended = time.Second
)

// clock computes the database's time from this machine's clock: a reading of the database's clock,
// plus the time since by the local monotonic clock. It asks the database only when somebody asks
// for the time and the reading is old.
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
	within   time.Duration // the database's clock showed a time from remote to remote + within
	before   time.Duration // within of the last reading, which calls in progress may have used
	measured time.Time     // local time of the last successful measurement
}

// text says how far the database's clock is ahead of this machine's.
func (c *clock) text() string {
	r := c.reading.Load()
	offset := r.remote.Sub(r.local.Round(0)).Round(100 * time.Microsecond)
	return fmt.Sprintf("%+.1f ms, measured %s", float64(offset)/float64(time.Millisecond), moment(r.measured))
}

func (r *reading) at(local time.Time) time.Time { return r.remote.Add(local.Sub(r.local)) }

func (r *reading) stale(local time.Time) bool {
	monotonic, wall := local.Sub(r.local), local.Round(0).Sub(r.local.Round(0))
	return monotonic > measureEvery || r.within > coarse && monotonic > measureSoon ||
		(wall-monotonic).Abs() > suspended
}

// now returns the database's time. If the reading is old, it starts a new one in the background.
func (c *clock) now() time.Time {
	local := time.Now()
	r := c.reading.Load()
	if r.stale(local) && c.measuring.TryLock() {
		c.group.Go(func() {
			defer c.measuring.Unlock()
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			if err := c.read(ctx); err != nil {
				// Keep using the old offset, and measure again in a minute instead of at every call.
				c.reading.CompareAndSwap(r, &reading{local: local, remote: r.at(local), within: r.within,
					before: r.before, measured: r.measured})
			}
		})
	}
	return engine.Micros(r.at(local))
}

// uncertainty returns how far the database's clock may be ahead of what now returned.
func (c *clock) uncertainty() time.Duration {
	r := c.reading.Load()
	return max(r.within, r.before)
}

// read takes three readings and keeps the fastest, which is the most exact. The database's clock
// showed the value at the latest when the answer arrived, so this clock is never ahead of it: a
// sleep that ended by this clock has ended. It may be behind by as long as the answer took. Under
// load a reading may wait for seconds; what it does not contradict of the last one stays.
func (c *clock) read(ctx context.Context) error {
	var best *reading
	for range 3 {
		before := time.Now()
		remote, err := c.measure(ctx)
		if err != nil {
			return err
		}
		after := time.Now()
		// what was read is cut to whole microseconds
		if within := after.Sub(before) + time.Microsecond; best == nil || within < best.within {
			best = &reading{local: after, remote: remote, within: within, measured: after}
		}
	}
	if old := c.reading.Load(); old != nil {
		best.before = old.within
		earliest, latest := old.at(best.local), old.at(best.local).Add(old.within)
		end := best.remote.Add(best.within)
		if !earliest.After(end) && !latest.Before(best.remote) { // both may be true
			if earliest.After(best.remote) {
				best.remote = earliest
			}
			if latest.Before(end) {
				end = latest
			}
			best.within = end.Sub(best.remote)
		}
	}
	c.reading.Store(best)
	return nil
}

func (c *clock) wait() { c.group.Wait() }

//go:embed sql/read_clock.sql
var readClockSQL string
