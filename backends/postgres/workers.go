package postgres

import (
	"context"
	_ "embed"
	"errors"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

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

// RegisterWorker goes by the instance first, then by the id. Two rivals for one id meet at its key, and the later one looks again.
func (s *Store) RegisterWorker(ctx context.Context, p engine.RegisterWorkerParams) (w engine.Worker, err error) {
	if err := s.enter(); err != nil {
		return engine.Worker{}, err
	}
	defer s.leave()
	p.Now = engine.Micros(p.Now)
	if err := s.ensureNamespace(p.Worker.Namespace, p.Now); err != nil {
		return engine.Worker{}, err
	}
	err = s.writeEntered("register a worker", func(ctx context.Context, t *tx) (err error) {
		w, err = t.registerWorker(ctx, &p)
		return err
	})
	if err != nil {
		return engine.Worker{}, err
	}
	return w, nil
}

func (t *tx) registerWorker(ctx context.Context, p *engine.RegisterWorkerParams) (engine.Worker, error) {
	known, err := t.oneWorker(ctx, getWorkerByInstanceSQL, args{"namespace": p.Worker.Namespace, "instance_id": p.Worker.InstanceID})
	if err != nil {
		return engine.Worker{}, err
	}
	if known != nil {
		t.ringWorker(known.ID)
		return t.renewWorker(ctx, known, p)
	}
	taken, err := t.oneWorker(ctx, lockWorkerSQL, args{"worker_id": p.Worker.ID})
	switch {
	case err != nil:
		return engine.Worker{}, err
	case taken != nil && taken.Status != engine.WorkerOffline:
		return engine.Worker{}, workerTaken(p.Worker.ID)
	case taken != nil:
		if err := t.bury(ctx, taken, p.Now); err != nil {
			return engine.Worker{}, err
		}
	}
	w := p.Worker
	w.Status, w.Reason = engine.WorkerOnline, 0
	w.Active, w.Completed, w.Failed, w.Stats = 0, 0, 0, engine.WorkerStats{}
	w.RegisteredAt, w.LastHeartbeatAt, w.DeregisteredAt = p.Now, p.Now, time.Time{}
	t.ringWorker(w.ID)
	a := profile(&w)
	a["namespace"], a["instance_id"], a["now"] = w.Namespace, w.InstanceID, micros(p.Now)
	_, err = t.exec(ctx, insertWorkerSQL, a)
	t.ringWorker(w.ID)
	return w, err
}

func workerTaken(id string) error {
	return &engine.Error{Kind: engine.KindExists, Subject: "worker", SubjectID: id, Message: "worker id \"" + id + "\" is taken by another worker"}
}

// renewWorker gives an instance its id back.
func (t *tx) renewWorker(ctx context.Context, known *engine.Worker, p *engine.RegisterWorkerParams) (engine.Worker, error) {
	w := p.Worker
	w.ID, w.Status = known.ID, engine.WorkerOnline
	if known.Status == engine.WorkerDraining {
		w.Status = engine.WorkerDraining
	}
	w.Reason, w.Active, w.Completed, w.Failed, w.Stats = 0, known.Active, known.Completed, known.Failed, known.Stats
	w.RegisteredAt, w.LastHeartbeatAt, w.DeregisteredAt = known.RegisteredAt, p.Now, time.Time{}
	a := profile(&w)
	a["status"], a["now"] = int16(w.Status), micros(p.Now)
	_, err := t.exec(ctx, renewWorkerSQL, a)
	t.ringWorker(w.ID)
	return w, err
}

// profile is what a worker says about itself when it registers.
func profile(w *engine.Worker) args {
	return args{
		"worker_id": w.ID, "queues": jsonText(w.Queues), "types": jsonText(w.Types), "labels": mapText(w.Labels),
		"capabilities": mapText(w.Capabilities), "hostname": w.Hostname, "pid": w.PID, "version": w.Version, "platform": w.Platform,
		"max_concurrent": w.MaxConcurrent, "queue_limit": w.QueueLimit, "type_limits": mapText(w.TypeLimits),
	}
}

// bury makes room for another instance under the id of one that is OFFLINE.
func (t *tx) bury(ctx context.Context, old *engine.Worker, now time.Time) error {
	runs, err := t.heldBy(ctx, old.ID)
	if err != nil {
		return err
	}
	for _, run := range runs {
		if err := t.lose(ctx, run, now); err != nil {
			return err
		}
	}
	_, err = t.exec(ctx, deleteWorkerSQL, args{"worker_id": old.ID})
	return err
}

func (t *tx) oneWorker(ctx context.Context, statement string, a args) (*engine.Worker, error) {
	var w engine.Worker
	err := t.QueryRow(ctx, statement, a).Scan(workerPlaces(&w)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &w, nil
}

//go:embed sql/list_held_by_worker.sql
var listHeldByWorkerSQL string

// heldLease is a lease of a worker, not locked.
type heldLease struct {
	run       engine.ID
	token     engine.Token
	claimedAt time.Time
}

func (t *tx) leasesOf(ctx context.Context, worker string) ([]heldLease, error) {
	rows, err := t.Query(ctx, listHeldByWorkerSQL, args{"worker_id": worker})
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (l heldLease, err error) {
		err = row.Scan(idOf(&l.run), tokenOf(&l.token), timeOf(&l.claimedAt))
		return l, err
	})
}

// heldBy locks the runs whose leases the worker has. The worker is locked, so that it gets no new ones meanwhile.
func (t *tx) heldBy(ctx context.Context, worker string) ([]*runState, error) {
	leases, err := t.leasesOf(ctx, worker)
	if err != nil {
		return nil, err
	}
	ids := make([]engine.ID, len(leases))
	for i, l := range leases {
		ids[i] = l.run
	}
	return t.stillHeld(ctx, worker, ids)
}

// stillHeld locks these runs and returns those that the worker still holds.
func (t *tx) stillHeld(ctx context.Context, worker string, ids []engine.ID) ([]*runState, error) {
	runs, err := t.runStates(ctx, ids)
	held := runs[:0]
	for _, run := range runs {
		if run.worker == worker && !run.token.IsZero() {
			held = append(held, run)
		}
	}
	return held, err
}

//go:embed sql/heartbeat.sql
var heartbeatSQL string

// Heartbeat writes the worker's row and, of leases, touches only those that are to be freed.
func (s *Store) Heartbeat(ctx context.Context, p engine.HeartbeatParams) (beat engine.Beat, err error) {
	p.Now = engine.Micros(p.Now)
	err = s.write("note a heartbeat", func(ctx context.Context, t *tx) (err error) {
		beat, err = t.heartbeat(ctx, &p)
		return err
	})
	if err != nil {
		return engine.Beat{}, err
	}
	return beat, nil
}

func (t *tx) heartbeat(ctx context.Context, p *engine.HeartbeatParams) (beat engine.Beat, err error) {
	err = t.QueryRow(ctx, heartbeatSQL, args{
		"worker_id": p.WorkerID, "active": p.Active, "completed": p.Completed, "failed": p.Failed,
		"stats": statsText(p.Stats), "now": micros(p.Now),
	}).Scan(numberOf(&beat.Status))
	if errors.Is(err, pgx.ErrNoRows) {
		return beat, engine.WorkerNotFound(p.WorkerID)
	}
	if err != nil || len(p.Held) == 0 && !p.Whole {
		return beat, err
	}
	leases, err := t.leasesOf(ctx, p.WorkerID)
	if err != nil {
		return beat, err
	}
	unnamed := make(map[engine.ID]heldLease, len(leases))
	for _, l := range leases {
		unnamed[l.run] = l
	}
	for _, l := range p.Held {
		if held, ok := unnamed[l.RunID]; ok && held.token == l.Token {
			delete(unnamed, l.RunID)
		} else {
			beat.Lost = append(beat.Lost, l)
		}
	}
	if !p.Whole {
		return beat, nil
	}
	return beat, t.freeUnnamed(ctx, leases, unnamed, p)
}

// freeUnnamed frees what the worker holds without knowing, because the answer to its claim was lost.
func (t *tx) freeUnnamed(ctx context.Context, leases []heldLease, unnamed map[engine.ID]heldLease, p *engine.HeartbeatParams) error {
	var old []engine.ID
	for _, l := range leases {
		if _, ok := unnamed[l.run]; ok && !l.claimedAt.Add(p.NameWithin).After(p.Now) {
			old = append(old, l.run)
		}
	}
	runs, err := t.stillHeld(ctx, p.WorkerID, old)
	if err != nil {
		return err
	}
	for _, run := range runs {
		if run.token != unnamed[run.id].token {
			continue // ended and claimed anew, in between
		}
		if err := t.free(ctx, run, due(p.Now), p.Now); err != nil {
			return err
		}
		t.ringWorker(p.WorkerID)
	}
	return nil
}

// statsText is the statistics as JSON, which knows no number that is none.
func statsText(stats *engine.WorkerStats) string {
	if stats == nil {
		return ""
	}
	plain := *stats
	for _, n := range []*float64{&plain.CPUPercent, &plain.AverageRunMS} {
		if math.IsNaN(*n) || math.IsInf(*n, 0) {
			*n = 0
		}
	}
	return jsonText(plain)
}

//go:embed sql/drain_worker.sql
var drainWorkerSQL string

// DrainWorker leaves the worker what it has.
func (s *Store) DrainWorker(ctx context.Context, workerID string, _ time.Time) error {
	return s.write("drain a worker", func(ctx context.Context, t *tx) error {
		known, err := t.exec(ctx, drainWorkerSQL, args{"worker_id": workerID})
		if err == nil && known == 0 {
			err = engine.WorkerNotFound(workerID)
		}
		t.ringWorker(workerID)
		return err
	})
}

//go:embed sql/offline_worker.sql
var offlineWorkerSQL string

// OfflineWorker takes the worker off and frees what it held.
func (s *Store) OfflineWorker(ctx context.Context, p engine.OfflineWorkerParams) (freed int, err error) {
	p.Now, p.HeardAt = engine.Micros(p.Now), engine.Micros(p.HeardAt)
	err = s.write("take a worker off", func(ctx context.Context, t *tx) (err error) {
		freed, err = t.offlineWorker(ctx, &p)
		return err
	})
	if err != nil {
		return 0, err
	}
	return freed, nil
}

func (t *tx) offlineWorker(ctx context.Context, p *engine.OfflineWorkerParams) (freed int, err error) {
	w, err := t.oneWorker(ctx, lockWorkerSQL, args{"worker_id": p.WorkerID})
	lost := p.Reason == engine.OfflineLost
	switch {
	case err != nil:
		return 0, err
	case w == nil:
		return 0, engine.WorkerNotFound(p.WorkerID)
	case w.Status == engine.WorkerOffline, lost && w.LastHeartbeatAt.After(p.HeardAt):
		return 0, nil
	}
	if _, err := t.exec(ctx, offlineWorkerSQL, args{"worker_id": p.WorkerID, "reason": int16(p.Reason), "now": micros(p.Now)}); err != nil {
		return 0, err
	}
	runs, err := t.heldBy(ctx, p.WorkerID)
	if err != nil {
		return 0, err
	}
	for _, run := range runs {
		switch {
		case !lost:
			err = t.free(ctx, run, due(p.Now), p.Now)
		case run.heartbeat > 0 && w.LastHeartbeatAt.Add(run.heartbeat).After(p.Now):
			continue // FreeLost comes for it
		default:
			err = t.lose(ctx, run, p.Now)
		}
		if err != nil {
			return 0, err
		}
		freed++
	}
	t.ringWorker(p.WorkerID)
	return freed, nil
}
