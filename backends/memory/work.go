package memory

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// CompleteStep records a step's result.
func (s *Store) CompleteStep(ctx context.Context, p engine.CompleteStepParams) (engine.Step, error) {
	return write(ctx, s, "CompleteStep", p, func(t *tx) (engine.Step, error) { return storelogic.CompleteStep(t, p) })
}

// CompleteRun ends the run with its output.
func (s *Store) CompleteRun(ctx context.Context, p engine.CompleteRunParams) (engine.Completed, error) {
	return write(ctx, s, "CompleteRun", p, func(t *tx) (engine.Completed, error) {
		return storelogic.CompleteRun(t, p)
	})
}

// Claim assigns due runs to claim slots.
func (s *Store) Claim(ctx context.Context, p engine.ClaimParams) (engine.Claimed, error) {
	p.Now = engine.Micros(p.Now)
	return write(ctx, s, "Claim", p, func(t *tx) (engine.Claimed, error) {
		c := claim{tx: t, p: &p}
		out := c.run()
		return out, c.err
	})
}

// claim is one Claim in progress.
type claim struct {
	*tx
	p     *engine.ClaimParams
	slots []engine.ClaimSlot // slots of ONLINE workers that are left
	held  map[string]*engine.Suspects
	out   engine.Claimed
	err   error
}

func (c *claim) run() engine.Claimed {
	c.online()
	if len(c.slots) == 0 || c.disabled(c.p.Namespace) {
		return c.out
	}
	waiting := c.find(func(r *Run) bool {
		return r.Namespace == c.p.Namespace && r.Queue == c.p.Queue && !r.Status.Ended() && r.Lease == nil &&
			!r.AvailableAt.IsZero() && !r.DivergedIn(c.p.BuildID) &&
			slices.Contains(c.p.Types, r.Type) && engine.Meets(c.p.Offers, r.Requirements)
	})
	var due []*Run
	for _, r := range waiting {
		if !r.AvailableAt.After(c.p.Now) {
			due = append(due, r)
		} else if c.out.NextDue.IsZero() || r.AvailableAt.Before(c.out.NextDue) {
			c.out.NextDue = r.AvailableAt
		}
	}
	slices.SortFunc(due, byAge)
	blocked := c.takeApart(due)
	due = slices.DeleteFunc(due, func(r *Run) bool { return r.Apart() })
	for _, r := range due {
		if len(c.slots) == 0 || len(c.out.Tasks) >= c.p.ByAge {
			break
		}
		c.take(r)
	}
	due = slices.DeleteFunc(due, func(r *Run) bool { return c.db.runs[r.ID].AvailableAt.IsZero() })
	slices.SortStableFunc(due, func(a, b *Run) int { return b.Priority - a.Priority })
	for _, r := range due {
		if len(c.slots) == 0 {
			break
		}
		c.take(r)
	}
	if blocked {
		c.out.Limited = true
		if retry := c.p.Now.Add(engine.SuspectRetry); c.out.NextDue.IsZero() || retry.Before(c.out.NextDue) {
			c.out.NextDue = retry
		}
	}
	if len(c.slots) == 0 {
		c.out.Limited, c.out.NextDue = false, time.Time{}
	}
	return c.out
}

// online drops the slots of workers that may get nothing.
func (c *claim) online() {
	for _, g := range c.p.Slots {
		if w := c.db.workers[g.WorkerID]; w != nil && w.Status == engine.WorkerOnline {
			c.slots = append(c.slots, g)
		} else if !slices.Contains(c.out.Offline, g.WorkerID) {
			c.out.Offline = append(c.out.Offline, g.WorkerID)
		}
	}
}

