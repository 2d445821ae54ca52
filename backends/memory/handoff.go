package memory

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// handoffs holds the matches of waiting pollers for the runs of one call.
type handoffs struct {
	handoff engine.Handoff // nil: no hand-off

	mu   sync.Mutex
	held []*handoff
	over bool // the caller has gone: runs made from now on are handed to nobody
}

// handoff is one match, with the run that it may get.
type handoff struct {
	start *engine.StartRun
	match engine.Match
	task  engine.Task
	taken bool // the task goes to it
}

// ask asks for matches for the runs of the call, in the order of a claim. Once one run of a queue
// finds none, the later runs of that queue are not asked for.
func (h *handoffs) ask(t *tx, starts []engine.StartRun) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.handoff == nil || h.over {
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
	t.call.Handoff = asked
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
		match := h.handoff.Offer(p)
		if match == nil {
			continue
		}
		asked[p.ID] = recordedMatch{match.Slot(), match.Now(), match.Types()}
		if !t.comesFirst(p, match) {
			match.Abort()
			continue
		}
		closed[queue] = false
		h.held = append(h.held, &handoff{start: p, match: match})
	}
}

// comesFirst says whether a claim would give the match a new run of the queue.
func (t *tx) comesFirst(p *engine.StartRun, match engine.Match) bool {
	if w := t.db.workers[match.Slot().WorkerID]; w == nil || w.Status != engine.WorkerOnline {
		return false
	}
	return len(t.find(func(r *Run) bool {
		return r.Namespace == p.Namespace && r.Queue == p.Queue && slices.Contains(match.Types(), r.Type) &&
			!r.Status.Ended() && r.Lease == nil && !r.Apart() &&
			!r.AvailableAt.IsZero() && !r.AvailableAt.After(match.Now())
	})) == 0
}

// claimFor claims the run that was just made for its match, if it has one.
func (h *handoffs) claimFor(t *tx, run engine.ID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.held, func(one *handoff) bool { return one.start.ID == run })
	if i < 0 {
		return false
	}
	one := h.held[i]
	c := claim{tx: t, slots: []engine.ClaimSlot{one.match.Slot()}, p: &engine.ClaimParams{
		Namespace: one.start.Namespace, Queue: one.start.Queue, HistoryBytes: engine.HistoryBytes,
		Now: engine.Micros(one.match.Now()),
	}}
	c.take(t.db.runs[run])
	one.task, one.taken = c.out.Tasks[0], true
	return true
}

// settle tells all matches their outcome, as far as the caller knows it.
func (h *handoffs) settle(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	for _, one := range h.held {
		switch {
		case err != nil:
			one.match.Unknown(err)
		case one.taken:
			one.match.Commit(one.task)
		default:
			one.match.Abort()
		}
	}
	h.held = nil
}

// Handoff holds the matches that were offered for the runs of a call, for a second store that
// carries out the same call. The matches are told nothing.
type Handoff map[engine.ID]engine.Match

// Offer returns the match that was offered for the run.
func (t Handoff) Offer(start *engine.StartRun) engine.Match { return t[start.ID] }

type recordedMatch struct {
	slot  engine.ClaimSlot
	now   time.Time
	types []string
}

func (a recordedMatch) Slot() engine.ClaimSlot { return a.slot }
func (a recordedMatch) Now() time.Time         { return a.now }
func (a recordedMatch) Types() []string        { return a.types }
func (recordedMatch) Commit(engine.Task)       {}
func (recordedMatch) Abort()                   {}
func (recordedMatch) Unknown(error)            {}
