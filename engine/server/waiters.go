package server

import (
	"sync"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/async"
)

// waiters are those who wait for the ends of runs.
type waiters struct {
	mu   sync.Mutex
	runs map[engine.ID]*waiter // the first of those of a run
	n    int
}

// waiter is one wait for the end of one run.
type waiter struct {
	id         engine.ID
	to         hearer
	prev, next *waiter // of the same run: guarded by waiters.mu, as is in
	in         bool

	wait // of a stream: guarded by its awaiting.mu
}

// hearer is told that the run of a waiter has probably ended, and how if that is known. It does not block.
type hearer interface {
	hear(w *waiter, ending *engine.Ending)
}

// waitBell is a hearer that looks for itself; its capacity is one.
type waitBell chan struct{}

func (b waitBell) hear(*waiter, *engine.Ending) { async.Notify(b) }

// enter has waiters told of the ends of their runs; they leave when done. Enter before looking at the run, so that an end in between
// is not missed.
func (w *waiters) enter(list ...*waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs == nil {
		w.runs = map[engine.ID]*waiter{}
	}
	for _, one := range list {
		if one.next = w.runs[one.id]; one.next != nil {
			one.next.prev = one
		}
		w.runs[one.id], one.in = one, true
		w.n++
	}
}

// leave may be called again, and for one that never entered.
func (w *waiters) leave(list ...*waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range list {
		if one.in {
			w.remove(one)
		}
	}
}

func (w *waiters) remove(one *waiter) {
	switch {
	case one.prev != nil:
		one.prev.next = one.next
	case one.next != nil:
		w.runs[one.id] = one.next
	default:
		delete(w.runs, one.id)
	}
	if one.next != nil {
		one.next.prev = one.prev
	}
	one.prev, one.next, one.in = nil, nil, false
	w.n--
}

// ring tells those who wait for a run.
func (w *waiters) ring(id engine.ID, ending *engine.Ending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := w.runs[id]; one != nil; one = one.next {
		one.to.hear(one, ending)
	}
}

// ringAll has everybody look.
func (w *waiters) ringAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.runs {
		for ; one != nil; one = one.next {
			one.to.hear(one, nil)
		}
	}
}

func (w *waiters) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n
}