// takeApart claims the due runs that are apart, as far as a worker may hold them, and says whether any
// was left because no worker may.
func (c *claim) takeApart(due []*Run) (blocked bool) {
	apart := slices.DeleteFunc(slices.Clone(due), func(r *Run) bool { return !r.Apart() })
	slices.SortStableFunc(apart, func(a, b *Run) int { return b.Priority - a.Priority })
	c.held = map[string]*engine.Suspects{}
	for _, r := range apart {
		if len(c.slots) == 0 {
			break
		}
		i := slices.IndexFunc(c.slots, func(g engine.ClaimSlot) bool {
			return c.suspectsHeld(g.WorkerID).May(r.Suspect)
		})
		if i < 0 {
			blocked = true
			continue
		}
		slot := c.slots[i]
		c.slots = slices.Insert(slices.Delete(c.slots, i, i+1), 0, slot)
		c.take(r)
	}
	return blocked
}

// suspectsHeld counts the suspects that a worker holds.
func (c *claim) suspectsHeld(worker string) *engine.Suspects {
	held := c.held[worker]
	if held == nil {
		held = &engine.Suspects{}
		for _, r := range c.suspectsOf(worker, c.p.Now) {
			held.Add(r.Suspect)
		}
		c.held[worker] = held
	}
	return held
}

// suspectsOf returns the runs that a worker holds and that are suspects at now.
func (t *tx) suspectsOf(worker string, now time.Time) []*Run {
	return t.find(func(r *Run) bool {
		return r.Lease != nil && r.Lease.Holder == worker && r.Suspect.Is() && !r.Lease.Progressed &&
			r.Lease.ClaimedAt.After(engine.SuspectSince(now))
	})
}

// byAge orders runs by how long they have been due, longest first.
func byAge(a, b *Run) int {
	return cmp.Or(a.AvailableAt.Compare(b.AvailableAt), compareIDs(a.ID, b.ID))
}

// leases counts the leases that the filter accepts.
func (c *claim) leases(take func(*Run) bool) int {
	return len(c.find(func(r *Run) bool { return r.Lease != nil && r.Namespace == c.p.Namespace && take(r) }))
}

// placesOf returns the runs that have a place of the run's concurrency key, by id.
func (t *tx) placesOf(r *engine.Run) []engine.ID {
	return t.ids(func(o *Run) bool {
		return o.SharesKey(r) && (o.HasPlace && !o.Status.Ended() || o.Lease != nil && o.LeaseKey() != "")
	})
}

// take makes a due run RUNNING under the next slot's token, unless a limit is reached.
func (c *claim) take(r *Run) {
	inQueue := func(other *Run) bool { return other.Queue == r.Queue }
	ofType := func(other *Run) bool { return inQueue(other) && other.Type == r.Type }
	limit, limited := c.p.TypeLimits[r.Type]
	if c.p.QueueLimit > 0 && c.leases(inQueue) >= c.p.QueueLimit || limited && c.leases(ofType) >= limit {
		c.out.Limited = true
		return
	}
	if r.TakesPlace() && len(c.placesOf(&r.Run)) >= max(r.ConcurrencyLimit, 1) {
		run := c.change(r.ID)
		c.notifyRun(r.ID)
		run.Gated, run.HeldAt, run.AvailableAt = true, run.AvailableAt, time.Time{}
		return
	}
	if !r.Suspect.Is() {
		place, until := c.p.Choose(r.ID, r.AvailableAt, c.slots)
		if !until.IsZero() {
			if c.out.NextDue.IsZero() || until.Before(c.out.NextDue) {
				c.out.NextDue = until
			}
			return
		}
		slot := c.slots[place]
		c.slots = slices.Insert(slices.Delete(c.slots, place, place+1), 0, slot)
	}
	run := c.change(r.ID)
	c.notifyRun(r.ID)
	slot := c.slots[0]
	c.slots = c.slots[1:]
	if r.Suspect.Is() {
		c.suspectsHeld(slot.WorkerID).Add(r.Suspect)
	}
	run.Status, run.AvailableAt, run.WaitingFor, run.WorkerID = engine.RunRunning, time.Time{}, "", slot.WorkerID
	if run.StartedAt.IsZero() {
		run.StartedAt = c.p.Now
	}
	run.HasPlace = run.HasPlace || run.ConcurrencyScope == engine.ScopeOpen
	run.Lease = &Lease{Token: slot.Token, Holder: slot.WorkerID, ClaimedAt: c.p.Now}
	kept := c.p.KeptBy(slot.WorkerID, r.ID)
	var since storelogic.Since
	if run.Run.Steps > 0 {
		var err error
		since, err = storelogic.SettleClaimed(c.tx, r.ID, kept, c.p.Now)
		c.err = cmp.Or(c.err, err)
		run = c.db.runs[r.ID]
	}
	task := engine.Task{Run: run.Run, Lease: engine.Lease{Namespace: run.Namespace, RunID: run.ID, Token: slot.Token},
		ClaimedAt: c.p.Now}
	if !since.Knows(kept) || !task.SetSince(kept, since.Steps, c.p.HistoryBytes) {
		task.History, task.NextSequence = c.history(run.ID, 0, c.p.HistoryBytes)
	}
	c.out.Tasks = append(c.out.Tasks, task)
}

