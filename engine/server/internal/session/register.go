package session

import (
	"context"
	"log/slog"
	"strings"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// register registers a worker, if the caller's key allows it.
func (s *Service) register(ctx context.Context, r *kagziv1.RegisterRequest) (engine.Worker, error) {
	worker, err := wire.WorkerOf(r)
	if err != nil {
		return engine.Worker{}, err
	}
	if err := s.guard.MayRegister(ctx, &worker, r.WorkerId != ""); err != nil {
		return engine.Worker{}, err
	}
	if s.options.Namespaces != nil {
		if err := s.options.Namespaces(ctx, worker.Namespace); err != nil {
			return engine.Worker{}, err
		}
	}
	now := s.store.Now()
	p := engine.RegisterWorkerParams{Worker: worker, Chosen: r.WorkerId != "", Now: now,
		NamespaceMustExist: s.options.Namespaces != nil}
	if !p.Chosen {
		p.Worker.ID = engine.NewID(now).String()
	}
	worker, err = s.store.RegisterWorker(ctx, p)
	if err == nil {
		s.recorder.Events.Note(slog.LevelInfo, "worker registered", slog.String("worker", worker.ID),
			slog.String("namespace", worker.Namespace),
			slog.String("queues", strings.Join(worker.Queues, " ")), slog.String("host", worker.Hostname),
			slog.String("version", worker.Version))
	}
	return worker, err
}

func (s *Service) registeredTo(w *engine.Worker) *kagziv1.RegisterResponse {
	interval := s.options.HeartbeatInterval
	return &kagziv1.RegisterResponse{
		WorkerId: w.ID, HeartbeatIntervalSecs: max(int32(interval.Seconds()), 1),
		HeartbeatIntervalMs: interval.Milliseconds(), LeaseMs: s.options.WorkerLease.Milliseconds(),
		KeepsOrder: true, ResumesRuns: true, TakesBatches: true,
	}
}
