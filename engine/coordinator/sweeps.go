package coordinator

import (
	"context"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// recheck is the pause if the store names a due time that has passed but finds nothing, because
// another server is at work.
const recheck = 100 * time.Millisecond

// after returns when a sweep that found n is next due. next is from the store; it is at once if the
// sweep stopped at its limit.
func after(n int, next, now time.Time) time.Time {
	if n == 0 && !next.IsZero() && !next.After(now) {
		return now.Add(recheck)
	}
	return next
}

// sweep handles a batch. If that fails although the store is healthy, it continues one by one and
// skips those that fail. They are retried after the pause that follows an error, and do not stop
// the others.
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

// timeoutSteps fails attempts that have timed out, one batch.
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

// endExpired ends runs whose deadline or grace has passed, one batch.
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

// pauseDiverged pauses runs that no build in service can continue, one batch.
func (c *Coordinator) pauseDiverged(ctx context.Context, now time.Time) (time.Time, error) {
	paused, err := c.store.PauseDiverged(ctx, engine.PauseDivergedParams{Now: now, Limit: c.options.BatchSize})
	for _, id := range paused {
		c.log.Warn("run paused: the code of each build in service has diverged from its history; "+
			"`kagzi workflow explain` shows the ways on", "run", id)
	}
	if len(paused) > 0 {
		c.options.Observer.RunsDiverged(paused)
	}
	if len(paused) == c.options.BatchSize {
		return now, err
	}
	return time.Time{}, err
}
