package session

import (
	"sync"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/async"
)

// sessions holds the sessions of the workers that are connected to this server.
type sessions struct {
	mu      sync.Mutex
	workers map[string]*session
}

// add makes w the session of its worker; an older one ends.
func (s *sessions) add(w *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.workers == nil {
		s.workers = map[string]*session{}
	}
	if older := s.workers[w.worker.ID]; older != nil {
		older.end(&engine.Error{Kind: engine.KindUnavailable, Subject: "worker", SubjectID: w.worker.ID,
			Message: "replaced by a newer session of this worker"})
	}
	s.workers[w.worker.ID] = w
}

func (s *sessions) remove(w *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.workers[w.worker.ID] == w {
		delete(s.workers, w.worker.ID)
	}
}

func (s *sessions) notify(workerID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.workers[workerID]; w != nil {
		async.Notify(w.wake)
	}
}

// tellWait tells the worker that what a step of a run waits for has happened, if it is connected
// here and holds the run.
func (s *sessions) tellWait(workerID string, run engine.ID, step string) {
	s.mu.Lock()
	w := s.workers[workerID]
	s.mu.Unlock()
	if w != nil {
		w.tellWait(run, step)
	}
}

func (s *sessions) notifyAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.workers {
		async.Notify(w.wake)
	}
}

// freshen updates worker.Active from the worker's session, if it is connected here. Its own count
// is as old as its last heartbeat.
func (s *sessions) freshen(worker *engine.Worker) {
	s.mu.Lock()
	w := s.workers[worker.ID]
	s.mu.Unlock()
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if holds := len(w.held); w.named || holds > worker.Active {
		// before the first heartbeat, the worker may hold runs from an earlier session
		worker.Active = holds
	}
}

func (s *sessions) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.workers)
}
