package world

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
)

// handover is how long a run that is due waits for a worker that has room.
const handover = 8 * time.Millisecond

// lookForWork has runs that are due handed to workers that have room, in a moment.
func (w *World) lookForWork() {
	if w.dispatching {
		return
	}
	w.dispatching = true
	w.after(handover, func() {
		w.dispatching = false
		w.dispatch()
	})
}

func (w *World) dispatch() {
	due := slices.DeleteFunc(slices.Clone(w.open), func(r *run) bool { return !w.isDue(r) || !w.namespaces[r.Namespace].Enabled })
	slices.SortStableFunc(due, func(a, b *run) int {
		return cmp.Or(cmp.Compare(b.GetPriority(), a.GetPriority()), a.available.Compare(b.available), strings.Compare(a.RunId, b.RunId))
	})
	for _, r := range due {
		if h := w.roomFor(r); h != nil && w.enters(r) {
			w.claim(r, h)
		}
	}
}

// isDue says that any fitting worker could take the run now.
func (w *World) isDue(r *run) bool {
	return r.holder == nil && !ended(r.Status) && !r.available.IsZero() && !r.available.After(w.now)
}

// roomFor is the least busy worker that can take a run, nil when none can.
func (w *World) roomFor(r *run) *worker {
	var best *worker
	for _, h := range w.workers {
		if h.fits(r) && !h.silent && len(h.held) < int(h.MaxConcurrent) && (best == nil || len(h.held) < len(best.held)) {
			best = h
		}
	}
	return best
}

// enters says that the run's concurrency key has a slot; otherwise the run stands in line.
func (w *World) enters(r *run) bool {
	if r.ConcurrencyKey == "" || w.runningOfKey(r) < int(r.ConcurrencyLimit) {
		return true
	}
	r.heldAt = r.available
	r.setAvailable(time.Time{})
	r.gated = true
	w.changed(r)
	return false
}

func sameKey(a, b *run) bool {
	return a.ConcurrencyKey != "" && a.ConcurrencyKey == b.ConcurrencyKey && a.WorkflowType == b.WorkflowType && a.Namespace == b.Namespace
}

func (w *World) runningOfKey(r *run) (n int) {
	for _, other := range w.open {
		if other.holder != nil && sameKey(r, other) {
			n++
		}
	}
	return n
}

// openGate lets the first in the line of the run's key have its turn.
func (w *World) openGate(r *run) {
	var next *run
	for _, other := range w.open {
		if other.gated && sameKey(r, other) && (next == nil || other.heldAt.Before(next.heldAt)) {
			next = other
		}
	}
	if next != nil {
		next.gated = false
		next.setAvailable(next.heldAt)
		next.heldAt = time.Time{}
		w.changed(next)
	}
}

// claim gives a run to a worker, whose code goes on with it.
func (w *World) claim(r *run, h *worker) {
	r.lease++
	r.holder, r.progressed = h, false
	h.held = append(h.held, r)
	r.Status, r.WaitingFor, r.WorkerId = inProgress, "", proto.String(h.WorkerId)
	r.setAvailable(time.Time{})
	if r.StartedAt == nil {
		r.StartedAt = stamp(w.now)
	}
	w.changed(r)
	w.wakes(r)
	if r.CancelRequestedAt != nil && r.unwinding == nil {
		r.unwinding = endedBy("cancelled", r.reason)
	}
	w.proceed(r)
}

// unserved says that no online worker could take the run, however much room it had.
func (w *World) unserved(r *run) bool {
	return !slices.ContainsFunc(w.workers, func(h *worker) bool { return h.fits(r) })
}

// without is a list without one of its members.
func without[T comparable](list []T, gone T) []T {
	if i := slices.Index(list, gone); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}
