package coordinator

import (
	"context"
	"errors"
	"time"

	"github.com/kagzi/kagzi/engine"
)

const (
	// margin is added to the heartbeat interval for which the coordinator waits for a suspect.
	margin = time.Second
	// probeEvery is how often the health of the store is checked while a worker is a suspect.
	probeEvery = time.Second
)

// liveness is what is known about a worker. All of it is discarded whenever the store is unhealthy:
// in an outage no heartbeat can be recorded, and silence must not deregister every worker.
type liveness struct {
	heardAt time.Time
	since   time.Time // when this heardAt was first seen, by the monotonic clock
	suspect time.Time // when the worker became a suspect, by the monotonic clock; zero: it is none
}

// lookForLost makes a worker that is silent for a lease a suspect, and deregisters a suspect that
// stays silent for another heartbeat interval and margin. It deregisters in portions, between which
// the other duties run. A worker that cannot be deregistered although the store is healthy is tried
// again and does not stop the others.
func (c *Coordinator) lookForLost(ctx context.Context, now time.Time) (next time.Time, err error) {
	workers, err := c.store.LiveWorkers(ctx)
	if err != nil {
		return time.Time{}, err
	}
	mono, lease, gap := c.now(), c.options.WorkerLease, c.options.HeartbeatInterval+margin
	seen := make(map[string]liveness, len(workers))
	plan := func(wait time.Duration) {
		if at := now.Add(wait); next.IsZero() || at.Before(next) {
			next = at
		}
	}
	suspects, gone := false, len(c.seen)
	var failed error
	for _, w := range workers {
		s, known := c.seen[w.ID]
		if known {
			gone--
		}
		if !known || !s.heardAt.Equal(w.HeardAt) {
			s = liveness{heardAt: w.HeardAt, since: mono}
		}
		silent := c.silence(s, now, mono)
		switch {
		case silent < lease:
			plan(lease - silent)
		case s.suspect.IsZero():
			c.log.Debug("worker is silent", "worker", w.ID, "heard_at", w.HeardAt)
			s.suspect, suspects = mono, true
			plan(gap)
		case mono.Sub(s.suspect) < gap:
			suspects = true
			plan(gap - mono.Sub(s.suspect))
		case c.now().Sub(mono) >= portion:
			suspects = true
			plan(0) // continue after the other duties
		default:
			if err := c.deregister(ctx, w, now); err != nil {
				if c.store.Health(ctx) != nil || ctx.Err() != nil {
					return time.Time{}, err
				}
				failed = err
				c.lost.noLaterThan(now) // it may be OFFLINE already, and is then no longer listed
			}
			plan(lease) // it is still registered if it was heard at the last moment
			continue
		}
		seen[w.ID] = s
	}
	c.seen = seen
	if suspects {
		c.probe.noLaterThan(now.Add(probeEvery))
	}
	if gone > 0 || c.blind { // the server that deregistered them may have stopped before it freed their runs
		c.lost.noLaterThan(now)
		c.blind = false
	}
	return next, failed
}

// forgetSeen discards the liveness of all workers. Workers deregistered meanwhile are then not
// noticed as gone, so blind is set.
func (c *Coordinator) forgetSeen() {
	clear(c.seen)
	c.blind = true
}

// silence returns how long a worker was not heard from. It uses both clocks, so that a clock that
// was set back does not keep a silent worker alive. It counts from the start of this coordinator,
// so that after a server's downtime workers have a whole lease to come back.
func (c *Coordinator) silence(s liveness, now, mono time.Time) time.Duration {
	heardAt := s.heardAt
	if heardAt.Before(c.begun) {
		heardAt = c.begun
	}
	return max(now.Sub(heardAt), mono.Sub(s.since))
}

func (c *Coordinator) deregister(ctx context.Context, w engine.LiveWorker, now time.Time) error {
	taken, err := c.store.ForceOfflineWorker(ctx, engine.OfflineWorkerParams{
		WorkerID: w.ID, Reason: engine.OfflineLost, HeardAt: w.HeardAt, Now: now,
	})
	if errors.Is(err, engine.ErrNotFound) {
		return nil // it was deleted
	}
	if err != nil {
		return err
	}
	c.lost.noLaterThan(now)
	if !taken.Off {
		return nil // it was heard from, or another server deregistered it
	}
	c.log.Warn("worker lost", "worker", w.ID, "heard_at", w.HeardAt, "runs_freed", taken.Freed)
	c.options.Observer.WorkerLost()
	c.options.Observer.LeasesLost(taken.Freed)
	return nil
}

// watchStore checks the store's health while a worker is a suspect.
func (c *Coordinator) watchStore(ctx context.Context, now time.Time) (time.Time, error) {
	if err := c.store.Health(ctx); err != nil {
		return time.Time{}, err
	}
	for _, s := range c.seen {
		if !s.suspect.IsZero() {
			return now.Add(probeEvery), nil
		}
	}
	return time.Time{}, nil
}

// freeLost frees runs of OFFLINE workers: runs whose own heartbeat timeout is longer than the
// lease, and runs that an interrupted ForceOfflineWorker did not free.
func (c *Coordinator) freeLost(ctx context.Context, now time.Time) (time.Time, error) {
	freed, err := c.store.FreeLost(ctx, now)
	for _, id := range freed.Runs {
		c.log.Info("run of a lost worker freed", "run", id)
	}
	if n := len(freed.Runs); n > 0 {
		c.options.Observer.LeasesLost(n)
	}
	return after(len(freed.Runs), freed.Next, now), err
}
