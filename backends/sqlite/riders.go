package sqlite

import (
	"sync"
	"time"
)

// maxRiding is how many patient calls one commit carries: the others of its group wait for all of them.
const maxRiding = 128

// riders are the patient calls that wait for a commit of others. When the first of them has waited for as long as it may, they begin one themselves.
type riders struct {
	mu    sync.Mutex
	calls []*call
	until time.Time // that the first may wait
	timer *time.Timer
	due   chan struct{} // told when it has; maybe once too often
}

func (r *riders) add(c *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	until := time.Now().Add(c.patience)
	r.calls = append(r.calls, c)
	if len(r.calls) == 1 || until.Before(r.until) {
		r.until = until
		r.wake()
	}
}

// take removes up to n of those that have come first; nil when there is none. Those left have waited about as long, so they go next.
func (r *riders) take(n int) []*call {
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
func (r *riders) wake() {
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

// pickUp has patient calls ride along, and says whether there were any. A group of which a power cut may undo everything is not held up by them.
func (w *writer) pickUp() bool {
	if w.next != nil || w.size > maxGroupBytes || w.harmless() {
		return false
	}
	taken := w.riders.take(min(maxRiding-w.riding, maxGroup-len(w.group)))
	w.riding += len(taken)
	w.group = append(w.group, taken...)
	return len(taken) > 0
}
