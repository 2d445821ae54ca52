package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// view returns the run as clients see it: losses before the last result do not count.
func (r *Run) view() engine.Run {
	run := r.Run
	if r.Lease != nil && r.Lease.Progressed {
		run.LeaseLosses = 0
	}
	return run
}

// listed is view without payloads.
func (r *Run) listed() engine.Run {
	run := r.view()
	run.Input, run.Output = engine.Payload{}, engine.Payload{}
	return run
}

func listed(runs []*Run) (out []engine.Run) {
	for _, r := range runs {
		out = append(out, r.listed())
	}
	return out
}

// run returns the run's row, or RunNotFound.
func (t *tx) run(namespace string, id engine.ID) (*Run, error) {
	if r := t.db.runs[id]; r != nil && r.Namespace == namespace {
		return r, nil
	}
	return nil, engine.RunNotFound(id)
}

// GetRun returns the run with its payloads.
func (s *Store) GetRun(ctx context.Context, namespace string, id engine.ID) (engine.Run, error) {
	return read(ctx, s, "GetRun", func(t *tx) (engine.Run, error) {
		r, err := t.run(namespace, id)
		if err != nil {
			return engine.Run{}, err
		}
		return r.view(), nil
	})
}

func (s *Store) someRuns(ctx context.Context, verb string, take func(*Run) bool) ([]engine.Run, error) {
	return read(ctx, s, verb, func(t *tx) ([]engine.Run, error) { return listed(t.find(take)), nil })
}

// GetRuns returns each run once.
func (s *Store) GetRuns(ctx context.Context, namespace string, ids []engine.ID) ([]engine.Run, error) {
	return s.someRuns(ctx, "GetRuns", func(r *Run) bool {
		return r.Namespace == namespace && slices.Contains(ids, r.ID)
	})
}

// LatestOfChain returns the newest run that continues the chain.
func (s *Store) LatestOfChain(ctx context.Context, namespace string, first engine.ID) (engine.ID, error) {
	return read(ctx, s, "LatestOfChain", func(t *tx) (latest engine.ID, err error) {
		chain := t.find(func(r *Run) bool {
			return r.Namespace == namespace && r.FirstRunID == first && !first.IsZero()
		})
		for i, r := range chain { // by id
			if r.ContinuedAs.IsZero() || i == len(chain)-1 && latest.IsZero() {
				latest = r.ID
			}
		}
		return latest, nil
	})
}

// GetRunByExternalID returns the newest run with that id.
func (s *Store) GetRunByExternalID(ctx context.Context, namespace, externalID string) (engine.Run, error) {
	return read(ctx, s, "GetRunByExternalID", func(t *tx) (engine.Run, error) {
		runs := t.find(func(r *Run) bool {
			return r.Namespace == namespace && r.ExternalID == externalID && externalID != ""
		})
		if len(runs) == 0 {
			return engine.Run{}, engine.ExternalIDNotFound(externalID)
		}
		return runs[len(runs)-1].view(), nil
	})
}

// ListRuns returns runs, newest first.
func (s *Store) ListRuns(ctx context.Context, f engine.RunFilter, p engine.Page) ([]engine.Run,
	engine.PageInfo, error) {
	place := newestFirst(func(r engine.Run) engine.ID { return r.ID })
	return list(ctx, s, "ListRuns", p, place, func(t *tx) ([]engine.Run, error) {
		runs := listed(t.find(func(r *Run) bool { return matches(&f, &r.Run) }))
		slices.Reverse(runs)
		return runs, nil
	})
}

func matches(f *engine.RunFilter, r *engine.Run) bool {
	for k, v := range f.Tags {
		if tag, ok := r.Tags[k]; !ok || tag != v {
			return false
		}
	}
	id := r.ID.String()
	return r.Namespace == f.Namespace &&
		(len(f.Statuses) == 0 || slices.Contains(f.Statuses, r.Status)) &&
		(len(f.Types) == 0 || slices.Contains(f.Types, r.Type)) &&
		(len(f.Queues) == 0 || slices.Contains(f.Queues, r.Queue)) &&
		(f.CreatedAfter.IsZero() || r.CreatedAt.After(f.CreatedAfter)) &&
		(f.CreatedBefore.IsZero() || r.CreatedAt.Before(f.CreatedBefore)) &&
		(f.ParentRunID.IsZero() || r.ParentRunID == f.ParentRunID) &&
		(f.ScheduleID == "" || r.ScheduleID == f.ScheduleID) &&
		(f.WorkerID == "" || r.WorkerID == f.WorkerID) &&
		(f.Search == "" || strings.HasPrefix(id, strings.ToLower(f.Search)) ||
			strings.HasPrefix(r.ExternalID, f.Search))
}