// history returns the latest attempts from a sequence on, about so many bytes of them, and the
// sequence of the rest.
func (t *tx) history(run engine.ID, from int64, bytes int) (steps []engine.Step, next int64) {
	size := 0
	for _, s := range t.steps(run, func(s *engine.Step) bool { return s.Latest && s.Sequence >= from }) {
		if len(steps) > 0 && size >= bytes {
			return steps, s.Sequence
		}
		steps = append(steps, s)
		size += 200 + len(s.Input.Data) + len(s.Output.Data)
		if s.Error != nil {
			size += s.Error.Size()
		}
	}
	return steps, 0
}

// compareSteps orders steps in lists.
func compareSteps(a, b engine.Step) int {
	return cmp.Or(cmp.Compare(a.Sequence, b.Sequence), cmp.Compare(a.Attempt, b.Attempt))
}

// RegisterWorker looks for the instance first, then for the id.
func (s *Store) RegisterWorker(ctx context.Context, p engine.RegisterWorkerParams) (engine.Worker, error) {
	p.Now = engine.Micros(p.Now)
	for {
		more := false
		w, err := write(ctx, s, "RegisterWorker", p, func(t *tx) (w engine.Worker, err error) {
			w, more, err = t.register(&p)
			return w, err
		})
		if err != nil || !more {
			return w, err
		}
	}
}

// register returns the worker as stored; nothing is stored while more leases of the id's previous
// holder must be freed first.
func (t *tx) register(p *engine.RegisterWorkerParams) (stands engine.Worker, more bool, err error) {
	err = engine.MustExist(p.Worker.Namespace, t.db.namespaces[p.Worker.Namespace] != nil, p.NamespaceMustExist)
	if err != nil {
		return engine.Worker{}, false, err
	}
	t.useNamespace(p.Worker.Namespace, p.Now)
	w := p.New()
	instance := t.workersBy(func(k *engine.Worker) bool {
		return k.Namespace == w.Namespace && k.InstanceID == w.InstanceID && w.InstanceID != ""
	})
	if len(instance) > 0 {
		t.notifyRegistered(instance[0].ID)
		return t.keepWorker(p.Again(&instance[0])), false, nil
	}
	if taken := t.db.workers[w.ID]; taken != nil {
		if taken.Status != engine.WorkerOffline {
			return engine.Worker{}, false, engine.WorkerTaken(w.ID)
		}
		held := t.heldBy(w.ID)
		first := held[:min(len(held), storelogic.FreedAtOnce)]
		if _, err := storelogic.LoseRuns(t, first, time.Time{}, p.Now); err != nil ||
			len(first) == storelogic.FreedAtOnce {
			return engine.Worker{}, true, err
		}
		t.notifyWorker(w.ID)
	} else {
		t.notifyRegistered(w.ID)
	}
	return t.keepWorker(w), false, nil
}

