package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// Answers returns the results of the engine.Store method for the call, without its error.
func (c *Call) Answers() []any {
	if _, nothing := c.Answer.(struct{}); nothing {
		return nil
	}
	return []any{c.Answer}
}

// LiveWorkers returns the workers that are not OFFLINE, by id.
func (s *Store) LiveWorkers(ctx context.Context) ([]engine.LiveWorker, error) {
	return read(ctx, s, "LiveWorkers", func(t *tx) (live []engine.LiveWorker, err error) {
		for _, w := range t.workersBy(func(w *engine.Worker) bool { return w.Status != engine.WorkerOffline }) {
			live = append(live, engine.LiveWorker{ID: w.ID, HeardAt: w.LastHeartbeatAt})
		}
		return live, nil
	})
}

// DueSchedules returns the schedules that must fire, earliest first.
func (s *Store) DueSchedules(ctx context.Context, now time.Time, limit int) ([]engine.Schedule, time.Time, error) {
	type found struct {
		due  []engine.Schedule
		next time.Time
	}
	out, err := read(ctx, s, "DueSchedules", func(t *tx) (out found, err error) {
		var firing []engine.Schedule
		for _, s := range t.db.schedules {
			if s.Enabled && s.Broken == "" && !s.NextFireAt.IsZero() && !t.disabled(s.Namespace) {
				firing = append(firing, *s)
			}
		}
		slices.SortFunc(firing, func(a, b engine.Schedule) int {
			return cmp.Or(a.FiresAt().Compare(b.FiresAt()), compareIDs(a.ID, b.ID))
		})
		for _, s := range firing {
			if len(out.due) == limit || s.FiresAt().After(now) {
				out.next = s.FiresAt()
				return out, nil
			}
			s.Input = engine.Payload{}
			out.due = append(out.due, s)
		}
		return out, nil
	})
	return out.due, out.next, err
}

// Prune deletes runs with everything that belongs to them.
func (s *Store) Prune(ctx context.Context, p engine.PruneParams) (int, error) {
	p.Before = engine.Micros(p.Before)
	imported := engine.FirstID(p.Before)
	return write(ctx, s, "Prune", p, func(t *tx) (int, error) {
		old := t.find(func(r *Run) bool {
			return r.Namespace == p.Namespace && r.Status == p.Status && r.Status.Ended() &&
				r.FinishedAt.Before(p.Before) && !r.Pinned &&
				(r.Origin != engine.OriginImport || compareIDs(r.ID, imported) < 0) && !t.neededByOpen(r)
		})
		slices.SortStableFunc(old, func(a, b *Run) int { return a.FinishedAt.Compare(b.FinishedAt) })
		old = old[:min(p.Limit, len(old))]
		for _, r := range old {
			t.keepRequests(r, engine.Micros(p.Requests))
			t.putRun(r.ID, nil)
		}
		return len(old), nil
	})
}

// keepRequests removes the requests of a run that is about to be deleted, and remembers those that
// were made since.
func (t *tx) keepRequests(r *Run, since time.Time) {
	own := name{r.Namespace, r.RequestID}
	keep := func(n name, q request) {
		if q.made.Before(since) {
			return
		}
		asked := engine.StartRun{Run: engine.Run{Namespace: n.namespace, RequestID: n.name, Queue: q.start.Queue,
			Type: q.start.Type, ExternalID: q.start.ExternalID}}
		if asked.Type == "" {
			asked.Input = q.start.Input // the digest of a retry
		}
		put(t, t.db.past, n, request{r.ID, &asked, q.made})
	}
	if _, left := t.db.requests[own]; r.RequestID != "" && !left {
		keep(own, request{r.ID, &engine.StartRun{Run: r.Run}, r.ID.MadeAt()})
	}
	for n, q := range t.db.requests {
		if q.run == r.ID {
			keep(n, q)
			remove(t, t.db.requests, n)
		}
	}
}

// neededByOpen says whether an open run refers to the run, or is its parent.
func (t *tx) neededByOpen(r *Run) bool {
	for _, x := range t.db.runs {
		if !x.Status.Ended() && (x.ID == r.ParentRunID || x.ID == r.ContinuedAs || x.ParentRunID == r.ID ||
			x.FailedRunID == r.ID || x.RetriedFrom == r.ID) {
			return true
		}
	}
	return false
}

// PruneRecords deletes old workers, tick records and audit events.
func (s *Store) PruneRecords(ctx context.Context, p engine.PruneRecordsParams) (bool, error) {
	return write(ctx, s, "PruneRecords", p, func(t *tx) (bool, error) {
		gone := t.workersBy(func(w *engine.Worker) bool {
			return w.Status == engine.WorkerOffline && w.DeregisteredAt.Before(engine.Micros(p.Workers)) &&
				len(t.heldBy(w.ID)) == 0
		})
		slices.SortStableFunc(gone, func(a, b engine.Worker) int { return a.DeregisteredAt.Compare(b.DeregisteredAt) })
		for _, w := range gone[:min(p.Limit, len(gone))] {
			remove(t, t.db.workers, w.ID)
		}
		var old []Fire
		for f, row := range t.db.fires {
			if row.at.Before(engine.Micros(p.Fires)) {
				old = append(old, f)
			}
		}
		slices.SortFunc(old, func(a, b Fire) int {
			return cmp.Or(t.db.fires[a].at.Compare(t.db.fires[b].at), compareIDs(a.Schedule, b.Schedule),
				a.Tick.Compare(b.Tick))
		})
		for _, f := range old[:min(p.Limit, len(old))] {
			remove(t, t.db.fires, f)
		}
		var past []name
		for n, q := range t.db.past {
			if q.made.Before(engine.Micros(p.Requests)) {
				past = append(past, n)
			}
		}
		slices.SortFunc(past, func(a, b name) int {
			return cmp.Or(t.db.past[a].made.Compare(t.db.past[b].made), cmp.Compare(a.namespace, b.namespace),
				cmp.Compare(a.name, b.name))
		})
		for _, n := range past[:min(p.Limit, len(past))] {
			remove(t, t.db.past, n)
		}
		var events []engine.ID
		for id := range t.db.audit {
			if compareIDs(id, engine.FirstID(p.Audit)) < 0 {
				events = append(events, id)
			}
		}
		slices.SortFunc(events, compareIDs)
		for _, id := range events[:min(p.Limit, len(events))] {
			remove(t, t.db.audit, id)
		}
		return max(len(gone), len(old), len(past), len(events)) >= p.Limit, nil
	})
}
