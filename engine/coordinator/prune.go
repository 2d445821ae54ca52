package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kagzi/kagzi/engine"
)

const (
	// firstPrune leaves the start of a server alone, and a clock that is wrong at boot the time to be set.
	firstPrune = time.Minute
	pruneEvery = time.Hour
	// backlogFor is how long at least a backlog is deleted before all namespaces are asked again:
	// how long they keep their runs may have changed.
	backlogFor = time.Minute
)

// outcomes are the ways in which a run ends, each with a retention of its own.
var outcomes = []engine.RunStatus{engine.RunCompleted, engine.RunFailed, engine.RunCancelled, engine.RunTimedOut,
	engine.RunTerminated}

// deletion is a round of pruneOld that is under way: what has not had its turn, and what came of
// the rest. Its zero value is none.
type deletion struct {
	begun    time.Time // by the monotonic clock, as the next
	until    time.Time // when all are asked again; zero: all are being asked
	outcomes []outcome
	after    *engine.Cursor // where the namespaces go on that are not among them; nil: there are no others
	again    []outcome      // of which something was deleted, so that there may be more
	any      bool           // something is not kept for good
	failed   error          // what could not be deleted while the store was well
}

// outcome is the runs of a namespace that ended in one way, and how long they are kept.
type outcome struct {
	namespace string
	status    engine.RunStatus
	keep      time.Duration
}

// pruneOld deletes runs that ended long ago, a batch of each namespace and outcome at a time, and
// old records. It does so in portions, between which the other duties have their turn and it rests
// for as long as one took, so that deleting a backlog takes at most half of the store's time. Where
// something was deleted it looks again, and nowhere else until that is gone or has had as long as
// it took to look at all. An outcome where that fails while the store is well is tried again, and
// keeps no other.
func (c *Coordinator) pruneOld(ctx context.Context, now time.Time) (time.Time, error) {
	begun := c.now()
	whole, err := c.pruneSome(ctx, now, begun)
	c.prune.halfway = !whole
	if err != nil {
		c.deletion = deletion{} // its namespaces may be others when the store is back
		return time.Time{}, err
	}
	if !whole {
		return c.store.Now().Add(c.now().Sub(begun)), nil
	}
	d := c.deletion
	c.deletion = deletion{}
	left, err := c.pruneRecords(ctx, now)
	switch {
	case err != nil:
		return time.Time{}, err
	case d.failed != nil:
		return time.Time{}, d.failed
	case len(d.again) > 0 || left:
		if d.until.IsZero() {
			d.until = c.now().Add(max(backlogFor, c.now().Sub(d.begun)))
		}
		if d.until.After(c.now()) {
			c.deletion = deletion{begun: d.begun, until: d.until, outcomes: d.again, any: d.any}
		}
		return c.store.Now().Add(c.now().Sub(begun)), nil
	case !d.any: // until a notification tells of a change
		return time.Time{}, nil
	}
	return now.Add(pruneEvery), nil
}

// pruneSome goes on with the round, or begins one, until a portion of time is over or the round is, which it answers.
func (c *Coordinator) pruneSome(ctx context.Context, now, begun time.Time) (whole bool, err error) {
	d := &c.deletion
	for {
		if len(d.outcomes) == 0 {
			if !d.begun.IsZero() && d.after == nil {
				return true, nil
			}
			if err := c.listOutcomes(ctx); err != nil {
				return false, err
			}
		}
		for len(d.outcomes) > 0 {
			if err := c.pruneOutcome(ctx, d.outcomes[0], now); err != nil {
				return false, err
			}
			d.outcomes = d.outcomes[1:]
			if c.now().Sub(begun) >= portion {
				return false, nil
			}
		}
	}
}

// listOutcomes has the outcomes of the next namespaces come up whose runs are not kept for good.
func (c *Coordinator) listOutcomes(ctx context.Context) error {
	d := &c.deletion
	namespaces, info, err := c.store.ListNamespaces(ctx, engine.Page{Limit: engine.MaxPage, After: d.after})
	if err != nil {
		return err
	}
	if d.begun.IsZero() {
		d.begun = c.now()
	}
	d.after, d.any = nil, d.any || c.options.Retention > 0 || c.options.AuditRetention > 0
	if info.HasNext {
		d.after = &engine.Cursor{Name: namespaces[len(namespaces)-1].Name}
	}
	for i := range namespaces {
		n := &namespaces[i]
		d.any = d.any || n.Retention > 0 || len(n.Keep) > 0
		for _, status := range outcomes {
			if keep := n.RetentionOf(status, c.options.Retention); keep > 0 {
				d.outcomes = append(d.outcomes, outcome{n.Name, status, keep})
			}
		}
	}
	return nil
}

// pruneOutcome deletes a batch of an outcome. An error means that the others cannot be deleted either.
func (c *Coordinator) pruneOutcome(ctx context.Context, o outcome, now time.Time) error {
	d := &c.deletion
	deleted, err := c.store.Prune(ctx, engine.PruneParams{
		Namespace: o.namespace, Status: o.status, Before: now.Add(-o.keep), Limit: c.options.BatchSize})
	if err != nil {
		err = fmt.Errorf("delete runs of %s that ended as %s: %w", o.namespace, o.status, err)
		if c.store.Health(ctx) != nil || ctx.Err() != nil {
			return err
		}
		d.failed = errors.Join(d.failed, err)
		return nil
	}
	if deleted > 0 {
		d.again = append(d.again, o)
		c.log.Info("old runs deleted", "namespace", o.namespace, "status", o.status.String(), "runs", deleted)
		c.options.Observer.RunsDeleted(deleted)
	}
	return nil
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
