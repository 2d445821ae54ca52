// Package watch tells callers what happens to runs and namespaces, from the notifications of the store.
//
//   - namespace.go, hub.go, broadcaster.go, watcher.go: what changes in a namespace, read once for all its watchers.
//   - run.go, run_subscribers.go: every change of one run.
//   - wait.go, await.go, waiters.go: the ends of runs, for one call or for a stream of waits;
//     recent.go saves them the first read.
package watch

import (
	"context"
	"log/slog"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
)

// Store is what is read of the store for those who watch and wait.
type Store interface {
	Now() time.Time
	GetRun(ctx context.Context, namespace string, id engine.ID) (engine.Run, error)
	GetRuns(ctx context.Context, namespace string, ids []engine.ID) ([]engine.Run, error)
	ListSteps(ctx context.Context, namespace string, run engine.ID, name string, page engine.Page) ([]engine.Step,
		engine.PageInfo, error)
}

// Service tells callers what happens to runs and namespaces. All that it keeps in memory may be lost.
type Service struct {
	store    Store
	errors   *wire.Errors
	stopping <-chan struct{}

	subscribers runSubscribers // of every change of a run
	waiters     waiters        // for its end
	recent      recentStarts   // runs that need no look before waiting for their end
	hub         hub            // of every change in a namespace
}

// New returns a Service whose calls end when stopping is closed. Give it every notification of the store.
func New(store Store, log *slog.Logger, errors *wire.Errors, stopping <-chan struct{}) *Service {
	return &Service{store: store, errors: errors, stopping: stopping, hub: hub{store: store, log: log}}
}

// Notify passes a notification of the store on to those who watch and wait. It does not block.
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

// RunEnded is Notify of a run's end by those who know how it ended.
func (s *Service) RunEnded(run engine.ID, e *engine.Ending) {
	s.hub.notify(engine.Notification{Kind: engine.NotifyEnd, ID: run})
	s.ended(run, e)
}

func (s *Service) ended(run engine.ID, e *engine.Ending) {
	s.recent.drop(run)
	s.waiters.notify(run, e)
}

// Starting remembers runs that are about to be started, for whoever starts a run mostly waits for
// it: that wait then reads nothing first.
func (s *Service) Starting(starts []engine.StartRun) { s.recent.add(starts) }

// NotStarted forgets a run that Starting was told of, and that is not there.
func (s *Service) NotStarted(id engine.ID) { s.recent.drop(id) }

// Counts is how many calls there are.
type Counts struct {
	RunWatchers       int // that watch a run
	RunWaiters        int // that wait for the end of a run
	NamespaceWatchers int
}

// Count returns how many calls watch and wait.
func (s *Service) Count() Counts {
	return Counts{RunWatchers: s.subscribers.count(), RunWaiters: s.waiters.count(), NamespaceWatchers: s.hub.count()}
}
