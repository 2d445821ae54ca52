package session

import (
	"context"
	"log/slog"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
	"github.com/kagzi/kagzi/engine/server/internal/limit"
	"github.com/kagzi/kagzi/engine/server/internal/metrics"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// newTestService returns a Service over a store, which logs nothing and asks for no key.
func newTestService(store engine.Store) *Service {
	log := slog.New(slog.DiscardHandler)
	errors := &wire.Errors{Log: log, Now: store.Now}
	return New(Config{
		Store: store, Log: log, Errors: errors, Recorder: metrics.NewRecorder(&metrics.Events{}, log, time.Now),
		Clock: time.Now,
		Starts: &wire.StartReader{Now: store.Now,
			Trace: func(_ context.Context, r *kagziv1.StartWorkflowRequest) string { return r.Traceparent }},
		Guard: auth.New(store, log, errors, false, false), InFlight: &limit.InFlight{}, Stopping: make(chan struct{}),
		HeartbeatInterval: 10 * time.Second, WorkerLease: 30 * time.Second, PollTimeout: time.Minute,
	})
}

// writing is a store that takes results of steps and heartbeats.
type writing struct{ servertest.StubStore }

func (writing) CompleteStep(_ context.Context, p engine.CompleteStepParams) (engine.Step, error) {
	return engine.Step{ID: engine.NewID(p.Now), Name: p.Step.Name}, nil
}

func (writing) Heartbeat(context.Context, engine.HeartbeatParams) (engine.Beat, error) {
	return engine.Beat{Status: engine.WorkerOnline}, nil
}
