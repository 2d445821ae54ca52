package watch

import (
	"sync"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/async"
)

// waiters are the waits for the ends of runs.
type waiters struct {
	mu   sync.Mutex
	runs map[engine.ID]*waiter // the first of those of a run
	n    int
}

// waiter is one wait for the end of one run.
type waiter struct {
	id         engine.ID
	to         subscriber
	prev, next *waiter // of the same run: guarded by waiters.mu, as is in
	in         bool

	wait // of a stream: guarded by its awaitStream.mu
}

// subscriber is told that the run of a waiter has probably ended, and how if that is known. It must not block.
type subscriber interface {
	ended(w *waiter, ending *engine.Ending)
}

// waitChannel is a subscriber that looks for itself; its capacity is one.
type waitChannel chan struct{}

func (b waitChannel) ended(*waiter, *engine.Ending) { async.Notify(b) }

// enter adds waiters; they leave when done. Enter before reading the run, so that an end in between is not missed.
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

// notify tells those who wait for a run.
func (w *waiters) notify(id engine.ID, ending *engine.Ending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := w.runs[id]; one != nil; one = one.next {
		one.to.ended(one, ending)
	}
}

// notifyAll tells everybody that their run may have ended.
func (w *waiters) notifyAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.runs {
		for ; one != nil; one = one.next {
			one.to.ended(one, nil)
		}
	}
}

func (w *waiters) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n
}
