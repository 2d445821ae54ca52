package model

import (
	"context"
	"sync"
	"time"
)

// callTimeout limits a unary call, so that a hanging server does not block a list forever.
const callTimeout = 10 * time.Second

// tasks holds the goroutines and timers of one object.
type tasks struct {
	ctx    context.Context // ends when the object is closed
	cancel context.CancelFunc
	post   func(func())
	now    func() time.Time
	group  sync.WaitGroup
	timers map[*timer]struct{}
}

func newTasks(ctx context.Context, post func(func()), now func() time.Time) *tasks {
	t := &tasks{post: post, now: now, timers: map[*timer]struct{}{}}
	t.ctx, t.cancel = context.WithCancel(ctx)
	return t
}

// close cancels everything and waits for it. It may be called twice.
func (t *tasks) close() {
	t.cancel()
	for timer := range t.timers {
		timer.stop()
	}
	t.group.Wait()
}

// hand runs f on the UI goroutine, unless the object was closed.
func (t *tasks) hand(f func()) {
	t.post(func() {
		if t.ctx.Err() == nil {
			f()
		}
	})
}

// timer is a delayed call.
type timer struct {
	tasks *tasks
	timer *time.Timer
	done  bool
}

// after runs f on the UI goroutine after d.
func (t *tasks) after(d time.Duration, f func()) *timer {
	it := &timer{tasks: t}
	t.timers[it] = struct{}{}
	it.timer = time.AfterFunc(d, func() {
		t.hand(func() {
			if !it.done {
				it.stop()
				f()
			}
		})
	})
	return it
}

// stop cancels a timer, even one that expired but has not run f yet. It may be called on nil and
// twice.
func (t *timer) stop() {
	if t == nil || t.done {
		return
	}
	t.done = true
	t.timer.Stop()
	delete(t.tasks.timers, t)
}

// ask makes a call in its own goroutine and handles the answer on the UI goroutine. Calling drop
// first cancels the call and discards its answer.
func ask[T any](t *tasks, call func(context.Context) (T, error), then func(T, error)) (drop func()) {
	ctx, cancel := context.WithTimeout(t.ctx, callTimeout)
	dropped := false
	t.group.Go(func() {
		defer cancel()
		answer, err := call(ctx)
		t.hand(func() {
			if !dropped {
				then(answer, err)
			}
		})
	})
	return func() {
		dropped = true
		cancel()
	}
}
