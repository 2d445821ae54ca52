package postgres

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// handoffs holds the matches of waiting pollers for the runs of a group. nil: none.
type handoffs struct {
	byRun    map[engine.ID]*handoff
	now      time.Time // time of all their claims
	scopes   map[string]int32
	scopeIDs []int32 // for each scope one row per type: scope, namespace, queue and type
	spaces   []string
	queues   []string
	types    []string
}

// handoff is one match, with the run that it may get.
type handoff struct {
	match engine.Match
	start *engine.StartRun
	scope int32 // from 1: the queue and types in which nothing else may be due
	taken bool  // the statement claimed the run
}

// handoffsFor asks for matches for the runs of these calls, in the order of a claim. Once one run
// of a queue finds none, the later runs of that queue are not asked for. nil: there are none.
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
			h = &handoffs{byRun: map[engine.ID]*handoff{}, scopes: map[string]int32{}}
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
	scope, known := h.scopes[key]
	if !known {
		scope = int32(len(h.scopes) + 1)
		h.scopes[key] = scope
		for _, kind := range match.Types() {
			h.scopeIDs, h.spaces = append(h.scopeIDs, scope), append(h.spaces, start.Namespace)
			h.queues, h.types = append(h.queues, start.Queue), append(h.types, kind)
		}
	}
	h.byRun[start.ID] = &handoff{match: match, start: start, scope: scope}
}

// columns returns the slot that may claim the run; zero values: none.
func (h *handoffs) columns(run engine.ID) (worker string, token [16]byte, scope int32) {
	if h == nil || h.byRun[run] == nil {
		return "", token, 0
	}
	one := h.byRun[run]
	slot := one.match.Slot()
	return slot.WorkerID, slot.Token, one.scope
}

// scopeArgs returns the arguments by which insert_run.sql decides whether the runs are claimed.
func (h *handoffs) scopeArgs() args {
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
		"scope_ids": h.scopeIDs, "scope_namespaces": h.spaces, "scope_queues": h.queues, "scope_types": h.types,
	}
}

// noteClaimed records whether a run was claimed when it was made.
func (h *handoffs) noteClaimed(run engine.ID, taken bool) {
	if taken {
		h.byRun[run].taken = true
	}
}

// has says whether the run was claimed.
func (h *handoffs) has(run engine.ID) bool {
	return h != nil && h.byRun[run] != nil && h.byRun[run].taken
}

// settle tells all matches their outcome, once the transaction is over: committed, failed, or
// unknown.
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

// task returns the run as a claim would have read it.
func (h *handoff) task(now time.Time) engine.Task {
	run, slot := h.start.NewRun(), h.match.Slot()
	run.Status, run.AvailableAt, run.StartedAt, run.WorkerID = engine.RunRunning, time.Time{}, now, slot.WorkerID
	return engine.Task{ClaimedAt: now, Lease: engine.Lease{
		Namespace: run.Namespace, RunID: run.ID, Token: slot.Token}, Run: run}
}
