package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// handoffs holds the matches of waiting pollers for the runs of one call.
type handoffs struct {
	from    engine.Handoff // nil: no hand-off
	offered []handoff
}

// handoff is one match, with the run that it may get.
type handoff struct {
	run      engine.ID
	match    engine.Match
	task     engine.Task
	accepted bool // the task goes to it
}

// offer asks for matches for the runs of the call, in the order of a claim. Once one run of a queue
// finds none, the later runs of that queue are not offered. It may be called again after a
// rollback.
func (h *handoffs) offer(t *tx, starts []engine.StartRun) error {
	h.abort()
	if h.from == nil {
		return nil
	}
	candidates := make([]*engine.StartRun, 0, len(starts))
	for i := range starts {
		if p := &starts[i]; !p.AvailableAt.After(p.CreatedAt) {
			candidates = append(candidates, p)
		}
	}
	slices.SortStableFunc(candidates, func(a, b *engine.StartRun) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.AvailableAt.Compare(b.AvailableAt),
			bytes.Compare(a.ID[:], b.ID[:]))
	})
	looked := queueLooks{tx: t, online: make(map[string]bool, 1)}
	closed := make(map[queueKey]bool, 1)
	for _, p := range candidates {
		queue := queueKey{p.Namespace, p.Queue}
		if closed[queue] {
			continue
		}
		closed[queue] = true
		if p.ConcurrencyKey != "" || needsAllColumns(&p.Run) || t.queues.disabled(p.Namespace) {
			continue
		}
		match := h.from.Offer(p)
		if match == nil {
			continue
		}
		h.offered = append(h.offered, handoff{run: p.ID, match: match})
		first, err := looked.isNext(queue, match)
		if err != nil {
			return err
		}
		if closed[queue] = !first; !first {
			h.offered = h.offered[:len(h.offered)-1]
			match.Abort()
		}
	}
	return nil
}

// queueLooks caches what was read for the matches of a call. Runs that the call makes itself come
// later in claim order, so each read is valid for the whole call.
type queueLooks struct {
	*tx
	online map[string]bool
	queues []checkedQueue
}

// checkedQueue is a queue and the types that a worker takes from it.
type checkedQueue struct {
	queue queueKey
	types []string
	due   bool // a run is due
}

// isNext reports whether a claim would give the match a new run of the queue.
func (l *queueLooks) isNext(queue queueKey, match engine.Match) (bool, error) {
	worker := match.Slot().WorkerID
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
		if seen := &l.queues[i]; seen.queue == queue && slices.Equal(seen.types, match.Types()) {
			return !seen.due, nil
		}
	}
	due, err := l.anyDue(queue, match)
	l.queues = append(l.queues, checkedQueue{queue, match.Types(), due})
	return !due, err
}

// anyDue reports whether the queue has due runs of the match's types, with any requirements, which
// may come before a new run.
func (t *tx) anyDue(queue queueKey, match engine.Match) (due bool, err error) {
	now := instant("now", engine.Micros(match.Now()))
	for _, l := range t.queues.lanesOf[queue] {
		if due || !slices.Contains(match.Types(), l.kind) {
			continue
		}
		due, err = t.session.found(&claimSQL, func(*row) error {
			return nil
		}, num("lane_id", l.id), now, num("limit", 1))
		if err != nil {
			return false, err
		}
	}
	return due, nil
}

// of returns the match that gets the run; nil if none does.
func (h *handoffs) of(run engine.ID) *handoff {
	for i := range h.offered {
		if h.offered[i].run == run {
			return &h.offered[i]
		}
	}
	return nil
}

// finish tells all matches their outcome, once the transaction is over.
func (h *handoffs) finish(err error) {
	for i := range h.offered {
		if one := &h.offered[i]; err == nil && one.accepted {
			one.match.Commit(one.task)
		} else {
			one.match.Abort()
		}
	}
	h.offered = nil
}

func (h *handoffs) abort() { h.finish(context.Canceled) }

// claims makes a new run claimed by this poller; a nil handoff changes nothing.
func (h *handoff) claims(run *engine.Run) {
	if h != nil {
		run.Status, run.AvailableAt = engine.RunRunning, time.Time{}
		run.WorkerID, run.StartedAt = h.match.Slot().WorkerID, engine.Micros(h.match.Now())
	}
}

// acceptHandoff makes the lease of a run that was inserted as claimed by this poller.
func (t *tx) acceptHandoff(p *engine.StartRun, one *handoff) error {
	slot, now := one.match.Slot(), engine.Micros(one.match.Now())
	run := started(p)
	one.accepted = true
	t.notifyRun(p.ID)
	t.Notify(engine.Notification{Kind: engine.NotifyQueue, Namespace: p.Namespace, Name: p.Queue, Claimed: true})
	t.queues.leased(queueKey{p.Namespace, p.Queue}, p.Type, 1)
	one.task = engine.Task{Run: run, Lease: engine.Lease{Namespace: run.Namespace, RunID: run.ID, Token: slot.Token},
		ClaimedAt: now}
	return t.leaseRecent(&one.task.Run, slot, now)
}
