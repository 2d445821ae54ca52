package server

import (
	"sync"

	"github.com/kagzi/kagzi/engine"
)

// maxFresh bounds how many runs are remembered as fresh; the oldest make room.
const maxFresh = 8192

// fresh is the runs that this server started lately and that nobody has said to have ended: who waits for one of them need not look at it
// first. Like every wait it counts on being told of the end, and looks when its time is over.
type fresh struct {
	mu         sync.Mutex
	namespaces map[engine.ID]string
	order      [maxFresh]engine.ID
	next       int
}

// add remembers runs that are about to be started, before their end can be heard of.
func (f *fresh) add(starts []engine.StartRun) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.namespaces == nil {
		f.namespaces = make(map[engine.ID]string, maxFresh)
	}
	for i := range starts {
		delete(f.namespaces, f.order[f.next])
		f.order[f.next] = starts[i].ID
		f.next = (f.next + 1) % maxFresh
		f.namespaces[starts[i].ID] = starts[i].Namespace
	}
}

// has says that the run is known to be there and was not heard to have ended.
func (f *fresh) has(namespace string, id engine.ID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	in, known := f.namespaces[id]
	return known && in == namespace
}

// drop forgets a run.
func (f *fresh) drop(id engine.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.namespaces, id)
}

// dropAll forgets all, because something may have been missed.
func (f *fresh) dropAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.namespaces)
}
