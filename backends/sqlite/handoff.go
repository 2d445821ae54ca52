package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// handoffs are those who wait to be given the runs of a call in the transaction that makes them.
type handoffs struct {
	takers engine.Takers // nil: nobody waits
	held   []handoff
}

// handoff is one of them, with the run that it may be given.
type handoff struct {
	run   engine.ID
	taker engine.Taker
	task  engine.Task
	taken bool // the task is its
}

// ask finds out who takes the runs of the call, in the order in which a claim would hand them out; so where one is left, those of its queue
// that come after it are not asked for. It may be called again, when the transaction was rolled back.
func (h *handoffs) ask(t *tx, starts []engine.StartRun) error {
	h.giveBack()
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
	looked := looks{tx: t, online: make(map[string]bool, 1)}
	closed := make(map[queueKey]bool, 1)
	for _, p := range candidates {
		queue := queueKey{p.Namespace, p.Queue}
		if closed[queue] {
			continue
		}
		closed[queue] = true
		if p.ConcurrencyKey != "" || related(&p.Run) || t.known.disabled(p.Namespace) {
			continue
		}
		taker := h.takers.Take(p)
		if taker == nil {
			continue
		}
		h.held = append(h.held, handoff{run: p.ID, taker: taker})
		first, err := looked.comesFirst(queue, taker)
		if err != nil {
			return err
		}
		if closed[queue] = !first; !first {
			h.held = h.held[:len(h.held)-1]
			taker.Return()
		}
	}
	return nil
}

// looks is what was found out for the takers of a call. What the call itself makes comes after what is taken, so each look counts for all of it.
type looks struct {
	*tx
	online map[string]bool
	lines  []line
}

// line is a queue, and types that a worker takes from it.
type line struct {
	queue queueKey
	types []string
	due   bool // something is
}

// comesFirst says that a claim would give the taker a new run of the queue.
func (l *looks) comesFirst(queue queueKey, taker engine.Taker) (bool, error) {
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
	for i := range l.lines {
		if seen := &l.lines[i]; seen.queue == queue && slices.Equal(seen.types, taker.Types()) {
			return !seen.due, nil
		}
	}
	due, err := l.somethingDue(queue, taker)
	l.lines = append(l.lines, line{queue, taker.Types(), due})
	return !due, err
}

// somethingDue says that there are runs in the queue, of the taker's types and of any requirements, which may come before a new one.
func (t *tx) somethingDue(queue queueKey, taker engine.Taker) (due bool, err error) {
	now := instant("now", engine.Micros(taker.Now()))
	for _, l := range t.known.queues[queue] {
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
	for i := range h.held {
		if h.held[i].run == run {
			return &h.held[i]
		}
	}
	return nil
}

// settle tells all of them what has come of it, once the transaction is over.
func (h *handoffs) settle(err error) {
	for i := range h.held {
		if one := &h.held[i]; err == nil && one.taken {
			one.taker.Give(one.task)
		} else {
			one.taker.Return()
		}
	}
	h.held = nil
}

func (h *handoffs) giveBack() { h.settle(context.Canceled) }

// claims makes a new run one that this one has. A nil one is nobody.
func (h *handoff) claims(run *engine.Run) {
	if h != nil {
		run.Status, run.AvailableAt = engine.RunRunning, time.Time{}
		run.WorkerID, run.StartedAt = h.taker.Grant().WorkerID, engine.Micros(h.taker.Now())
	}
}

// handOff makes the lease of a run that was inserted as this one's.
func (t *tx) handOff(p *engine.StartRun, one *handoff) error {
	grant, now := one.taker.Grant(), engine.Micros(one.taker.Now())
	run := started(p)
	one.taken = true
	t.ringRun(p.ID)
	t.Ring(engine.Ring{Kind: engine.RingQueue, Namespace: p.Namespace, Name: p.Queue, Taken: true})
	t.known.leased(queueKey{p.Namespace, p.Queue}, p.Type, 1)
	one.task = engine.Task{Run: run, Lease: engine.Lease{Namespace: run.Namespace, RunID: run.ID, Token: grant.Token}, ClaimedAt: now}
	return t.leaseFresh(&one.task.Run, grant, now)
}
