package coordinator

import (
	"context"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// recheck is the pause when the store names a moment that is over and yet finds nothing: another server is at it.
const recheck = 100 * time.Millisecond

// after is when a sweep that found n is next due, if the store says next; that is at once when it stopped at its limit.
func after(n int, next, now time.Time) time.Time {
	if n == 0 && !next.IsZero() && !next.After(now) {
		return now.Add(recheck)
	}
	return next
}

// sweep does a batch. Where that fails while the store is well it goes on one by one, past those
// that the store cannot cope with: they are tried again after the pause that follows an error, and
// keep no other.
func (c *Coordinator) sweep(ctx context.Context, some func(limit, skip int) (int, time.Time, error)) (n int,
	next time.Time, err error) {
	n, next, err = some(c.options.BatchSize, 0)
	if err == nil {
		return n, next, nil
	}
	for skip := 0; n+skip < c.options.BatchSize && c.store.Health(ctx) == nil; {
		one, _, failed := some(1, skip)
		switch {
		case failed != nil:
			skip++
		case one == 0:
			return n, time.Time{}, err
		}
		n += one
	}
	return n, time.Time{}, err
}

// timeoutSteps fails attempts that have run for too long, a batch at a time.
func (c *Coordinator) timeoutSteps(ctx context.Context, now time.Time) (time.Time, error) {
	var all []engine.TimedOutAttempt
	n, next, err := c.sweep(ctx, func(limit, skip int) (int, time.Time, error) {
		out, err := c.store.TimeoutSteps(ctx, engine.TimeoutStepsParams{
			Now: now, Limit: limit, Skip: skip, Margin: c.store.Uncertainty(), Jitter: engine.Jitter()})
		all = append(all, out.Attempts...)
		return len(out.Attempts), out.Next, err
	})
	if n > 0 {
		c.options.Observer.StepsTimedOut(all)
	}
	return after(n, next, now), err
}

// endExpired ends runs whose deadline or grace is over, a batch at a time.
func (c *Coordinator) endExpired(ctx context.Context, now time.Time) (time.Time, error) {
	var all engine.Expired
	n, next, err := c.sweep(ctx, func(limit, skip int) (int, time.Time, error) {
		e, err := c.store.EndExpired(ctx, engine.EndExpiredParams{Now: now, Limit: limit, Skip: skip})
		all.Runs, all.Cancelled, all.TimedOut = all.Runs+e.Runs, append(all.Cancelled, e.Cancelled...),
			append(all.TimedOut, e.TimedOut...)
		return e.Runs, e.Next, err
	})
	if n > 0 {
		c.options.Observer.RunsExpired(all)
	}
	return after(n, next, now), err
}
