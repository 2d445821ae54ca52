package watch

import (
	"sync"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/async"
)

// waiters holds the waits for the ends of runs.
type waiters struct {
	mu   sync.Mutex
	runs map[engine.ID]*waiter // the first waiter of each run
	n    int
}

// waiter is one wait for the end of one run.
type waiter struct {
	id         engine.ID
	to         subscriber
	prev, next *waiter // of the same run; guarded by waiters.mu
	in         bool    // guarded by waiters.mu

	wait // its state in a stream; guarded by awaitStream.mu
}

// subscriber is called when the run of a waiter has probably ended, with the ending if it is known.
// It must not block.
type subscriber interface {
	ended(w *waiter, ending *engine.Ending)
}

// waitChannel is a subscriber whose caller reads the run itself. Its capacity is one.
type waitChannel chan struct{}

func (b waitChannel) ended(*waiter, *engine.Ending) { async.Notify(b) }

// enter adds waiters; call leave when done. Enter before reading the run, so that an end in between
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

// leave removes waiters. It may be called again, and for waiters that never entered.
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

// notify calls the waiters of a run.
func (w *waiters) notify(id engine.ID, ending *engine.Ending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := w.runs[id]; one != nil; one = one.next {
		one.to.ended(one, ending)
	}
}

// notifyAll calls all waiters, because their runs may have ended.
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
