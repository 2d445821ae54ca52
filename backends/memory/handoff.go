package memory

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// handoffs are those who wait to be given the runs of a call in the transaction that makes them.
type handoffs struct {
	takers engine.Handoff // nil: nobody waits

	mu   sync.Mutex
	held []*handoff
	over bool // the caller has gone: what is carried out after that is given to nobody
}

// handoff is one of them, with the run that it may be given.
type handoff struct {
	start *engine.StartRun
	taker engine.Match
	task  engine.Task
	taken bool // the task is its
}

// ask finds out who takes the runs of the call, in the order in which a claim would hand them out; so where one is left, those of its queue
// that come after it are not asked for.
func (h *handoffs) ask(t *tx, starts []engine.StartRun) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.takers == nil || h.over {
		return
	}
	var candidates []*engine.StartRun
	for i := range starts {
		if !starts[i].AvailableAt.After(starts[i].CreatedAt) {
			candidates = append(candidates, &starts[i])
		}
	}
	slices.SortStableFunc(candidates, func(a, b *engine.StartRun) int {
		return cmp.Or(b.Priority-a.Priority, a.AvailableAt.Compare(b.AvailableAt), compareIDs(a.ID, b.ID))
	})
	asked := Handoff{}
	t.call.Takers = asked
	closed := map[name]bool{}
	for _, p := range candidates {
		queue := name{p.Namespace, p.Queue}
		if closed[queue] {
			continue
		}
		closed[queue] = true
		if p.ConcurrencyKey != "" || t.disabled(p.Namespace) {
			continue
		}
		taker := h.takers.Offer(p)
		if taker == nil {
			continue
		}
		asked[p.ID] = asTaken{taker.Slot(), taker.Now(), taker.Types()}
		if !t.comesFirst(p, taker) {
			taker.Abort()
			continue
		}
		closed[queue] = false
		h.held = append(h.held, &handoff{start: p, taker: taker})
	}
}

// comesFirst says that a claim would give the taker a new run of the queue.
func (t *tx) comesFirst(p *engine.StartRun, taker engine.Match) bool {
	if w := t.db.workers[taker.Slot().WorkerID]; w == nil || w.Status != engine.WorkerOnline {
		return false
	}
	return len(t.find(func(r *Run) bool {
		return r.Namespace == p.Namespace && r.Queue == p.Queue && slices.Contains(taker.Types(), r.Type) && !r.Status.Ended() && r.Lease == nil &&
			!r.AvailableAt.IsZero() && !r.AvailableAt.After(taker.Now())
	})) == 0
}

// give claims the run that was just made for whoever is to have it, if anybody is.
func (h *handoffs) give(t *tx, run engine.ID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.held, func(one *handoff) bool { return one.start.ID == run })
	if i < 0 {
		return false
	}
	one := h.held[i]
	c := claim{tx: t, grants: []engine.ClaimSlot{one.taker.Slot()}, p: &engine.ClaimParams{
		Namespace: one.start.Namespace, Queue: one.start.Queue, HistoryBytes: engine.HistoryBytes, Now: engine.Micros(one.taker.Now()),
	}}
	c.take(t.db.runs[run])
	one.task, one.taken = c.out.Tasks[0], true
	return true
}

// settle tells all of them what has come of it, as far as the caller knows.
func (h *handoffs) settle(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	for _, one := range h.held {
		switch {
		case err != nil:
			one.taker.Unknown(err)
		case one.taken:
			one.taker.Commit(one.task)
		default:
			one.taker.Abort()
		}
	}
	h.held = nil
}

// Takers is who was asked, in a call, to take which of its runs, for a store that is to carry it out as well. They hear nothing.
type Handoff map[engine.ID]engine.Match

// Take is what was answered then.
func (t Handoff) Offer(start *engine.StartRun) engine.Match { return t[start.ID] }

type asTaken struct {
	grant engine.ClaimSlot
	now   time.Time
	types []string
}

func (a asTaken) Slot() engine.ClaimSlot { return a.grant }
func (a asTaken) Now() time.Time         { return a.now }
func (a asTaken) Types() []string        { return a.types }
func (asTaken) Commit(engine.Task)       {}
func (asTaken) Abort()                   {}
func (asTaken) Unknown(error)            {}
