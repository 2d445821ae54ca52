package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kagzi/kagzi/engine"
)

const (
	// firstPrune is the pause after a server's start: a clock that is wrong at boot may be set by
	// then.
	firstPrune = time.Minute
	pruneEvery = time.Hour
	// backlogFor is how long a backlog is deleted, at least, before all namespaces are read again,
	// because their retention may have changed.
	backlogFor = time.Minute
)

// outcomes are the statuses with which runs end; each may have its own retention.
var outcomes = []engine.RunStatus{engine.RunCompleted, engine.RunFailed, engine.RunCancelled, engine.RunTimedOut,
	engine.RunTerminated}

// deletion is the state of a round of pruneOld. Its zero value is no round.
type deletion struct {
	begun    time.Time      // by the monotonic clock
	until    time.Time      // when all namespaces are read again, by the monotonic clock; zero: they are being read
	outcomes []outcome      // still to do
	after    *engine.Cursor // where to continue reading namespaces; nil: all were read
	again    []outcome      // outcomes of which runs were deleted, so that there may be more
	any      bool           // some runs or records are not kept forever
	failed   error          // what could not be deleted although the store was healthy
}

// outcome stands for the runs of a namespace that ended with a status, and their retention.
type outcome struct {
	namespace string
	status    engine.RunStatus
	keep      time.Duration
}

// pruneOld deletes runs after their retention, one batch for each namespace and outcome, and old
// records.
//
// It works in portions. Between these the other duties run, and it pauses for as long as a portion
// took, so that deleting a backlog uses at most half of the store's time. If a batch deleted runs,
// it goes on with just those outcomes until they are done, or until that has taken as long as the
// first pass over all. An outcome that fails although the store is healthy is retried later and
// does not stop the others.
func (c *Coordinator) pruneOld(ctx context.Context, now time.Time) (time.Time, error) {
	begun := c.now()
	whole, err := c.pruneSome(ctx, now, begun)
	c.prune.halfway = !whole
	if err != nil {
		c.deletion = deletion{} // the namespaces may have changed when the store is back
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
	case !d.any: // a notification tells if that changes
		return time.Time{}, nil
	}
	return now.Add(pruneEvery), nil
}

// pruneSome continues the round, or begins one, until a portion of time has passed. It returns true
// when the round is complete.
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

// listOutcomes adds the outcomes of the next namespaces, except those that are kept forever.
func (c *Coordinator) listOutcomes(ctx context.Context) error {
	d := &c.deletion
	namespaces, info, err := c.store.ListNamespaces(ctx, engine.Page{Limit: engine.MaxPage, After: d.after})
	if err != nil {
		return err
	}
	if d.begun.IsZero() {
		d.begun = c.now()
	}
	d.after, d.any = nil, d.any || c.options.Retention > 0 || c.options.AuditRetention > 0 ||
		c.options.RequestRetention > 0
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

// pruneOutcome deletes a batch of an outcome. It returns an error only if the others would fail
// too.
func (c *Coordinator) pruneOutcome(ctx context.Context, o outcome, now time.Time) error {
	d := &c.deletion
	p := engine.PruneParams{Namespace: o.namespace, Status: o.status, Before: now.Add(-o.keep),
		Limit: c.options.BatchSize}
	if keep := c.options.RequestRetention; keep > 0 {
		p.Requests = now.Add(-keep)
	}
	deleted, err := c.store.Prune(ctx, p)
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

// pruneRecords deletes a batch of records of workers, ticks and changes. more says that there may
// be others.
func (c *Coordinator) pruneRecords(ctx context.Context, now time.Time) (more bool, err error) {
	p := engine.PruneRecordsParams{Limit: c.options.BatchSize}
	if keep := c.options.Retention; keep > 0 {
		p.Workers, p.Fires = now.Add(-keep), now.Add(-keep)
	}
	if keep := c.options.AuditRetention; keep > 0 {
		p.Audit = now.Add(-keep)
	}
	if keep := c.options.RequestRetention; keep > 0 {
		p.Requests = now.Add(-keep)
	}
	if p.Workers.IsZero() && p.Audit.IsZero() && p.Requests.IsZero() {
		return false, nil
	}
	return c.store.PruneRecords(ctx, p)
}
