package postgres

import (
	"context"
	_ "embed"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storekit"
	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/lock_worker.sql
var lockWorkerSQL string

//go:embed sql/get_worker_by_instance.sql
var getWorkerByInstanceSQL string

//go:embed sql/insert_worker.sql
var insertWorkerSQL string

//go:embed sql/renew_worker.sql
var renewWorkerSQL string

//go:embed sql/delete_worker.sql
var deleteWorkerSQL string

// RegisterWorker looks for the instance first, then for the id. If an OFFLINE worker had the id,
// its leases are freed first, in portions. If two workers insert one id, the unique key refuses the
// later one, which looks again.
func (s *Store) RegisterWorker(_ context.Context, p engine.RegisterWorkerParams) (engine.Worker, error) {
	p.Now = engine.Micros(p.Now)
	for {
		w, err := write(s, "register a worker", func(t *tx) (*engine.Worker, error) { return t.registerWorker(&p) })
		switch {
		case err != nil:
			return engine.Worker{}, err
		case w != nil:
			return *w, nil
		}
	}
}

// registerWorker returns the worker as stored, or nil if another portion of the previous holder's
// leases must be freed first.
func (t *tx) registerWorker(p *engine.RegisterWorkerParams) (*engine.Worker, error) {
	n, err := t.namespaceForUse(p.Worker.Namespace)
	if err == nil {
		err = engine.MustExist(p.Worker.Namespace, n != nil, p.NamespaceMustExist)
	}
	if err == nil && n == nil {
		err = t.ensureNamespace(p.Worker.Namespace, p.Now)
	}
	if err != nil {
		return nil, err
	}
	known, err := t.oneWorker(getWorkerByInstanceSQL,
		args{"namespace": p.Worker.Namespace, "instance_id": p.Worker.InstanceID})
	if err != nil {
		return nil, err
	}
	if known != nil {
		return t.renewWorker(known, p)
	}
	taken, err := t.oneWorker(lockWorkerSQL, args{"worker_id": p.Worker.ID})
	switch {
	case err != nil:
		return nil, err
	case taken != nil && taken.Status != engine.WorkerOffline:
		return nil, engine.WorkerTaken(p.Worker.ID)
	case taken != nil:
		if buried, err := t.bury(taken, p.Now); err != nil || !buried {
			return nil, err
		}
		t.notifyWorker(p.Worker.ID)
	default:
		t.notifyRegistered(p.Worker.ID)
	}
	w := p.New()
	a := profile(&w)
	a["namespace"], a["instance_id"], a["now"] = w.Namespace, w.InstanceID, micros(p.Now)
	return &w, t.queue(insertWorkerSQL, a)
}

// renewWorker returns its id to a registered instance.
func (t *tx) renewWorker(known *engine.Worker, p *engine.RegisterWorkerParams) (*engine.Worker, error) {
	w := p.Again(known)
	t.notifyRegistered(w.ID)
	a := profile(&w)
	a["status"], a["now"] = int16(w.Status), micros(p.Now)
	return &w, t.queue(renewWorkerSQL, a)
}

// profile returns what a worker says about itself when it registers.
func profile(w *engine.Worker) args {
	return args{
		"worker_id": w.ID, "queues": jsonText(w.Queues), "types": jsonText(w.Types), "labels": mapText(w.Labels),
		"capabilities": mapText(w.Capabilities), "hostname": w.Hostname, "pid": w.PID, "version": w.Version,
		"platform":       w.Platform,
		"max_concurrent": w.MaxConcurrent, "queue_limit": w.QueueLimit, "type_limits": mapText(w.TypeLimits),
		"build_id":    w.BuildID,
		"pauses_runs": w.PausesRuns,
	}
}

// bury frees the leases of the OFFLINE worker that had the id, which is locked, unless it may hold
// more than one transaction frees.
func (t *tx) bury(old *engine.Worker, now time.Time) (buried bool, err error) {
	held, full, err := t.heldToFree(old, &engine.OfflineWorkerParams{Now: now})
	if err != nil {
		return false, err
	}
	if _, err := storelogic.LoseRuns(t, held, time.Time{}, now); err != nil || full {
		return false, err
	}
	return true, t.queue(deleteWorkerSQL, args{"worker_id": old.ID})
}

//go:embed sql/heartbeat.sql
var heartbeatSQL string

// Heartbeat writes the worker's row, together with others', and reads its leases. It uses its own
// transaction only if some of these must be freed, or if the row is locked.
func (s *Store) Heartbeat(_ context.Context, p engine.HeartbeatParams) (engine.Beat, error) {
	if err := s.enter(); err != nil {
		return engine.Beat{}, err
	}
	defer s.leave()
	p.Now = engine.Micros(p.Now)
	c := &beatCall{p: &p}
	if err := s.beats.gather(c); err != nil {
		return engine.Beat{}, err
	}
	if c.settled {
		return c.beat, nil
	}
	var unnamed []engine.Lease
	beat, err := writeEntered(s, "record a heartbeat", func(t *tx) (beat engine.Beat, err error) {
		beat, unnamed, err = t.heartbeat(&p)
		return beat, err
	})
	for rest := err; len(unnamed) > 0 && rest == nil; { // the next heartbeat can free what this does not reach
		part := storelogic.FirstToFree(&unnamed)
		_, rest = writeEntered(s, "free runs that a worker does not know it holds",
			func(t *tx) (none struct{}, err error) {
				return none, t.freeUnnamed(part, &p)
			})
	}
	return beat, err
}

// heartbeat frees the first portion of the leases to free, and returns the rest.
func (t *tx) heartbeat(p *engine.HeartbeatParams) (beat engine.Beat, unnamed []engine.Lease, err error) {
	known := false
	t.later(heartbeatSQL, args{
		"worker_id": p.WorkerID, "active": p.Active, "completed": p.Completed, "failed": p.Failed,
		"stats": storekit.StatsText(p.Stats), "now": micros(p.Now),
	}, []any{numberOf(&beat.Status)}, func() { known = true })
	leases, err := t.leasesOf([]string{p.WorkerID})
	if err == nil && !known {
		err = engine.WorkerNotFound(p.WorkerID)
	}
	if err != nil {
		return beat, nil, err
	}
	unnamed = compare(p, leases, &beat)
	return beat, unnamed, t.freeUnnamed(storelogic.FirstToFree(&unnamed), p)
}

// compare compares the leases that the worker names with its leases. It returns those to free
// because the worker does not know them: the answer to its claim was lost.
func compare(p *engine.HeartbeatParams, leases []heldLease, beat *engine.Beat) (unnamed []engine.Lease) {
	byRun := make(map[engine.ID]heldLease, len(leases))
	for _, l := range leases {
		byRun[l.Lease.RunID] = l
	}
	named := make(map[engine.ID]bool, len(p.Held))
	for _, l := range p.Held {
		held, ok := byRun[l.RunID]
		if !ok || held.Lease.Token != l.Token {
			beat.Lost = append(beat.Lost, l)
			continue
		}
		named[l.RunID] = true
		if !held.GraceUntil.IsZero() {
			beat.Cancelling = append(beat.Cancelling,
				engine.Held{Lease: l, GraceUntil: held.GraceUntil, CancelReason: held.CancelReason})
		}
		if held.Pausing {
			beat.Pausing = append(beat.Pausing, l)
		}
	}
	for _, l := range leases {
		if p.Whole && !named[l.Lease.RunID] && !l.claimedAt.Add(p.NameWithin).After(p.Now) {
			unnamed = append(unnamed, l.Lease)
		}
	}
	return unnamed
}

// freeUnnamed frees these leases of the worker unless they are over.
func (t *tx) freeUnnamed(unnamed []engine.Lease, p *engine.HeartbeatParams) error {
	leases := make(map[engine.ID]engine.Lease, len(unnamed))
	var ids []engine.ID
	for _, l := range unnamed {
		leases[l.RunID] = l
		ids = append(ids, l.RunID)
	}
	ids, err := t.still(ids, func(r *storelogic.Run) bool { return r.Current(leases[r.ID]) })
	if err != nil || len(ids) == 0 {
		return err
	}
	t.notifyWorker(p.WorkerID)
	return storelogic.FreeRuns(t, ids, p.Now)
}

//go:embed sql/drain_worker.sql
var drainWorkerSQL string

// DrainWorker makes the worker DRAINING; it keeps its leases.
func (s *Store) DrainWorker(_ context.Context, p engine.DrainWorkerParams) error {
	p.Now = engine.Micros(p.Now)
	_, err := write(s, "drain a worker", func(t *tx) (none struct{}, err error) {
		w, err := t.oneWorker(lockWorkerSQL, args{"worker_id": p.WorkerID})
		switch {
		case err != nil:
			return none, err
		case w == nil || w.Status == engine.WorkerOffline:
			return none, engine.WorkerNotFound(p.WorkerID)
		}
		if err := t.queue(drainWorkerSQL, args{"worker_id": p.WorkerID}); err != nil {
			return none, err
		}
		t.notifyWorker(p.WorkerID)
		return none, storelogic.AuditDrain(t, w, &p)
	})
	return err
}

//go:embed sql/force_offline_worker.sql
var offlineWorkerSQL string

// ForceOfflineWorker makes the worker OFFLINE and frees its leases, in portions.
func (s *Store) ForceOfflineWorker(_ context.Context, p engine.OfflineWorkerParams) (engine.Deregistered, error) {
	p.Now, p.HeardAt = engine.Micros(p.Now), engine.Micros(p.HeardAt)
	part, err := write(s, "force a worker offline", func(t *tx) (portion, error) { return t.offlineWorker(&p) })
	taken := engine.Deregistered{Off: part.off, Freed: part.freed}
	for part.full && err == nil {
		part, err = write(s, "free the runs of a worker that was forced offline", func(t *tx) (portion, error) {
			w, err := t.oneWorker(lockWorkerSQL, args{"worker_id": p.WorkerID})
			if err != nil || !storelogic.DeregisteredBy(w, &p) {
				return portion{}, err
			}
			return t.freeHeld(w, &p)
		})
		if err != nil {
			// FreeLost must free the rest
			s.notifier.notify(storekit.Events(engine.Notification{Kind: engine.NotifyAll}))
		}
		taken.Freed += part.freed
	}
	return taken, err
}

// portion says how many leases of a worker were freed, whether there may be more, and whether this
// call made the worker OFFLINE.
type portion struct {
	freed int
	full  bool
	off   bool
}

func (t *tx) offlineWorker(p *engine.OfflineWorkerParams) (portion, error) {
	w, err := t.oneWorker(lockWorkerSQL, args{"worker_id": p.WorkerID})
	switch {
	case err != nil:
		return portion{}, err
	case w == nil:
		return portion{}, engine.WorkerNotFound(p.WorkerID)
	case w.Status == engine.WorkerOffline, p.Reason == engine.OfflineLost && w.LastHeartbeatAt.After(p.HeardAt):
		return portion{}, nil
	}
	if err := t.queue(offlineWorkerSQL, args{
		"worker_id": p.WorkerID, "reason": int16(p.Reason), "now": micros(p.Now),
		"suspect_us": engine.SuspectFor.Microseconds()}); err != nil {
		return portion{}, err
	}
	if err := storelogic.AuditOffline(t, w, p); err != nil {
		return portion{}, err
	}
	t.notifyWorker(p.WorkerID)
	off := p.Off(w)
	part, err := t.freeHeld(&off, p)
	part.off = true
	return part, err
}

// freeHeld frees the first portion of the leases of a worker that is locked.
func (t *tx) freeHeld(w *engine.Worker, p *engine.OfflineWorkerParams) (part portion, err error) {
	ids, full, err := t.heldToFree(w, p)
	if err != nil {
		return portion{}, err
	}
	part.full = full
	part.freed, err = storelogic.FreeHeld(t, w, ids, p)
	return part, err
}
