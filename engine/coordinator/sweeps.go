package coordinator

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/kagzi/kagzi/engine"
)

const (
	// firstPrune leaves the start of a server alone, and a clock that is wrong at boot the time to be set.
	firstPrune = time.Minute
	pruneEvery = time.Hour
	// recheck is the pause when the store names a moment that is over and yet finds nothing: another server is at it.
	recheck = 100 * time.Millisecond
)

// after is when a sweep that found n is next due, if the store says next; that is at once when it stopped at its limit.
func after(n int, next, now time.Time) time.Time {
	if n == 0 && !next.IsZero() && !next.After(now) {
		return now.Add(recheck)
	}
	return next
}

// timeoutSteps fails attempts that have run for too long, a batch at a time.
func (c *Coordinator) timeoutSteps(ctx context.Context, now time.Time) (time.Time, error) {
	n, next, err := c.store.TimeoutSteps(ctx, engine.TimeoutStepsParams{Now: now, Limit: c.options.BatchSize, Roll: rand.Float64()})
	if n > 0 {
		c.log.Info("steps timed out", "attempts", n)
	}
	return after(n, next, now), err
}

// pruneOld deletes runs that ended long ago, a batch at a time. Between two batches it rests for as long as one took, so that
// deleting a backlog takes at most half of the store's time.
func (c *Coordinator) pruneOld(ctx context.Context, now time.Time) (time.Time, error) {
	begun := time.Now()
	n, err := c.store.Prune(ctx, engine.PruneParams{Before: now.Add(-c.options.Retention), Limit: c.options.BatchSize})
	if n > 0 {
		c.log.Info("old runs deleted", "runs", n)
	}
	if n >= c.options.BatchSize {
		return c.store.Now().Add(time.Since(begun)), err
	}
	return now.Add(pruneEvery), err
}