// ListHandlers returns the runs that handle the failure of this one, by id.
func (s *Store) ListHandlers(ctx context.Context, namespace string, run engine.ID) ([]engine.Run, error) {
	return s.someRuns(ctx, "ListHandlers", func(r *Run) bool {
		return r.Namespace == namespace && r.FailedRunID == run
	})
}

// ListRetries returns the runs that this one was retried as, by id.
func (s *Store) ListRetries(ctx context.Context, namespace string, run engine.ID) ([]engine.Run, error) {
	return s.someRuns(ctx, "ListRetries", func(r *Run) bool { return r.Namespace == namespace && r.RetriedFrom == run })
}

// ListSteps returns attempts with their payloads.
func (s *Store) ListSteps(ctx context.Context, namespace string, run engine.ID, f engine.StepFilter,
	p engine.Page) ([]engine.Step, engine.PageInfo, error) {
	place := func(s engine.Step, c *engine.Cursor) int {
		return cmp.Or(cmp.Compare(s.Sequence, c.Number), cmp.Compare(s.Attempt, c.Minor))
	}
	return list(ctx, s, "ListSteps", p, place, func(t *tx) ([]engine.Step, error) {
		if _, err := t.run(namespace, run); err != nil {
			return nil, err
		}
		return t.steps(run, func(s *engine.Step) bool {
			return (f.Name == "" || s.Name == f.Name) && (s.Latest || !f.Latest) &&
				(len(f.Statuses) == 0 || slices.Contains(f.Statuses, s.Status))
		}), nil
	})
}

// GetStep returns one attempt.
func (s *Store) GetStep(ctx context.Context, namespace string, id engine.ID) (engine.Step, error) {
	return read(ctx, s, "GetStep", func(t *tx) (engine.Step, error) {
		for _, r := range t.find(func(r *Run) bool { return r.Namespace == namespace }) {
			if step := t.step(r.ID, func(s *engine.Step) bool { return s.ID == id }); step != nil {
				return *step, nil
			}
		}
		return engine.Step{}, engine.StepNotFound(engine.StepRef{ID: id})
	})
}

// GetHistory continues a task's history where it ended.
func (s *Store) GetHistory(ctx context.Context, p engine.HistoryParams) ([]engine.Step, int64, error) {
	type part struct {
		steps []engine.Step
		next  int64
	}
	out, err := read(ctx, s, "GetHistory", func(t *tx) (out part, err error) {
		if _, err := t.run(p.Namespace, p.RunID); err != nil {
			return out, err
		}
		out.steps, out.next = t.history(p.RunID, p.From, p.Bytes)
		return out, nil
	})
	return out.steps, out.next, err
}

// CurrentLease returns a run's lease for clients that have no token.
func (s *Store) CurrentLease(ctx context.Context, namespace string, id engine.ID) (engine.Lease, error) {
	return read(ctx, s, "CurrentLease", func(t *tx) (engine.Lease, error) {
		r, err := t.run(namespace, id)
		switch {
		case err != nil:
			return engine.Lease{}, err
		case r.Lease == nil:
			return engine.Lease{}, engine.LeaseLost(id, r.Status)
		}
		return engine.Lease{Namespace: namespace, RunID: id, Token: r.Lease.Token}, nil
	})
}

// HeldBy returns the leases of a worker.
func (s *Store) HeldBy(ctx context.Context, worker string) ([]engine.Held, error) {
	return read(ctx, s, "HeldBy", func(t *tx) (held []engine.Held, err error) {
		for _, id := range t.heldBy(worker) {
			r := t.db.runs[id]
			held = append(held, engine.Held{
				Lease:      engine.Lease{Namespace: r.Namespace, RunID: id, Token: r.Lease.Token},
				GraceUntil: r.GraceUntil, CancelReason: r.CancelReason, Pausing: r.Pausing,
			})
		}
		return held, nil
	})
}

