package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// handoffs are the waiting pollers that get runs of a call in the transaction that makes them.
type handoffs struct {
	takers  engine.Takers // nil: nobody waits
	offered []handoff
}

// handoff is one of them, with the run that it may get.
type handoff struct {
	run      engine.ID
	taker    engine.Taker
	task     engine.Task
	accepted bool // the task is its
}

// offer finds pollers for the runs of the call, in the order in which a claim would hand them out;
// once one finds none, the later ones of its queue are not offered. It may be called again after
// the transaction was rolled back.
func (h *handoffs) offer(t *tx, starts []engine.StartRun) error {
	h.abort()
	if h.takers == nil {
		return nil
	}
	candidates := make([]*engine.StartRun, 0, len(starts))
	for i := range starts {
		if p := &starts[i]; !p.AvailableAt.After(p.CreatedAt) {
			candidates = append(candidates, p)
		}
	}
	slices.SortStableFunc(candidates, func(a, b *engine.StartRun) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.AvailableAt.Compare(b.AvailableAt), bytes.Compare(a.ID[:], b.ID[:]))
	})
	looked := queueLooks{tx: t, online: make(map[string]bool, 1)}
	closed := make(map[queueKey]bool, 1)
	for _, p := range candidates {
		queue := queueKey{p.Namespace, p.Queue}
		if closed[queue] {
			continue
		}
		closed[queue] = true
		if p.ConcurrencyKey != "" || related(&p.Run) || t.queues.disabled(p.Namespace) {
			continue
		}
		taker := h.takers.Take(p)
		if taker == nil {
			continue
		}
		h.offered = append(h.offered, handoff{run: p.ID, taker: taker})
		first, err := looked.isNext(queue, taker)
		if err != nil {
			return err
		}
		if closed[queue] = !first; !first {
			h.offered = h.offered[:len(h.offered)-1]
			taker.Return()
		}
	}
	return nil
}

// queueLooks caches what was read for the takers of a call. Runs that the call itself makes come
// later in the order, so each read counts for all of it.
type queueLooks struct {
	*tx
	online map[string]bool
	queues []checkedQueue
}

// checkedQueue is a queue, and types that a worker takes from it.
type checkedQueue struct {
	queue queueKey
	types []string
	due   bool // something is
}

// isNext reports whether a claim would give the taker a new run of the queue.
func (l *queueLooks) isNext(queue queueKey, taker engine.Taker) (bool, error) {
	worker := taker.Grant().WorkerID
	if _, known := l.online[worker]; !known {
		status, err := l.workerStatus(worker)
		if err != nil {
			return false, err
		}
		l.online[worker] = status == engine.WorkerOnline
	}
	if !l.online[worker] {
		return false, nil
	}
	for i := range l.queues {
		if seen := &l.queues[i]; seen.queue == queue && slices.Equal(seen.types, taker.Types()) {
			return !seen.due, nil
		}
	}
	due, err := l.anyDue(queue, taker)
	l.queues = append(l.queues, checkedQueue{queue, taker.Types(), due})
	return !due, err
}

// anyDue reports whether there are runs in the queue, of the taker's types and of any requirements,
// which may come before a new one.
func (t *tx) anyDue(queue queueKey, taker engine.Taker) (due bool, err error) {
	now := instant("now", engine.Micros(taker.Now()))
	for _, l := range t.queues.lanesOf[queue] {
		if due || !slices.Contains(taker.Types(), l.kind) {
			continue
		}
		due, err = t.session.found(&claimSQL, func(*row) error { return nil }, num("lane_id", l.id), now, num("limit", 1))
		if err != nil {
			return false, err
		}
	}
	return due, nil
}

// of is who is to be given the run; nil: nobody.
func (h *handoffs) of(run engine.ID) *handoff {
	for i := range h.offered {
		if h.offered[i].run == run {
			return &h.offered[i]
		}
	}
	return nil
}

// finish tells all of them the outcome, once the transaction is over.
func (h *handoffs) finish(err error) {
	for i := range h.offered {
		if one := &h.offered[i]; err == nil && one.accepted {
			one.taker.Give(one.task)
		} else {
			one.taker.Return()
		}
	}
	h.offered = nil
}

func (h *handoffs) abort() { h.finish(context.Canceled) }

// columns is what the row of a new run says of who has it. A nil one is nobody.
func (h *handoff) columns(p *engine.StartRun) []arg {
	if h == nil {
		return []arg{num("status", engine.RunPending), instant("available_at", engine.Micros(p.AvailableAt)), text("worker_id", ""), instant("started_at", time.Time{})}
	}
	return []arg{
		num("status", engine.RunRunning), instant("available_at", time.Time{}),
		text("worker_id", h.taker.Grant().WorkerID), instant("started_at", engine.Micros(h.taker.Now())),
	}
}

// acceptHandoff makes the lease of a run that was inserted as claimed by this poller.
func (t *tx) acceptHandoff(p *engine.StartRun, one *handoff) error {
	grant, now := one.taker.Grant(), engine.Micros(one.taker.Now())
	run := stored(p)
	one.accepted = true
	t.ringRun(p.ID)
	t.Ring(engine.Ring{Kind: engine.RingQueue, Namespace: p.Namespace, Name: p.Queue, Taken: true})
	t.queues.leased(queueKey{p.Namespace, p.Queue}, p.Type, 1)
	one.task = engine.Task{Run: run, Lease: engine.Lease{Namespace: run.Namespace, RunID: run.ID, Token: grant.Token}, ClaimedAt: now}
	return t.leaseRecent(&one.task.Run, grant, now)
}
