package watch

import (
	"sync"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/async"
)

// runSubscribers holds the channels that are notified of every change of a run.
type runSubscribers struct {
	mu   sync.Mutex
	runs map[engine.ID]map[chan struct{}]struct{}
}

// subscribe returns a channel of capacity one that is notified of changes of a run; call leave when
// done. Subscribe before reading the run, so that a change in between is not missed.
func (b *runSubscribers) subscribe(id engine.ID) (wake chan struct{}, leave func()) {
	wake = make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.runs == nil {
		b.runs = map[engine.ID]map[chan struct{}]struct{}{}
	}
	if b.runs[id] == nil {
		b.runs[id] = map[chan struct{}]struct{}{}
	}
	b.runs[id][wake] = struct{}{}
	return wake, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.runs[id], wake)
		if len(b.runs[id]) == 0 {
			delete(b.runs, id)
		}
	}
}

func (b *runSubscribers) notify(id engine.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for wake := range b.runs[id] {
		async.Notify(wake)
	}
}

func (b *runSubscribers) notifyAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, subscribers := range b.runs {
		for wake := range subscribers {
			async.Notify(wake)
		}
	}
}

func (b *runSubscribers) count() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, subscribers := range b.runs {
		n += len(subscribers)
	}
	return n
}