// ListSignals returns signals by sequence.
func (s *Store) ListSignals(ctx context.Context, namespace string, run engine.ID, p engine.Page) ([]engine.Signal,
	engine.PageInfo, error) {
	place := func(s engine.Signal, c *engine.Cursor) int { return cmp.Compare(s.Sequence, c.Number) }
	return list(ctx, s, "ListSignals", p, place, func(t *tx) ([]engine.Signal, error) {
		r, err := t.run(namespace, run)
		if err != nil {
			return nil, err
		}
		return slices.Clone(r.Signals), nil
	})
}

// ExplainInputs returns what a run may be waiting for.
func (s *Store) ExplainInputs(ctx context.Context, namespace string, id engine.ID) (engine.Circumstances, error) {
	return read(ctx, s, "ExplainInputs", func(t *tx) (c engine.Circumstances, err error) {
		r, err := t.run(namespace, id)
		if err != nil {
			return c, err
		}
		c.Run, c.NamespaceEnabled = r.listed(), !t.disabled(namespace)
		c.Steps, _ = t.Waiting(id)
		c.Workers = t.workersBy(func(w *engine.Worker) bool {
			return w.Namespace == namespace && w.Status != engine.WorkerOffline && slices.Contains(w.Queues, r.Queue)
		})
		taken := t.placesOf(&r.Run)
		c.PlacesOfKey, c.HoldersOfKey = len(taken), taken[:min(len(taken), engine.NamedHolders)]
		for _, o := range t.db.runs {
			if o.Namespace != namespace {
				continue
			}
			if o.Lease != nil {
				c.RunningInQueue += count(o.Queue == r.Queue)
				c.RunningOfType += count(o.Queue == r.Queue && o.Type == r.Type)
			}
			ahead := cmp.Or(cmp.Compare(r.Priority, o.Priority), o.HeldAt.Compare(r.HeldAt),
				compareIDs(o.ID, r.ID)) < 0
			c.AheadInLine += count(o.SharesKey(&r.Run) && o.Gated && r.Gated && ahead)
		}
		return c, nil
	})
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// GetSchedule finds a schedule by id or name.
func (s *Store) GetSchedule(ctx context.Context, namespace, ref string) (engine.Schedule, error) {
	return read(ctx, s, "GetSchedule", func(t *tx) (engine.Schedule, error) {
		found, _ := t.Schedule(namespace, ref)
		if found == nil {
			return engine.Schedule{}, engine.ScheduleNotFound(ref)
		}
		return *found, nil
	})
}

// ListSchedules returns schedules, newest first.
func (s *Store) ListSchedules(ctx context.Context, f engine.ScheduleFilter, p engine.Page) ([]engine.Schedule,
	engine.PageInfo, error) {
	place := newestFirst(func(s engine.Schedule) engine.ID { return s.ID })
	return list(ctx, s, "ListSchedules", p, place, func(t *tx) (all []engine.Schedule, err error) {
		for _, s := range t.db.schedules {
			if s.Namespace == f.Namespace && (f.Queue == "" || s.Queue == f.Queue) {
				bare := *s
				bare.Input = engine.Payload{}
				all = append(all, bare)
			}
		}
		slices.SortFunc(all, func(a, b engine.Schedule) int { return compareIDs(b.ID, a.ID) })
		return all, nil
	})
}

// GetNamespace returns disabled namespaces too.
func (s *Store) GetNamespace(ctx context.Context, name string) (engine.Namespace, error) {
	return read(ctx, s, "GetNamespace", func(t *tx) (engine.Namespace, error) {
		n := t.db.namespaces[name]
		if n == nil {
			return engine.Namespace{}, engine.NamespaceNotFound(name)
		}
		return *n, nil
	})
}

// ListNamespaces returns namespaces by name.
func (s *Store) ListNamespaces(ctx context.Context, p engine.Page) ([]engine.Namespace, engine.PageInfo, error) {
	return list(ctx, s, "ListNamespaces", p, byName(func(n engine.Namespace) string { return n.Name }),
		func(t *tx) (all []engine.Namespace, err error) {
			for _, name := range slices.Sorted(maps.Keys(t.db.namespaces)) {
				all = append(all, *t.db.namespaces[name])
			}
			return all, nil
		})
}

// ListAuditEvents returns events, newest first.
func (s *Store) ListAuditEvents(ctx context.Context, f engine.AuditFilter, p engine.Page) ([]engine.AuditEvent,
	engine.PageInfo, error) {
	place := newestFirst(func(e engine.AuditEvent) engine.ID { return e.ID })
	return list(ctx, s, "ListAuditEvents", p, place, func(t *tx) (all []engine.AuditEvent, err error) {
		for _, e := range t.db.audit {
			if e.Namespace == f.Namespace && (f.SubjectID == "" || e.SubjectID == f.SubjectID) {
				all = append(all, e)
			}
		}
		slices.SortFunc(all, func(a, b engine.AuditEvent) int { return compareIDs(b.ID, a.ID) })
		return all, nil
	})
}

// Keyring returns the keys that are not revoked, by id.
func (s *Store) Keyring(ctx context.Context) ([]engine.APIKey, error) {
	return read(ctx, s, "Keyring", func(t *tx) (keys []engine.APIKey, err error) {
		for _, k := range t.db.keys {
			if k.RevokedAt.IsZero() {
				keys = append(keys, *k)
			}
		}
		slices.SortFunc(keys, func(a, b engine.APIKey) int { return compareIDs(a.ID, b.ID) })
		return keys, nil
	})
}

// ListKeys returns keys, newest first.
func (s *Store) ListKeys(ctx context.Context, p engine.Page) ([]engine.APIKey, engine.PageInfo, error) {
	place := newestFirst(func(k engine.APIKey) engine.ID { return k.ID })
	return list(ctx, s, "ListKeys", p, place, func(t *tx) (all []engine.APIKey, err error) {
		for _, k := range t.db.keys {
			all = append(all, *k)
		}
		slices.SortFunc(all, func(a, b engine.APIKey) int { return compareIDs(b.ID, a.ID) })
		return all, nil
	})
}

// GetWorker returns OFFLINE workers too.
func (s *Store) GetWorker(ctx context.Context, id string) (engine.Worker, error) {
	return read(ctx, s, "GetWorker", func(t *tx) (engine.Worker, error) {
		w := t.db.workers[id]
		if w == nil {
			return engine.Worker{}, engine.WorkerUnknown(id)
		}
		return *w, nil
	})
}

// ListWorkers returns workers, newest first.
func (s *Store) ListWorkers(ctx context.Context, f engine.WorkerFilter, p engine.Page) ([]engine.Worker,
	engine.PageInfo, error) {
	place := func(w engine.Worker, c *engine.Cursor) int {
		return cmp.Or(c.At.Compare(w.RegisteredAt), strings.Compare(c.Name, w.ID))
	}
	return list(ctx, s, "ListWorkers", p, place, func(t *tx) ([]engine.Worker, error) {
		all := t.workersBy(func(w *engine.Worker) bool {
			return (f.Namespace == "" || w.Namespace == f.Namespace) && (f.Status == 0 || w.Status == f.Status) &&
				(f.Queue == "" || slices.Contains(w.Queues, f.Queue))
		})
		slices.SortFunc(all, func(a, b engine.Worker) int {
			return cmp.Or(b.RegisteredAt.Compare(a.RegisteredAt), strings.Compare(b.ID, a.ID))
		})
		return all, nil
	})
}

// GetQueueDepth counts the runs of a queue one by one.
func (s *Store) GetQueueDepth(ctx context.Context, namespace, queue string,
	now time.Time) ([]engine.QueueDepth, error) {
	return read(ctx, s, "GetQueueDepth", func(t *tx) ([]engine.QueueDepth, error) {
		depths := map[string]*engine.QueueDepth{}
		of := func(name string) *engine.QueueDepth {
			if depths[name] == nil {
				depths[name] = &engine.QueueDepth{Queue: name}
			}
			return depths[name]
		}
		for _, w := range t.workersBy(func(w *engine.Worker) bool {
			return w.Namespace == namespace && w.Status != engine.WorkerOffline
		}) {
			for _, name := range w.Queues {
				if queue == "" || name == queue {
					of(name).OnlineWorkers += count(w.Status == engine.WorkerOnline)
				}
			}
		}
		for _, r := range t.find(func(r *Run) bool {
			return r.Namespace == namespace && !r.Status.Ended() && (queue == "" || r.Queue == queue)
		}) {
			t.addDepth(of(r.Queue), r, engine.Micros(now))
		}
		var out []engine.QueueDepth
		for _, name := range slices.Sorted(maps.Keys(depths)) {
			out = append(out, *depths[name])
		}
		return out, nil
	})
}

// addDepth counts an open run.
func (t *tx) addDepth(d *engine.QueueDepth, r *Run, now time.Time) {
	d.Pending += int64(count(r.Status == engine.RunPending))
	d.Running += int64(count(r.Status == engine.RunRunning))
	d.Sleeping += int64(count(r.Status == engine.RunSleeping))
	if !isDue(r, now) {
		return
	}
	if d.OldestDue.IsZero() || r.AvailableAt.Before(d.OldestDue) {
		d.OldestDue = r.AvailableAt
	}
	for _, w := range t.db.workers {
		if w.Namespace == r.Namespace && w.Status == engine.WorkerOnline && slices.Contains(w.Queues, r.Queue) &&
			slices.Contains(w.Types, r.Type) &&
			engine.Meets(w.Offers(), r.Requirements) {
			return
		}
	}
	if d.Unserved == nil {
		d.Unserved = map[string]int64{}
	}
	d.Unserved[r.Type]++
}

func isDue(r *Run, now time.Time) bool {
	return !r.Status.Ended() && r.Lease == nil && !r.AvailableAt.IsZero() && !r.AvailableAt.After(now)
}

// GetStats counts the runs of a namespace one by one.
func (s *Store) GetStats(ctx context.Context, namespace string, now time.Time) (engine.Stats, error) {
	return read(ctx, s, "GetStats", func(t *tx) (engine.Stats, error) {
		out := engine.Stats{ByStatus: map[engine.RunStatus]int64{}, ByType: map[string]int64{}}
		in := func(other string) bool { return namespace == "" || other == namespace }
		for _, r := range t.find(func(r *Run) bool { return in(r.Namespace) }) {
			out.ByStatus[r.Status]++
			out.ByType[r.Type]++
			if isDue(r, engine.Micros(now)) && (out.OldestDue.IsZero() || r.AvailableAt.Before(out.OldestDue)) {
				out.OldestDue = r.AvailableAt
			}
		}
		for _, w := range t.db.workers {
			out.Workers += int64(count(in(w.Namespace)))
			out.OnlineWorkers += int64(count(in(w.Namespace) && w.Status == engine.WorkerOnline))
		}
		for _, s := range t.db.schedules {
			out.Schedules += int64(count(in(s.Namespace)))
			out.EnabledSchedules += int64(count(in(s.Namespace) && s.Enabled))
		}
		return out, nil
	})
}

// ListTypes returns types by name.
func (s *Store) ListTypes(ctx context.Context, namespace string, p engine.Page) ([]engine.TypeInfo,
	engine.PageInfo, error) {
	return list(ctx, s, "ListTypes", p, byName(func(i engine.TypeInfo) string { return i.Type }),
		func(t *tx) ([]engine.TypeInfo, error) {
			types := map[string]*engine.TypeInfo{}
			for _, r := range t.find(func(r *Run) bool { return r.Namespace == namespace }) {
				if types[r.Type] == nil {
					types[r.Type] = &engine.TypeInfo{Type: r.Type}
				}
				info := types[r.Type]
				info.Total++
				info.Active += int64(count(!r.Status.Ended()))
				if !slices.Contains(info.Queues, r.Queue) {
					info.Queues = append(info.Queues, r.Queue)
					slices.Sort(info.Queues)
				}
			}
			var all []engine.TypeInfo
			for _, name := range slices.Sorted(maps.Keys(types)) {
				all = append(all, *types[name])
			}
			return all, nil
		})
}
