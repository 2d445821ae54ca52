package sqlite

import (
	"sync"
	"time"
)

// maxDeferred limits the deferred writes of one commit, because the other calls of its group wait
// for them.
const maxDeferred = 128

// deferredWrites holds calls that may wait to share the commit of others. When the first of them
// has waited as long as it may, they begin a commit themselves.
type deferredWrites struct {
	mu    sync.Mutex
	calls []*call
	until time.Time // how long the first may wait
	timer *time.Timer
	due   chan struct{} // receives when that time is over; maybe once too often
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

// take removes up to n of the oldest; nil if there is none. The rest have waited about as long, so
// they go next.
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

// wake sets the timer for the writer. The caller has locked r.
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

// joinDeferred adds deferred writes to the group, and reports whether there were any. It adds none
// to a group that a power cut may undo, because they would make it wait for the disk.
func (w *writer) joinDeferred() bool {
	if w.next != nil || w.size > maxGroupBytes || w.harmless() {
		return false
	}
	taken := w.deferred.take(min(maxDeferred-w.deferredInGroup, maxGroup-len(w.group)))
	w.deferredInGroup += len(taken)
	w.group = append(w.group, taken...)
	return len(taken) > 0
}
