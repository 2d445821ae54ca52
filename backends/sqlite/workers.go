package sqlite

import (
	"context"
	_ "embed"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storekit"
	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/get_worker_by_instance.sql
var getWorkerByInstanceSQL string

//go:embed sql/insert_worker.sql
var insertWorkerSQL string

//go:embed sql/renew_worker.sql
var renewWorkerSQL string

//go:embed sql/delete_worker.sql
var deleteWorkerSQL string

// RegisterWorker looks for the instance first, then for the id. If an OFFLINE worker had the id,
// its leases are freed first, in portions.
func (s *Store) RegisterWorker(ctx context.Context, p engine.RegisterWorkerParams) (engine.Worker, error) {
	p.Now = engine.Micros(p.Now)
	for {
		w, err := write(ctx, s, "RegisterWorker", 0, func(t *tx) (*engine.Worker, error) {
			return t.registerWorker(&p)
		})
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
	_, exists := t.queues.namespaces[p.Worker.Namespace]
	if err := engine.MustExist(p.Worker.Namespace, exists, p.NamespaceMustExist); err != nil {
		return nil, err
	}
	if err := t.useNamespace(p.Worker.Namespace, p.Now); err != nil {
		return nil, err
	}
	known, err := t.oneWorker(&getWorkerByInstanceSQL, text("namespace", p.Worker.Namespace),
		text("instance_id", p.Worker.InstanceID))
	if err != nil {
		return nil, err
	}
	if known != nil {
		t.notifyRegistered(known.ID)
		return t.renewWorker(known, p)
	}
	taken, err := t.Worker(p.Worker.ID)
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
	_, err = t.exec(&insertWorkerSQL, append(
		profile(&w), text("namespace", w.Namespace), text("instance_id", w.InstanceID), instant("now", p.Now))...)
	return &w, err
}

// renewWorker returns its id to a registered instance.
func (t *tx) renewWorker(known *engine.Worker, p *engine.RegisterWorkerParams) (*engine.Worker, error) {
	w := p.Again(known)
	_, err := t.exec(&renewWorkerSQL, append(profile(&w), num("status", w.Status), instant("now", p.Now))...)
	return &w, err
}

// profile returns what a worker says about itself when it registers.
func profile(w *engine.Worker) []arg {
	return []arg{
		text("worker_id", w.ID), text("queues", encode(w.Queues)), text("types", encode(w.Types)),
		text("labels", encodeMap(w.Labels)),
		text("capabilities", encodeMap(w.Capabilities)), text("hostname", w.Hostname), num("pid", w.PID),
		text("version", w.Version),
		text("platform", w.Platform), num("max_concurrent", w.MaxConcurrent), num("queue_limit", w.QueueLimit),
		text("type_limits", encodeMap(w.TypeLimits)), flag("pauses_runs", w.PausesRuns), text("build_id", w.BuildID),
	}
}

// bury frees the leases of the OFFLINE worker that had the id, unless it may hold more than one
// transaction frees.
func (t *tx) bury(old *engine.Worker, now time.Time) (buried bool, err error) {
	runs, err := t.heldToFree(old, &engine.OfflineWorkerParams{Now: now})
	if err != nil {
		return false, err
	}
	if _, err := storelogic.LoseRuns(t, runs, time.Time{}, now); err != nil || len(runs) == storelogic.FreedAtOnce {
		return false, err
	}
	_, err = t.exec(&deleteWorkerSQL, text("worker_id", old.ID))
	return true, err
}

func (s session) oneWorker(statement *string, args ...arg) (*engine.Worker, error) {
	var w engine.Worker
	found, err := s.found(statement, func(r *row) (err error) {
		w, err = readWorker(r)
		return err
	}, args...)
	if err != nil || !found {
		return nil, err
	}
	return &w, nil
}

//go:embed sql/heartbeat.sql
var heartbeatSQL string

// Heartbeat writes the worker's row. Of leases it touches only those to be freed, in portions; the
// next heartbeat can free what it does not reach.
func (s *Store) Heartbeat(ctx context.Context, p engine.HeartbeatParams) (engine.Beat, error) {
	p.Now = engine.Micros(p.Now)
	stats := storekit.StatsText(p.Stats)
	var unnamed []engine.Lease
	call := &call{verb: "Heartbeat", mayWait: p.MaxWait}
	beat, err := writeAs(ctx, s, call, func(t *tx) (beat engine.Beat, err error) {
		known, err := t.returning(&heartbeatSQL, func(r *row) error {
			beat.Status = engine.WorkerStatus(r.num())
			return nil
		}, text("worker_id", p.WorkerID), num("active", p.Active), num("completed", p.Completed),
			num("failed", p.Failed),
			text("stats", stats), instant("now", p.Now))
		if err == nil && !known {
			err = engine.WorkerNotFound(p.WorkerID)
		}
		if err != nil || len(p.Held) == 0 && !p.Whole {
			return beat, err
		}
		if unnamed, err = t.compare(&p, &beat); err != nil || !p.Whole {
			unnamed = nil
			return beat, err
		}
		return beat, t.freeUnnamed(storelogic.FirstToFree(&unnamed), &p)
	})
	for rest := err; len(unnamed) > 0 && rest == nil; {
		part := storelogic.FirstToFree(&unnamed)
		_, rest = write(ctx, s, "Heartbeat", 0, func(t *tx) (none struct{}, err error) {
			return none, t.freeUnnamed(part, &p)
		})
	}
	return beat, err
}

// freeUnnamed frees these leases of the worker unless they are over.
func (t *tx) freeUnnamed(unnamed []engine.Lease, p *engine.HeartbeatParams) error {
	var ids []engine.ID
	for _, l := range unnamed {
		run, err := t.Run("", l.RunID)
		if err != nil {
			return err
		}
		if run != nil && run.Current(l) {
			ids = append(ids, l.RunID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	t.notifyWorker(p.WorkerID)
	return storelogic.FreeRuns(t, ids, p.Now)
}

// compare compares the leases that the worker names with its leases. It returns those that the
// worker does not know, because the answer to its claim was lost.
func (t *tx) compare(p *engine.HeartbeatParams, beat *engine.Beat) (unnamed []engine.Lease, err error) {
	type lease struct {
		engine.Held
		named bool
	}
	leases := make(map[engine.Token]*lease, len(p.Held))
	var old []*lease // old enough that the worker would name them
	err = t.query(&heldBySQL, func(r *row) error {
		held, claimedAt := readHeld(r)
		l := &lease{Held: held}
		leases[held.Lease.Token] = l
		if !claimedAt.Add(p.NameWithin).After(p.Now) {
			old = append(old, l)
		}
		return nil
	}, text("worker_id", p.WorkerID))
	for _, named := range p.Held {
		l := leases[named.Token]
		if l == nil || l.Lease.RunID != named.RunID {
			beat.Lost = append(beat.Lost, named)
			continue
		}
		l.named = true
		if !l.GraceUntil.IsZero() {
			beat.Cancelling = append(beat.Cancelling,
				engine.Held{Lease: named, GraceUntil: l.GraceUntil, CancelReason: l.CancelReason})
		}
		if l.Pausing {
			beat.Pausing = append(beat.Pausing, named)
		}
	}
	for _, l := range old {
		if !l.named {
			unnamed = append(unnamed, l.Lease)
		}
	}
	return unnamed, err
}

//go:embed sql/drain_worker.sql
var drainWorkerSQL string

// DrainWorker makes the worker DRAINING; it keeps its leases.
func (s *Store) DrainWorker(ctx context.Context, p engine.DrainWorkerParams) error {
	p.Now = engine.Micros(p.Now)
	_, err := write(ctx, s, "DrainWorker", 0, func(t *tx) (none struct{}, err error) {
		w, err := t.Worker(p.WorkerID)
		switch {
		case err != nil:
			return none, err
		case w == nil || w.Status == engine.WorkerOffline:
			return none, engine.WorkerNotFound(p.WorkerID)
		}
		if _, err := t.exec(&drainWorkerSQL, text("worker_id", p.WorkerID)); err != nil {
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
func (s *Store) ForceOfflineWorker(ctx context.Context, p engine.OfflineWorkerParams) (engine.Deregistered, error) {
	p.Now, p.HeardAt = engine.Micros(p.Now), engine.Micros(p.HeardAt)
	taken, err := write(ctx, s, "ForceOfflineWorker", 0, func(t *tx) (engine.Deregistered, error) {
		return t.offlineWorker(&p)
	})
	for n := taken.Freed; n == storelogic.FreedAtOnce && err == nil; taken.Freed += n {
		n, err = write(ctx, s, "ForceOfflineWorker", 0, func(t *tx) (int, error) {
			w, err := t.Worker(p.WorkerID)
			if err != nil || !storelogic.DeregisteredBy(w, &p) {
				return 0, err
			}
			return t.freeHeld(w, &p)
		})
		if err != nil {
			// FreeLost must free the rest
			s.listeners.Notify(storekit.Events(engine.Notification{Kind: engine.NotifyAll}))
		}
	}
	return taken, err
}

func (t *tx) offlineWorker(p *engine.OfflineWorkerParams) (taken engine.Deregistered, err error) {
	w, err := t.Worker(p.WorkerID)
	switch {
	case err != nil:
		return taken, err
	case w == nil:
		return taken, engine.WorkerNotFound(p.WorkerID)
	case w.Status == engine.WorkerOffline, p.Reason == engine.OfflineLost && w.LastHeartbeatAt.After(p.HeardAt):
		return taken, nil
	}
	if _, err := t.exec(&offlineWorkerSQL, text("worker_id", p.WorkerID), num("reason", p.Reason),
		instant("now", p.Now), length("suspect_us", engine.SuspectFor)); err != nil {
		return taken, err
	}
	if err := storelogic.AuditOffline(t, w, p); err != nil {
		return taken, err
	}
	t.notifyWorker(p.WorkerID)
	off := p.Off(w)
	taken.Freed, err = t.freeHeld(&off, p)
	taken.Off = true
	return taken, err
}

// freeHeld frees the first portion of the worker's leases.
func (t *tx) freeHeld(w *engine.Worker, p *engine.OfflineWorkerParams) (int, error) {
	ids, err := t.heldToFree(w, p)
	if err != nil {
		return 0, err
	}
	return storelogic.FreeHeld(t, w, ids, p)
}
