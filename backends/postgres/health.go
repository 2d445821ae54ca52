package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/describe.sql
var describeSQL string

// Describe returns what the store is and where it is.
func (s *Store) Describe(ctx context.Context) (engine.Description, error) {
	d := engine.Description{Backend: "postgres", Database: s.database, Schema: s.schema}
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
		{Name: "durability", Value: fmt.Sprintf(
			"synchronous_commit=%s, fsync=%s, full_page_writes=%s", syncCommit, fsync, fullPages)},
		{Name: "connections to write", Value: writing},
		{Name: "connections to read", Value: reading},
		{Name: "notifications", Value: s.listenText(listening, since)},
		{Name: "clock offset", Value: s.clock.text()},
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
	batch := s.newBatch()
	batch.Queue(takeRoomSQL)
	batch.Queue(dropRoomSQL)
	err := s.pool.SendBatch(ctx, batch).Close()
	ended(err)
	return translate("try to write", err)
}

const (
	measureEvery = time.Minute
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
	measured time.Time // local time of the last attempt to measure
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
	return monotonic > measureEvery || (wall-monotonic).Abs() > suspended
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
				// Keep using the old offset, and measure again in a minute instead of at every
				// call.
				c.reading.CompareAndSwap(r, &reading{local: local, remote: r.at(local), measured: r.measured})
			}
		})
	}
	return engine.Micros(r.at(local))
}

// read takes three readings and keeps the fastest, which is the most exact. The database's clock
// showed the value at the latest when the answer arrived, so this clock is never ahead of it: a
// sleep that ended by this clock has ended. Under load a reading may take seconds; if the old
// offset is consistent with the new reading, it stays.
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
