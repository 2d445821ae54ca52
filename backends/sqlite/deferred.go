package sqlite

import (
	"sync"
	"time"
)

// maxDeferred is how many deferred writes one commit carries: the other calls of its group wait for
// all of them.
const maxDeferred = 128

// deferredWrites are calls that may wait for a commit of others. When the first of them has waited
// for as long as it may, they begin one themselves.
type deferredWrites struct {
	mu    sync.Mutex
	calls []*call
	until time.Time // that the first may wait
	timer *time.Timer
	due   chan struct{} // told when it has; maybe once too often
}

func (r *deferredWrites) add(c *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	until := time.Now().Add(c.mayWait)
	r.calls = append(r.calls, c)
	if len(r.calls) == 1 || until.Before(r.until) {
		r.until = until
		r.wake()
	}
}

// take removes up to n of those that have come first; nil when there is none. Those left have
// waited about as long, so they go next.
func (r *deferredWrites) take(n int) []*call {
	r.mu.Lock()
	defer r.mu.Unlock()
	n = min(n, len(r.calls))
	if n <= 0 {
		return nil
	}
	taken := r.calls[:n:n]
	if r.calls = r.calls[n:]; len(r.calls) == 0 {
		r.calls = nil
	} else {
		r.wake()
	}
	return taken
}

// wake has the writer told in time. The caller has locked r.
func (r *deferredWrites) wake() {
	if wait := time.Until(r.until); r.timer == nil {
		r.timer = time.AfterFunc(wait, func() {
			select {
			case r.due <- struct{}{}:
			default:
			}
		})
	} else {
		r.timer.Reset(wait)
	}
}

// joinDeferred adds deferred writes to the group, and reports whether there were any. They do not
// hold up a group that a power cut may undo.
func (w *writer) joinDeferred() bool {
	if w.next != nil || w.size > maxGroupBytes || w.harmless() {
		return false
	}
	taken := w.deferred.take(min(maxDeferred-w.deferredInGroup, maxGroup-len(w.group)))
	w.deferredInGroup += len(taken)
	w.group = append(w.group, taken...)
	return len(taken) > 0
}
