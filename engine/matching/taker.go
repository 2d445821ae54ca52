package matching

import (
	"context"
	"slices"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// taker is one grant of a seat for a run that is being started.
type taker struct {
	table *table
	queue *queue
	seat  *Seat
	grant engine.Grant
	now   time.Time // as the store has it
	began time.Time
}

var _ engine.Takers = (*Dispatcher)(nil)

// Take turns credit of a seat into a grant for a run that is being started. Tables that could take it are asked in turn.
func (d *Dispatcher) Take(start *engine.StartRun) engine.Taker {
	now := engine.Micros(d.store.Now())
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx == nil || d.closed {
		return nil
	}
	tables := d.queues[queueKey{start.Namespace, start.Queue}]
	for i := range tables {
		t := tables[(d.asked+i)%len(tables)]
		if seat := t.seatFor(start, now); seat != nil {
			d.asked += i + 1
			return &taker{
				table: t, queue: t.queue(start.Queue), seat: seat, grant: engine.Grant{WorkerID: seat.request.Worker.ID, Token: engine.NewToken()},
				now: now, began: time.Now(),
			}
		}
	}
	return nil
}

// Waits says that somebody waits for the run, who is likely to have it from the store that makes it.
func (d *Dispatcher) Waits(start *engine.StartRun) bool {
	now := engine.Micros(d.store.Now())
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.queues[queueKey{start.Namespace, start.Queue}], func(t *table) bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.takes(start, now)
	})
}

// seatFor takes a credit of the seat that is to be served next, and puts it behind the others; nil when nobody here is to have the run.
func (t *table) seatFor(start *engine.StartRun, now time.Time) *Seat {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.takes(start, now) {
		return nil
	}
	return t.serveNext()
}

// takes says that somebody here is to have the run. It needs t.mu.
func (t *table) takes(start *engine.StartRun, now time.Time) bool {
	ends := start.ExpiresAt()
	return t.line.Len() > 0 && !start.AvailableAt.After(now) && (ends.IsZero() || ends.After(now)) && !t.limited && slices.Contains(t.types, start.Type) &&
		engine.Meets(t.offers, start.Requirements) && !time.Now().Before(t.queue(start.Queue).again) && !t.prefers(start.Queue, now)
}

// queue is one of those that the table serves.
func (t *table) queue(name string) *queue {
	return t.queues[slices.IndexFunc(t.queues, func(q *queue) bool { return q.name == name })]
}

// prefers says that something may be due in a queue that comes before this one. It needs t.mu.
func (t *table) prefers(queue string, now time.Time) bool {
	for _, q := range t.queues {
		if q.name == queue {
			break
		}
		if q.dirty || q.claimed || !q.due.IsZero() && !q.due.After(now) {
			return true
		}
	}
	return false
}

func (k *taker) Grant() engine.Grant { return k.grant }
func (k *taker) Now() time.Time      { return k.now }
func (k *taker) Types() []string     { return k.table.types }

// Give delivers the run. One that nobody takes any more is released, apart, for that is a write.
func (k *taker) Give(task engine.Task) {
	t, d := k.table, k.table.dispatcher
	d.observer.Claimed(time.Since(k.began), 1, nil)
	if t.deliver(k.seat, task) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return // the worker's goodbye, or its next heartbeat, frees the run
	}
	d.group.Go(func() { t.release(context.WithoutCancel(d.ctx), task.Lease) })
}

// Return gives the credit back.
func (k *taker) Return() {
	k.table.grant(k.seat, 1)
}

// Doubt gives the credit back, and has the table find out, when the pause after a failure is over, whether the grant counted.
func (k *taker) Doubt(err error) {
	t := k.table
	t.dispatcher.observer.Claimed(time.Since(k.began), 0, err)
	t.doubt(k.queue, k.grant)
	t.leaveDirty(k.queue, retryAfter)
	t.grant(k.seat, 1)
}
