// Package watch implements the calls that watch runs and namespaces or wait for the end of runs. It
// uses the notifications of the store.
//
//   - namespace.go, hub.go, broadcaster.go, watcher.go: the changes in a namespace, read once for
//     all its watchers.
//   - run.go, run_subscribers.go: every change of one run.
//   - wait.go, await.go, waiters.go: the ends of runs, for one call or for a stream of waits.
//     recent.go saves the first read.
package watch

import (
	"context"
	"log/slog"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
)

// Store is the part of a store that a Service reads.
type Store interface {
	Now() time.Time
	GetRun(ctx context.Context, namespace string, id engine.ID) (engine.Run, error)
	LatestOfChain(ctx context.Context, namespace string, first engine.ID) (engine.ID, error)
	GetRuns(ctx context.Context, namespace string, ids []engine.ID) ([]engine.Run, error)
	ListSteps(ctx context.Context, namespace string, run engine.ID, f engine.StepFilter, page engine.Page) (
		[]engine.Step, engine.PageInfo, error)
}

// Service implements the calls that watch and wait. Nothing in its memory must survive a restart.
type Service struct {
	store    Store
	errors   *wire.Errors
	stopping <-chan struct{}

	subscribers runSubscribers // to every change of a run
	waiters     waiters        // for the end of a run
	recent      recentStarts   // runs that waits need not read first
	hub         hub            // changes in namespaces
}

// New returns a Service whose calls end when stopping is closed. Pass it every notification of the
// store with Notify.
func New(store Store, log *slog.Logger, errors *wire.Errors, stopping <-chan struct{}) *Service {
	return &Service{store: store, errors: errors, stopping: stopping, hub: hub{store: store, log: log}}
}

// Notify passes a notification of the store to the calls that watch and wait. It does not block.
func (s *Service) Notify(r engine.Notification) {
	s.hub.notify(r)
	switch r.Kind {
	case engine.NotifyRun:
		s.subscribers.notify(r.ID)
	case engine.NotifyEnd:
		s.ended(r.ID, nil)
	case engine.NotifyAll:
		s.subscribers.notifyAll()
		s.recent.dropAll()
		s.waiters.notifyAll()
	}
}

// RunEnded is Notify for a run's end whose Ending is known.
func (s *Service) RunEnded(run engine.ID, e *engine.Ending) {
	s.hub.notify(engine.Notification{Kind: engine.NotifyEnd, ID: run})
	s.ended(run, e)
}

func (s *Service) ended(run engine.ID, e *engine.Ending) {
	s.recent.drop(run)
	s.waiters.notify(run, e)
}

// Starting registers runs that are about to be started, so that a wait for one of them, which
// usually follows, need not read it first.
func (s *Service) Starting(starts []engine.StartRun) { s.recent.add(starts) }

// NotStarted removes a run that was passed to Starting but was not made.
func (s *Service) NotStarted(id engine.ID) { s.recent.drop(id) }

// Counts counts open calls.
type Counts struct {
	RunWatchers       int // calls that watch a run
	RunWaiters        int // waits for the end of a run
	NamespaceWatchers int
}

// Count returns how many calls watch or wait.
func (s *Service) Count() Counts {
	return Counts{RunWatchers: s.subscribers.count(), RunWaiters: s.waiters.count(), NamespaceWatchers: s.hub.count()}
}