func (t *tx) Loss(worker string) (l engine.Loss, err error) {
	if known := t.db.losses[worker]; known != nil {
		l = *known
	}
	if w := t.db.workers[worker]; w != nil {
		l.Worker, l.At, l.HeardAt = worker, w.DeregisteredAt, w.LastHeartbeatAt
	}
	return l, nil
}

func (t *tx) keepWorker(w engine.Worker) engine.Worker {
	if w.Status != engine.WorkerOffline && t.db.losses[w.ID] != nil {
		remove(t, t.db.losses, w.ID)
	}
	put(t, t.db.workers, w.ID, &w)
	return w
}

// workersBy returns the workers that the filter accepts, by id.
func (t *tx) workersBy(take func(*engine.Worker) bool) (workers []engine.Worker) {
	for _, w := range t.db.workers {
		if take(w) {
			workers = append(workers, *w)
		}
	}
	slices.SortFunc(workers, func(a, b engine.Worker) int { return strings.Compare(a.ID, b.ID) })
	return workers
}

func (t *tx) heldBy(worker string) []engine.ID {
	return t.ids(func(r *Run) bool { return r.Lease != nil && r.Lease.Holder == worker })
}

// Heartbeat records that the worker lives, and compares the leases that it names with those that it
// has.
func (s *Store) Heartbeat(ctx context.Context, p engine.HeartbeatParams) (engine.Beat, error) {
	p.Now = engine.Micros(p.Now)
	var unnamed []engine.Lease
	beat, err := write(ctx, s, "Heartbeat", p, func(t *tx) (engine.Beat, error) {
		known := t.db.workers[p.WorkerID]
		if known == nil || known.Status == engine.WorkerOffline {
			return engine.Beat{}, engine.WorkerNotFound(p.WorkerID)
		}
		w := *known
		w.Active, w.Completed, w.Failed = p.Active, w.Completed+int64(p.Completed), w.Failed+int64(p.Failed)
		if p.Stats != nil {
			w.Stats = *p.Stats
		}
		w.LastHeartbeatAt = w.HeardAgain(p.Now)
		put(t, t.db.workers, w.ID, &w)
		beat := engine.Beat{Status: w.Status}
		unnamed = t.compare(&p, &beat)
		return beat, t.freeUnnamed(storelogic.FirstToFree(&unnamed), &p)
	})
	for rest := err; len(unnamed) > 0 && rest == nil; {
		part := storelogic.FirstToFree(&unnamed)
		_, rest = write(ctx, s, "Heartbeat", p, func(t *tx) (none struct{}, err error) {
			return none, t.freeUnnamed(part, &p)
		})
	}
	return beat, err
}

