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
	beatPace      = 25 * time.Millisecond // from the beginning of a group of several to that of the next
	maxBeatGroups = 4                     // at a time
	beatsWorth    = 64                    // a commit of their own, for each group under way, before it is time
	maxBeats      = 512                   // in one commit
	maxBeatLeases = 8192                  // that these name, about
)

// beatCall is one call of Heartbeat, and its answer.
type beatCall struct {
	p    *engine.HeartbeatParams
	came time.Time
	beat engine.Beat
	// settled says that the group's commit carried the call out; otherwise, without err, nothing
	// has happened, and the call is to go on in a transaction of its own.
	settled bool
	err     error
	done    chan struct{}
}

// beats gathers heartbeats into groups, each of which is one transaction. They are a line of their
// own, for a lease lives from them and must not wait for large writes.
//
// Workers come one by one, spread over the interval in which each is heard, so hardly two would
// meet in the time of a commit. Therefore a group that follows one of several waits for its time,
// in which others come, and so does one that would begin beside another. Who is alone waits for
// nobody: where few workers are, each goes at once. Those that may wait go with the next group, and
// make one themselves when the first of them has waited as long as it may, or they fill one.
//
// A group holds no worker that somebody else is changing, nor one that is unknown or OFFLINE, nor
// one of whose leases something is to be freed: these go on in transactions of their own, where
// each waits, fails or changes runs alone.
type beats struct {
	store *Store

	mu      sync.Mutex
	waiting []*beatCall
	under   int       // groups under way
	began   time.Time // the latest of all groups
	several bool      // calls were in that one
	timer   *time.Timer
	look    time.Time // when the timer has somebody look again; zero: it does not run
}

// gather has c written with whatever else comes, and returns when it is settled, has failed, or is to go on alone.
func (b *beats) gather(c *beatCall) error {
	c.came, c.done = time.Now(), make(chan struct{})
	b.mu.Lock()
	b.waiting = append(b.waiting, c)
	b.advance()
	b.mu.Unlock()
	<-c.done
	return c.err
}

// advance begins the groups that can begin. The caller has locked b.
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

// wait is how long it is until a group is to begin.
func (b *beats) wait() time.Duration {
	urgent := false
	var until time.Time // that deferred calls wait
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

// lookAgain has one look again after that time.
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

// take removes the calls of a group: of each worker its first, as many as fit into one commit.
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

// carry carries a group out, and answers it.
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

// writeBeats settles what it can of the group, in one transaction.
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
		return // nobody is settled
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

// heartbeats notes the heartbeats of which that is all there is to do, and returns them.
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

// noteBeats writes the rows of workers that are locked.
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
