package postgres

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// handoffs are the waiting pollers that get runs of a group in the transaction that makes them. nil: nobody waits.
type handoffs struct {
	byRun    map[engine.ID]*handoff
	now      time.Time // of all their claims
	meetings map[string]int32
	met      []int32 // and for each, what decides whether something else is due: a queue and one of the types
	spaces   []string
	queues   []string
	types    []string
}

// handoff is one of them, with the run that it may be given.
type handoff struct {
	match   engine.Match
	start   *engine.StartRun
	meeting int32 // from 1: the queue and types in which nothing else must be due
	taken   bool  // so the statement says
}

// handoffsFor finds the matches for the runs of these calls, in the order in which a claim would
// hand them out; so where one is left, those of its queue that come after it are not asked for.
// nil: there is none.
func handoffsFor(calls []*call) *handoffs {
	type candidate struct {
		start   *engine.StartRun
		handoff engine.Handoff
	}
	var candidates []candidate
	for _, c := range calls {
		for i := range c.start.starts {
			if r := &c.start.starts[i]; c.start.handoff != nil && !r.AvailableAt.After(r.CreatedAt) {
				candidates = append(candidates, candidate{r, c.start.handoff})
			}
		}
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.start.Priority, a.start.Priority), a.start.AvailableAt.Compare(b.start.AvailableAt),
			bytes.Compare(a.start.ID[:], b.start.ID[:]))
	})
	var h *handoffs
	closed := map[[2]string]bool{}
	for _, c := range candidates {
		queue := [2]string{c.start.Namespace, c.start.Queue}
		if closed[queue] {
			continue
		}
		var match engine.Match
		if c.start.ConcurrencyKey == "" {
			match = c.handoff.Offer(c.start)
		}
		if match == nil {
			closed[queue] = true
			continue
		}
		if h == nil {
			h = &handoffs{byRun: map[engine.ID]*handoff{}, meetings: map[string]int32{}}
		}
		h.add(c.start, match)
	}
	return h
}

func (h *handoffs) add(start *engine.StartRun, match engine.Match) {
	if now := match.Now(); now.After(h.now) {
		h.now = now
	}
	key := strings.Join(append([]string{start.Namespace, start.Queue}, match.Types()...), "\x00")
	meeting, known := h.meetings[key]
	if !known {
		meeting = int32(len(h.meetings) + 1)
		h.meetings[key] = meeting
		for _, kind := range match.Types() {
			h.met, h.spaces = append(h.met, meeting), append(h.spaces, start.Namespace)
			h.queues, h.types = append(h.queues, start.Queue), append(h.types, kind)
		}
	}
	h.byRun[start.ID] = &handoff{match: match, start: start, meeting: meeting}
}

// columns is what a run's row says of who may take it; zeroes: nobody.
func (h *handoffs) columns(run engine.ID) (worker string, token [16]byte, meeting int32) {
	if h == nil || h.byRun[run] == nil {
		return "", token, 0
	}
	one := h.byRun[run]
	slot := one.match.Slot()
	return slot.WorkerID, slot.Token, one.meeting
}

// meet is the arguments by which the statement finds out whether they are to have their runs.
func (h *handoffs) meet() args {
	if h == nil {
		h = &handoffs{}
	}
	var workers []string
	for _, one := range h.byRun {
		workers = append(workers, one.match.Slot().WorkerID)
	}
	slices.Sort(workers)
	return args{
		"slot_workers": slices.Compact(workers), "claimed_at": microsOrZero(h.now),
		"met": h.met, "met_namespaces": h.spaces, "met_queues": h.queues, "met_types": h.types,
	}
}

// noteClaimed notes that a run was made, and whether it was claimed in that.
func (h *handoffs) noteClaimed(run engine.ID, taken bool) {
	if taken {
		h.byRun[run].taken = true
	}
}

// has says that the run was claimed.
func (h *handoffs) has(run engine.ID) bool {
	return h != nil && h.byRun[run] != nil && h.byRun[run].taken
}

// settle tells all of them what has come of it, once the transaction is over: committed, or not at all, or who knows.
func (h *handoffs) settle(committed bool, unknown error) {
	if h == nil {
		return
	}
	for _, one := range h.byRun {
		switch {
		case unknown != nil:
			one.match.Unknown(unknown)
		case committed && one.taken:
			one.match.Commit(one.task(h.now))
		default:
			one.match.Abort()
		}
	}
}

// task is the run as a claim would have read it.
func (h *handoff) task(now time.Time) engine.Task {
	run, slot := h.start.NewRun(), h.match.Slot()
	run.Status, run.AvailableAt, run.StartedAt, run.WorkerID = engine.RunRunning, time.Time{}, now, slot.WorkerID
	return engine.Task{ClaimedAt: now, Lease: engine.Lease{
		Namespace: run.Namespace, RunID: run.ID, Token: slot.Token}, Run: run}
}
