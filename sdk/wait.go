package kagzi

import (
	"context"
	"slices"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	// askFirst and askMost are how long a run that siblings keep on the worker waits before it asks for a signal or a child again: the
	// server tells of them only to those who ask, and to a run that it hands out.
	askFirst = time.Second
	askMost  = 10 * time.Second
)

// serverWait is a call that only the server can end, since only it knows whether a signal came or a child ended. It is asked when the call
// begins, unless that is known, from time to time while siblings are at work, and once more when the run is parked.
type serverWait struct {
	question func(hold bool) *kagziv1.SessionRequest
	answered func(*kagziv1.SessionResponse) bool // takes the answer; false: there is nothing to go on with yet. Needs e.mu.
	due      time.Time                           // when the server ends the wait by itself; zero for never
	known    time.Time                           // when there was nothing yet, by our clock; zero when nobody has asked
	children []*startedChild                     // of a wait for these
	asked    bool                                // under this lease: guarded by e.mu
	settled  bool                                // its answer came while it was parked: guarded by e.mu
}

// over says that what ends the wait is known here: the server tells it once, to one of those who ask. Needs e.mu.
func (w *serverWait) over() bool {
	return w.settled || len(w.children) > 0 && !slices.ContainsFunc(w.children, func(c *startedChild) bool { return c.step == nil })
}

// await returns true when the wait has its answer and false when the run is being cancelled. If it is parked meanwhile, it does not return.
func (b *branch) await(scope context.Context, w *serverWait) bool {
	own := onBranchGoroutine()
	late := parkSettle
	for interval := askFirst; ; interval = min(2*interval, askMost) {
		if b.cancelled(scope) {
			return false
		}
		if b.ask(w, own) {
			return true
		}
		pause := interval
		switch left := w.due.Sub(b.e.now()); {
		case w.due.IsZero():
		case left > parkSettle:
			pause = min(pause, left)
		default: // as a rule the server is with us in a moment, but its clock may have been set back by far, and each question is a write there
			pause, late = late, min(2*late, askMost)
		}
		if !b.park(scope, &parkedCall{due: w.due, wait: w}, pause) {
			return false
		}
		if b.e.known(w) {
			return true
		}
	}
}

func (e *execution) known(w *serverWait) bool {
	e.lock()
	defer e.mu.Unlock()
	return w.over()
}

// ask asks the server if that is worth while, and reports whether the wait has its answer. When nothing else of the run goes on, the
// question parks it.
func (b *branch) ask(w *serverWait, own bool) bool {
	e := b.e
	e.lock()
	hold := !b.alone(own)
	overdue := !w.due.IsZero() && !e.now().Before(w.due) // then the server says so, and there is no reason to be late
	if hold && !overdue && time.Since(w.known) < askFirst {
		e.mu.Unlock()
		return false
	}
	answers := make(chan bool, 1)
	e.send(w.question(hold), func(r *kagziv1.SessionResponse) {
		e.mu.Lock()
		got := w.answered(r)
		e.mu.Unlock()
		if !got && !hold {
			e.over(errSuspended)
		}
		answers <- got
	})
	e.mu.Unlock()
	if await(e, answers) {
		return true
	}
	e.lock()
	w.asked, w.known = true, time.Now()
	e.mu.Unlock()
	return false
}
