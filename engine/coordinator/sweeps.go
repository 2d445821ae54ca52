package coordinator

import (
	"context"
	"errors"
	"fmt"
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

// sweep does a batch. Where that fails while the store is well it goes on one by one, past those that the store cannot cope with: they are tried again
// after the pause that follows an error, and keep no other.
func (c *Coordinator) sweep(ctx context.Context, some func(limit, skip int) (int, time.Time, error)) (n int, next time.Time, err error) {
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
	n, next, err := c.sweep(ctx, func(limit, skip int) (int, time.Time, error) {
		return c.store.TimeoutSteps(ctx, engine.TimeoutStepsParams{Now: now, Limit: limit, Skip: skip, Roll: rand.Float64()})
	})
	if n > 0 {
		c.log.Info("steps timed out", "attempts", n)
		c.options.Observer.StepsTimedOut(n)
	}
	return after(n, next, now), err
}

// endExpired ends runs whose deadline or grace is over, a batch at a time.
func (c *Coordinator) endExpired(ctx context.Context, now time.Time) (time.Time, error) {
	n, next, err := c.sweep(ctx, func(limit, skip int) (int, time.Time, error) {
		return c.store.EndExpired(ctx, engine.EndExpiredParams{Now: now, Limit: limit, Skip: skip})
	})
	if n > 0 {
		c.log.Info("runs expired", "runs", n)
		c.options.Observer.RunsExpired(n)
	}
	return after(n, next, now), err
}

// outcomes are the ways in which a run ends, each with a retention of its own.
var outcomes = []engine.RunStatus{engine.RunCompleted, engine.RunFailed, engine.RunCancelled, engine.RunTimedOut, engine.RunTerminated}

// pruneOld deletes runs that ended long ago, a batch of each namespace and outcome at a time, and old records. Between two rounds it rests for as
// long as one took, so that deleting a backlog takes at most half of the store's time. A namespace where that fails while the store is well is tried
// again, and keeps no other.
func (c *Coordinator) pruneOld(ctx context.Context, now time.Time) (time.Time, error) {
	begun, more, any := time.Now(), false, c.options.Retention > 0 || c.options.AuditRetention > 0
	page := engine.Page{Limit: engine.MaxPage}
	var failed error
	for {
		namespaces, info, err := c.store.ListNamespaces(ctx, page)
		if err != nil {
			return time.Time{}, err
		}
		for i := range namespaces {
			left, err := c.pruneNamespace(ctx, &namespaces[i], now)
			if err != nil {
				if c.store.Health(ctx) != nil || ctx.Err() != nil {
					return time.Time{}, err
				}
				failed = errors.Join(failed, err)
			}
			more, any = more || left, any || namespaces[i].Retention > 0 || len(namespaces[i].Keep) > 0
		}
		if !info.HasNext {
			break
		}
		page.After = &engine.Cursor{Name: namespaces[len(namespaces)-1].Name}
	}
	left, err := c.pruneRecords(ctx, now)
	if err != nil {
		return time.Time{}, err
	}
	more = more || left
	switch {
	case failed != nil:
		return time.Time{}, failed
	case more:
		return c.store.Now().Add(time.Since(begun)), nil
	case !any: // until a ring tells of a change
		return time.Time{}, nil
	}
	return now.Add(pruneEvery), nil
}

// pruneRecords deletes a batch of what workers, ticks and changes have left; more says that there may be others.
func (c *Coordinator) pruneRecords(ctx context.Context, now time.Time) (more bool, err error) {
	p := engine.PruneRecordsParams{Limit: c.options.BatchSize}
	if keep := c.options.Retention; keep > 0 {
		p.Workers, p.Fires = now.Add(-keep), now.Add(-keep)
	}
	if keep := c.options.AuditRetention; keep > 0 {
		p.Audit = now.Add(-keep)
	}
	if p.Workers.IsZero() && p.Audit.IsZero() {
		return false, nil
	}
	return c.store.PruneRecords(ctx, p)
}

// pruneNamespace deletes a batch of each outcome; more says that there may be others: the store says so only by finding none. An outcome where that
// fails while the store is well keeps no other.
func (c *Coordinator) pruneNamespace(ctx context.Context, n *engine.Namespace, now time.Time) (more bool, failed error) {
	for _, status := range outcomes {
		keep := n.RetentionOf(status, c.options.Retention)
		if keep <= 0 {
			continue
		}
		deleted, err := c.store.Prune(ctx, engine.PruneParams{Namespace: n.Name, Status: status, Before: now.Add(-keep), Limit: c.options.BatchSize})
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("delete runs of %s that ended as %s: %w", n.Name, status, err))
			if c.store.Health(ctx) != nil {
				return more, failed
			}
			continue
		}
		if deleted > 0 {
			c.log.Info("old runs deleted", "namespace", n.Name, "status", status.String(), "runs", deleted)
			c.options.Observer.RunsDeleted(deleted)
		}
		more = more || deleted > 0
	}
	return more, failed
}
