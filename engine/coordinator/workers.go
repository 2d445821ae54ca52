package coordinator

import (
	"context"
	"errors"
	"time"

	"github.com/kagzi/kagzi/engine"
)

const (
	// margin is what a suspect is waited for longer than a heartbeat takes to come.
	margin = time.Second
	// probeEvery is how often the store is asked for its health while a worker is suspect.
	probeEvery = time.Second
)

// liveness is what is known of a worker. It counts as silent only while the store was well:
// whenever it was not, all that was seen is forgotten, so that an outage, in which nobody can be
// heard, does not deregister every worker.
type liveness struct {
	heardAt time.Time
	since   time.Time // when this heardAt was first seen, by the monotonic clock, as the next
	suspect time.Time // when the worker was first found silent for a whole lease; zero: it was not
}

// lookForLost deregisters workers that were found silent for a lease twice, a heartbeat and a
// second apart, a portion of them at a time: between these the other duties come. One that cannot
// be deregistered while the store is well is tried again, and keeps no other.
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
			plan(0) // after the other duties
		default:
			if err := c.deregister(ctx, w, now); err != nil {
				if c.store.Health(ctx) != nil || ctx.Err() != nil {
					return time.Time{}, err
				}
				failed = err
				c.lost.noLaterThan(now) // it may have been deregistered, and is in no list then
			}
			plan(lease) // should it have been heard at the last moment, it is still there
			continue
		}
		seen[w.ID] = s
	}
	c.seen = seen
	if suspects {
		c.probe.noLaterThan(now.Add(probeEvery))
	}
	if gone > 0 || c.blind { // the server that deregistered them may not be there any more to free what they hold still
		c.lost.noLaterThan(now)
		c.blind = false
	}
	return next, failed
}

// forgetSeen has all workers looked at as if for the first time. Of those that are deregistered
// until then nobody will see that they are gone.
func (c *Coordinator) forgetSeen() {
	clear(c.seen)
	c.blind = true
}

// silence is for how long a worker was not heard from. Both clocks count: a clock that was set back
// must not make a silent worker immortal. And it counts only since somebody could listen: after an
// outage of the server its workers get a whole lease to come back.
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
		return nil // it went by itself
	}
	if err != nil {
		return err
	}
	c.lost.noLaterThan(now)
	if !taken.Off {
		return nil // it was heard from after all, or another server was first
	}
	c.log.Warn("worker lost", "worker", w.ID, "heard_at", w.HeardAt, "runs_freed", taken.Freed)
	c.options.Observer.WorkerLost()
	c.options.Observer.LeasesLost(taken.Freed)
	return nil
}

// watchStore asks for the store's health while a worker is under suspicion.
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

// freeLost frees the runs that outlive their worker's lease, by a heartbeat timeout of their own or
// because it was not taken off to the end.
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
