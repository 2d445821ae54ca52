package matching

import (
	"context"
	"slices"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// match is a slot of a poller for a run that is being started.
type match struct {
	group  *group
	queue  *queue
	poller *Poller
	slot   engine.ClaimSlot
	now    time.Time // by the store's clock
	began  time.Time
}

var _ engine.Handoff = (*Matcher)(nil)

// Offer returns a slot of the waiting poller that should get this run, or nil if none is waiting.
// Groups that could take it are asked one after the other.
func (d *Matcher) Offer(start *engine.StartRun) engine.Match {
	now := engine.Micros(d.store.Now())
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx == nil || d.closed {
		return nil
	}
	groups := d.queues[queueKey{start.Namespace, start.Queue}]
	for i := range groups {
		t := groups[(d.asked+i)%len(groups)]
		if poller := t.pollerFor(start, now); poller != nil {
			d.asked += i + 1
			return &match{
				group: t, queue: t.queue(start.Queue), poller: poller,
				slot: engine.ClaimSlot{WorkerID: poller.request.Worker.ID, Token: engine.NewToken()},
				now:  now, began: time.Now(),
			}
		}
	}
	return nil
}

// Waits says whether a poller waits for the run, so that a hand-off is likely.
func (d *Matcher) Waits(start *engine.StartRun) bool {
	now := engine.Micros(d.store.Now())
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.queues[queueKey{start.Namespace, start.Queue}], func(t *group) bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.accepts(start, now)
	})
}

// pollerFor returns the next poller for the run, takes one credit from it and moves it behind the
// others; nil if the group does not accept the run.
func (t *group) pollerFor(start *engine.StartRun, now time.Time) *Poller {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.accepts(start, now) {
		return nil
	}
	return t.serveNext()
}

// accepts says whether a poller of the group should get the run. t.mu is held.
func (t *group) accepts(start *engine.StartRun, now time.Time) bool {
	ends := start.ExpiresAt()
	return t.ready.Len() > 0 && !start.AvailableAt.After(now) && (ends.IsZero() || ends.After(now)) && !t.limited &&
		slices.Contains(t.types, start.Type) &&
		engine.Meets(t.offers, start.Requirements) && !time.Now().Before(t.queue(start.Queue).again) &&
		!t.prefers(start.Queue, now)
}

// queue returns the group's queue with that name.
func (t *group) queue(name string) *queue {
	return t.queues[slices.IndexFunc(t.queues, func(q *queue) bool { return q.name == name })]
}

// prefers says whether a run may be due in a queue that the group prefers to this one. t.mu is
// held.
func (t *group) prefers(queue string, now time.Time) bool {
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

func (k *match) Slot() engine.ClaimSlot { return k.slot }
func (k *match) Now() time.Time         { return k.now }
func (k *match) Types() []string        { return k.group.types }

// Commit delivers the run. If its poller is gone, the run is released in a new goroutine, because
// that is a write.
func (k *match) Commit(task engine.Task) {
	t, d := k.group, k.group.matcher
	d.observer.Claimed(time.Since(k.began), 1, nil)
	if t.deliver(k.poller, task) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return // the deregistration of the worker, or its next heartbeat, frees the run
	}
	d.running.Go(func() { t.release(context.WithoutCancel(d.ctx), task.Lease) })
}

// Abort gives the credit back.
func (k *match) Abort() {
	k.group.addCredit(k.poller, 1)
}

// Unknown gives the credit back. After the pause for failures, the group checks whether the slot
// was claimed.
func (k *match) Unknown(err error) {
	t := k.group
	t.matcher.observer.Claimed(time.Since(k.began), 0, err)
	t.suspect(k.queue, k.slot)
	t.leaveDirty(k.queue, retryAfter)
	t.addCredit(k.poller, 1)
}