// freeUnnamed frees these leases of the worker unless they are over.
func (t *tx) freeUnnamed(unnamed []engine.Lease, p *engine.HeartbeatParams) error {
	var ids []engine.ID
	for _, l := range unnamed {
		if r := t.db.runs[l.RunID]; r != nil && r.Lease != nil && r.Lease.Token == l.Token {
			ids = append(ids, l.RunID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	t.notifyWorker(p.WorkerID)
	return storelogic.FreeRuns(t, ids, p.Now)
}

// compare compares the leases that the worker names with its leases, and returns those to free
// because the worker does not know them.
func (t *tx) compare(p *engine.HeartbeatParams, beat *engine.Beat) (unnamed []engine.Lease) {
	named := map[engine.ID]bool{}
	for _, l := range p.Held {
		r := t.db.runs[l.RunID]
		if r == nil || r.Lease == nil || r.Lease.Token != l.Token || r.Lease.Holder != p.WorkerID {
			beat.Lost = append(beat.Lost, l)
			continue
		}
		named[l.RunID] = true
		if !r.GraceUntil.IsZero() {
			beat.Cancelling = append(beat.Cancelling,
				engine.Held{Lease: l, GraceUntil: r.GraceUntil, CancelReason: r.CancelReason})
		}
		if r.Pausing {
			beat.Pausing = append(beat.Pausing, l)
		}
	}
	if !p.Whole {
		return nil
	}
	for _, id := range t.heldBy(p.WorkerID) {
		if !named[id] && !t.db.runs[id].Lease.ClaimedAt.Add(p.NameWithin).After(p.Now) {
			unnamed = append(unnamed, engine.Lease{RunID: id, Token: t.db.runs[id].Lease.Token})
		}
	}
	return unnamed
}

// DrainWorker makes the worker DRAINING; it keeps its leases.
func (s *Store) DrainWorker(ctx context.Context, p engine.DrainWorkerParams) error {
	p.Now = engine.Micros(p.Now)
	_, err := write(ctx, s, "DrainWorker", p, func(t *tx) (none struct{}, err error) {
		known := t.db.workers[p.WorkerID]
		if known == nil || known.Status == engine.WorkerOffline {
			return none, engine.WorkerNotFound(p.WorkerID)
		}
		w := *known
		w.Status = engine.WorkerDraining
		t.keepWorker(w)
		t.notifyWorker(w.ID)
		return none, storelogic.AuditDrain(t, known, &p)
	})
	return err
}

// ForceOfflineWorker makes the worker OFFLINE and frees its leases, in portions.
func (s *Store) ForceOfflineWorker(ctx context.Context, p engine.OfflineWorkerParams) (engine.Deregistered, error) {
	p.Now, p.HeardAt = engine.Micros(p.Now), engine.Micros(p.HeardAt)
	taken, err := write(ctx, s, "ForceOfflineWorker", p, func(t *tx) (engine.Deregistered, error) {
		return t.offlineWorker(&p)
	})
	for more := taken; more.Freed == storelogic.FreedAtOnce && err == nil; taken.Freed += more.Freed {
		more, err = write(ctx, s, "ForceOfflineWorker", p, func(t *tx) (rest engine.Deregistered, err error) {
			if w := t.db.workers[p.WorkerID]; storelogic.DeregisteredBy(w, &p) {
				rest.Freed, err = t.freeHeld(w, &p)
			}
			return rest, err
		})
	}
	return taken, err
}

func (t *tx) offlineWorker(p *engine.OfflineWorkerParams) (taken engine.Deregistered, err error) {
	known := t.db.workers[p.WorkerID]
	switch {
	case known == nil:
		return taken, engine.WorkerNotFound(p.WorkerID)
	case known.Status == engine.WorkerOffline, p.Reason == engine.OfflineLost && known.LastHeartbeatAt.After(p.HeardAt):
		return taken, nil
	}
	w := p.Off(known)
	t.keepWorker(w)
	if p.Reason == engine.OfflineLost {
		put(t, t.db.losses, w.ID, &engine.Loss{
			Runs: len(t.heldBy(w.ID)), Suspects: len(t.suspectsOf(w.ID, w.LastHeartbeatAt))})
	}
	t.notifyWorker(w.ID)
	if err := storelogic.AuditOffline(t, known, p); err != nil {
		return taken, err
	}
	taken.Off = true
	taken.Freed, err = t.freeHeld(&w, p)
	return taken, err
}

// freeHeld frees the first portion of the worker's leases.
func (t *tx) freeHeld(w *engine.Worker, p *engine.OfflineWorkerParams) (int, error) {
	ids := t.ids(func(r *Run) bool {
		return r.Lease != nil && r.Lease.Holder == w.ID &&
			(p.Reason != engine.OfflineLost || !w.LastHeartbeatAt.Add(r.Timeouts.Heartbeat).After(p.Now))
	})
	return storelogic.FreeHeld(t, w, ids[:min(len(ids), storelogic.FreedAtOnce)], p)
}
