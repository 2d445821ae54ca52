package postgres

import (
	"context"
	_ "embed"
	"sync"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storekit"
	"github.com/kagzi/kagzi/engine"
)

const (
	beatPace      = 25 * time.Millisecond // from the start of a group of several calls to the next group
	maxBeatGroups = 4                     // groups at the same time
	beatsWorth    = 64                    // waiting calls per running group that start another group early
	maxBeats      = 512                   // calls in one commit
	maxBeatLeases = 8192                  // leases named in one commit, about
)

// beatCall is one call of Heartbeat, and its answer.
type beatCall struct {
	p    *engine.HeartbeatParams
	came time.Time
	beat engine.Beat
	// settled means that the group's commit carried the call out. If it is false and err is nil,
	// nothing has happened, and the call continues in its own transaction.
	settled bool
	err     error
	done    chan struct{}
}

// beats gathers heartbeats into groups, each of which is one transaction. They have their own
// queue, because a lease depends on them and they must not wait for large writes.
//
// Heartbeats are spread over the heartbeat interval, so few would meet during one commit. Therefore
// a group that follows a group of several calls waits a moment (beatPace) for others, and so does a
// group that would start while another is running. A single call does not wait: with few workers,
// each heartbeat goes at once. Calls that may wait (MaxWait) join the next group. They start one
// themselves when the first of them has waited as long as it may, or when they fill one.
//
// A group leaves out workers that another transaction is changing, that are unknown or OFFLINE, or
// that have leases to free. These calls continue in their own transactions, where each can wait,
// fail or change runs.
type beats struct {
	store *Store

	mu      sync.Mutex
	waiting []*beatCall
	under   int       // running groups
	began   time.Time // when the latest group began
	several bool      // that group had several calls
	timer   *time.Timer
	look    time.Time // when the timer fires to call advance; zero: it is not set
}

// gather writes c in a group with others. It returns when c is settled, has failed, or must
// continue in its own transaction.
func (b *beats) gather(c *beatCall) error {
	c.came, c.done = time.Now(), make(chan struct{})
	b.mu.Lock()
	b.waiting = append(b.waiting, c)
	b.advance()
	b.mu.Unlock()
	<-c.done
	return c.err
}

// advance starts the groups that can start. The caller has locked b.
func (b *beats) advance() {
	for len(b.waiting) > 0 && b.under < maxBeatGroups {
		if wait := b.wait(); wait > 0 {
			b.lookAgain(wait)
			return
		}
		group := b.take()
		b.under++
		b.began, b.several = time.Now(), len(group) > 1
		b.store.background.Go(func() { b.carry(group) })
	}
}

// wait returns how long until the next group may start.
func (b *beats) wait() time.Duration {
	urgent := false
	var until time.Time // how long deferred calls may wait
	for _, c := range b.waiting {
		if c.p.MaxWait <= 0 {
			urgent = true
		} else if at := c.came.Add(c.p.MaxWait); until.IsZero() || at.Before(until) {
			until = at
		}
	}
	switch {
	case !urgent && len(b.waiting) < maxBeats:
		return time.Until(until)
	case b.under == 0 && !b.several, len(b.waiting) >= (b.under+1)*beatsWorth:
		return 0
	}
	return time.Until(b.began.Add(beatPace))
}

// lookAgain calls advance after that time.
func (b *beats) lookAgain(wait time.Duration) {
	at := time.Now().Add(wait)
	if !b.look.IsZero() && !at.Before(b.look) {
		return
	}
	b.look = at
	if b.timer != nil {
		b.timer.Reset(wait)
		return
	}
	b.timer = time.AfterFunc(wait, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.look = time.Time{}
		b.advance()
	})
}

// take removes the calls of a group: the first of each worker, as many as fit into one commit.
func (b *beats) take() (group []*beatCall) {
	left := b.waiting[:0]
	leases := 0
	seen := make(map[string]bool, len(b.waiting))
	for _, c := range b.waiting {
		again, named := seen[c.p.WorkerID], len(c.p.Held)
		seen[c.p.WorkerID] = true
		if again || len(group) == maxBeats || leases > 0 && leases+named > maxBeatLeases {
			left = append(left, c)
			continue
		}
		leases += named
		group = append(group, c)
	}
	clear(b.waiting[len(left):])
	b.waiting = left
	return group
}

// carry carries out a group and answers it.
func (b *beats) carry(group []*beatCall) {
	b.store.writeBeats(group)
	b.mu.Lock()
	b.under--
	b.advance()
	b.mu.Unlock()
	for _, c := range group {
		close(c.done)
	}
}

// writeBeats settles as many calls of the group as it can, in one transaction.
func (s *Store) writeBeats(group []*beatCall) {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	var beating []*beatCall
	err := s.attempt(ctx, nil, func(t *tx) (err error) {
		beating, err = t.heartbeats(group)
		t.calls = len(beating)
		return err
	})
	if err == nil {
		for _, c := range beating {
			c.settled = true
		}
		return
	}
	if alone(err) {
		return // no call is settled
	}
	err = translate("note heartbeats", err)
	for _, c := range group {
		c.err = err
	}
}

//go:embed sql/lock_beating.sql
var lockBeatingSQL string

//go:embed sql/heartbeats.sql
var heartbeatsSQL string

// heartbeats writes the heartbeats that need nothing else, and returns them.
func (t *tx) heartbeats(group []*beatCall) (beating []*beatCall, err error) {
	var all, holding []string
	for _, c := range group {
		all = append(all, c.p.WorkerID)
		if c.p.Whole || len(c.p.Held) > 0 {
			holding = append(holding, c.p.WorkerID)
		}
	}
	var worker string
	var status engine.WorkerStatus
	alive := make(map[string]engine.WorkerStatus, len(group))
	t.later(lockBeatingSQL, args{"worker_ids": all}, []any{&worker, numberOf(&status)}, func() {
		alive[worker] = status
	})
	leases, err := t.leasesOf(holding)
	if err != nil {
		return nil, err
	}
	byWorker := make(map[string][]heldLease, len(group))
	for _, l := range leases {
		byWorker[l.worker] = append(byWorker[l.worker], l)
	}
	for _, c := range group {
		known := false
		c.beat = engine.Beat{}
		c.beat.Status, known = alive[c.p.WorkerID]
		if unnamed := compare(c.p, byWorker[c.p.WorkerID], &c.beat); known && len(unnamed) == 0 {
			beating = append(beating, c)
		}
	}
	return beating, t.noteBeats(beating)
}

// noteBeats writes the rows of locked workers.
func (t *tx) noteBeats(beating []*beatCall) error {
	if len(beating) == 0 {
		return nil
	}
	var workers, stats []string
	var active, completed, failed, nows []int64
	for _, c := range beating {
		workers, stats = append(workers, c.p.WorkerID), append(stats, storekit.StatsText(c.p.Stats))
		active, completed, failed = append(active, int64(c.p.Active)), append(completed, int64(c.p.Completed)),
			append(failed, int64(c.p.Failed))
		nows = append(nows, micros(c.p.Now))
	}
	return t.queue(heartbeatsSQL, args{
		"worker_ids": workers, "active": active, "completed": completed, "failed": failed, "stats": stats, "now": nows,
	})
}
