// Package session implements WorkerService: sessions of workers, and the same operations as unary
// calls.
//
//   - service.go: Service and its dependencies. session.go: the stream of one worker; registry.go:
//     all connected sessions.
//   - receive.go, run_queue.go, outbox.go: receive operations, execute them in the order of their
//     run, and send the answers.
//   - operations.go: the table of a session's operations; calls.go: those about the session itself.
//   - steps.go, waits.go, endings.go, register.go, heartbeat.go: the operations, shared by sessions
//     and unary calls; unary.go: the unary calls.
package session

import (
	"context"
	"log/slog"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/matching"
	"github.com/kagzi/kagzi/engine/server/internal/async"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
	"github.com/kagzi/kagzi/engine/server/internal/limit"
	"github.com/kagzi/kagzi/engine/server/internal/metrics"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Store is the part of a store that workers need.
type Store interface {
	Now() time.Time
	Uncertainty() time.Duration
	RegisterWorker(context.Context, engine.RegisterWorkerParams) (engine.Worker, error)
	Heartbeat(context.Context, engine.HeartbeatParams) (engine.Beat, error)
	DrainWorker(context.Context, engine.DrainWorkerParams) error
	ForceOfflineWorker(context.Context, engine.OfflineWorkerParams) (engine.Deregistered, error)
	GetWorker(ctx context.Context, id string) (engine.Worker, error)
	HeldBy(ctx context.Context, worker string) ([]engine.Held, error)
	CurrentLease(ctx context.Context, namespace string, run engine.ID) (engine.Lease, error)
	GetRun(ctx context.Context, namespace string, id engine.ID) (engine.Run, error)
	GetRuns(ctx context.Context, namespace string, ids []engine.ID) ([]engine.Run, error)
	GetHistory(context.Context, engine.HistoryParams) (steps []engine.Step, next int64, err error)
	BeginStep(context.Context, engine.BeginStepParams) (engine.Begun, error)
	CompleteStep(context.Context, engine.CompleteStepParams) (engine.Step, error)
	FailStep(context.Context, engine.FailStepParams) (engine.Verdict, error)
	Sleep(context.Context, engine.SleepParams) (engine.Step, error)
	AwaitSignal(context.Context, engine.AwaitSignalParams) (engine.AwaitedSignal, error)
	StartChild(context.Context, engine.StartChildParams) (engine.Step, error)
	AwaitChildren(context.Context, engine.AwaitChildrenParams) ([]engine.Step, error)
	SetRunNote(context.Context, engine.SetNoteParams) error
	CompleteRun(context.Context, engine.CompleteRunParams) (engine.Completed, error)
	FailRun(context.Context, engine.FailRunParams) (engine.RunVerdict, error)
	Release(context.Context, engine.ReleaseParams) error
}

// Config configures a Service. All fields but AllowUnleased and Namespaces must be set.
type Config struct {
	Store    Store
	Matcher  *matching.Matcher
	Log      *slog.Logger
	Errors   *wire.Errors
	Starts   *wire.StartReader
	Recorder *metrics.Recorder
	Guard    *auth.Guard
	InFlight *limit.InFlight
	Stopping <-chan struct{}  // closed when long polls and sessions have to end
	Clock    func() time.Time // measures how long a worker waits until its write is durable

	HeartbeatInterval time.Duration // sent to workers
	WorkerLease       time.Duration // how long a worker that is not heard from keeps its runs
	PollTimeout       time.Duration // of a long poll that sets none
	AllowUnleased     bool          // accept writes without a lease token, from clients that know none
	// returns an error for a namespace in which no worker may register; nil: they may in all, and a
	// registration makes a new one
	Namespaces func(ctx context.Context, name string) error
}

// Service implements WorkerService: sessions of workers, and the same operations as unary calls.
type Service struct {
	kagziv1.UnimplementedWorkerServiceServer

	store    Store
	matcher  *matching.Matcher
	log      *slog.Logger
	errors   *wire.Errors
	starts   *wire.StartReader
	recorder *metrics.Recorder
	guard    *auth.Guard
	inFlight *limit.InFlight
	stopping <-chan struct{}
	options  Config

	sessions    sessions
	pool        async.Pool    // of goroutines for the operations of sessions
	registering chan struct{} // semaphore of capacity registeredAtOnce
	untold      untold
	clock       clockWatch
	slots       slots
}

// New returns a Service. Pass it every notification of the store with Notify.
func New(c Config) *Service {
	return &Service{
		store: c.Store, matcher: c.Matcher, log: c.Log, errors: c.Errors, starts: c.Starts, recorder: c.Recorder,
		guard:    c.Guard,
		inFlight: c.InFlight, stopping: c.Stopping, options: c, registering: make(chan struct{}, registeredAtOnce),
	}
}

// Close ends the idle goroutines of the pool. Operations in progress continue.
func (s *Service) Close() { s.pool.Close() }

// Notify passes a notification of the store to the sessions that it concerns. It does not block.
func (s *Service) Notify(r engine.Notification) {
	switch r.Kind {
	case engine.NotifyWorker:
		if !r.Registered { // the session knows it already
			s.sessions.notify(r.Name)
		}
	case engine.NotifyWait:
		s.sessions.tellWait(r.Name, r.ID, r.Step)
	case engine.NotifyAll:
		s.sessions.notifyAll()
	}
}

// Sessions returns how many workers are connected by a session.
func (s *Service) Sessions() int { return s.sessions.count() }

// Freshen updates worker.Active from the worker's session, if it is connected here. Its own count
// is as old as its last heartbeat.
func (s *Service) Freshen(worker *engine.Worker) { s.sessions.freshen(worker) }
