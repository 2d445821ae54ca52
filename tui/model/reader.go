package model

import (
	"context"
	"time"
)

// reader reloads data after a change: at once, but at most once per interval, and one load at a
// time. A change during a load causes another one.
type reader[T any] struct {
	tasks *tasks
	every time.Duration // least time between two loads
	// prepare is called on the UI goroutine and returns the call, which uses only copies.
	prepare func() func(context.Context) (T, error)
	done    func(T, error)

	began time.Time // of the latest load; zero: none yet
	drop  func()    // cancels the load in progress
	again bool      // something changed since it started
	wait  *timer
}

// want loads the data now, or as soon as the interval allows.
func (r *reader[T]) want() {
	switch {
	case r.drop != nil:
		r.again = true
		return
	case r.wait != nil:
		return
	}
	if pause := r.every - r.tasks.now().Sub(r.began); !r.began.IsZero() && pause > 0 {
		r.wait = r.tasks.after(pause, func() {
			r.wait = nil
			r.read()
		})
		return
	}
	r.read()
}

// now loads the data without waiting, and cancels a load in progress.
func (r *reader[T]) now() {
	r.stop()
	r.read()
}

// stop cancels the load that is in progress or waits, and reports whether there was one. The change
// that caused it is not loaded then.
func (r *reader[T]) stop() (dropped bool) {
	dropped = r.drop != nil || r.wait != nil
	r.wait.stop()
	r.wait = nil
	if r.drop != nil {
		r.drop()
		r.drop = nil
	}
	r.again = false
	return dropped
}

func (r *reader[T]) read() {
	r.began = r.tasks.now()
	r.drop = ask(r.tasks, r.prepare(), func(answer T, err error) {
		again := r.again
		r.drop, r.again = nil, false
		r.done(answer, err)
		if again {
			r.want()
		}
	})
}
