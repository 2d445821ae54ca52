package server

import (
	"sync"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/async"
)

// runBells are the bells of those who watch a run: whatever happens to it rings them.
type runBells struct {
	mu   sync.Mutex
	runs map[engine.ID]map[chan struct{}]struct{}
}

// watch returns a bell, of capacity one, for a run; leave it when done. Take it before looking at the run, so that a change
// in between is not missed.
func (b *runBells) watch(id engine.ID) (bell chan struct{}, leave func()) {
	bell = make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.runs == nil {
		b.runs = map[engine.ID]map[chan struct{}]struct{}{}
	}
	if b.runs[id] == nil {
		b.runs[id] = map[chan struct{}]struct{}{}
	}
	b.runs[id][bell] = struct{}{}
	return bell, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.runs[id], bell)
		if len(b.runs[id]) == 0 {
			delete(b.runs, id)
		}
	}
}

func (b *runBells) ring(id engine.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for bell := range b.runs[id] {
		async.Notify(bell)
	}
}

func (b *runBells) ringAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, bells := range b.runs {
		for bell := range bells {
			async.Notify(bell)
		}
	}
}
