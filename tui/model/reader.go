package model

import (
	"context"
	"time"
)

// reader reads something again whenever it may have changed: at once, but not more often than every
// so often, and never twice at a time. What changes while it is being read is read again.
type reader[T any] struct {
	tasks *tasks
	every time.Duration // the least time between two readings
	// prepare is called on the UI goroutine and returns the call, made of copies.
	prepare func() func(context.Context) (T, error)
	done    func(T, error)

	began time.Time // of the latest reading; zero: none yet
	drop  func()    // of the reading under way
	again bool      // something changed since it began
	wait  *timer
}

// want has it read, now or as soon as that may be.
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

// now has it read without waiting; a reading that is under way is dropped.
func (r *reader[T]) now() {
	r.stop()
	r.read()
}

// stop drops the reading that is under way or waits, and says whether there was one: what it was
// for has not been read then.
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
