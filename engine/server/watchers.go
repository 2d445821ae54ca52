package server

import (
	"sync"

	"github.com/kagzi/kagzi/engine"
)

// watchers are the calls that wait for something to happen to a run.
type watchers struct {
	mu   sync.Mutex
	runs map[engine.ID]map[chan struct{}]struct{}
}

// watch returns a bell, of capacity one, for a run; leave it when done. Take it before looking at the run, so that a change
// in between is not missed.
func (w *watchers) watch(id engine.ID) (bell chan struct{}, leave func()) {
	bell = make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs == nil {
		w.runs = map[engine.ID]map[chan struct{}]struct{}{}
	}
	if w.runs[id] == nil {
		w.runs[id] = map[chan struct{}]struct{}{}
	}
	w.runs[id][bell] = struct{}{}
	return bell, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.runs[id], bell)
		if len(w.runs[id]) == 0 {
			delete(w.runs, id)
		}
	}
}

func (w *watchers) ring(id engine.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for bell := range w.runs[id] {
		ring(bell)
	}
}

func (w *watchers) ringAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, bells := range w.runs {
		for bell := range bells {
			ring(bell)
		}
	}
}

func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default: // already rung
	}
}
