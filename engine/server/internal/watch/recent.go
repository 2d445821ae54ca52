package watch

import (
	"sync"

	"github.com/kagzi/kagzi/engine"
)

// maxRecent bounds how many runs are remembered; the oldest make room.
const maxRecent = 8192

// recentStarts are runs that this server started lately and whose end was not notified yet: a wait
// for one of them need not read it first. Like every wait it counts on being told of the end, and
// looks when its time is over.
type recentStarts struct {
	mu         sync.Mutex
	namespaces map[engine.ID]string
	order      [maxRecent]engine.ID
	next       int
}

// add remembers runs that are about to be started, before their end can be heard of.
func (f *recentStarts) add(starts []engine.StartRun) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.namespaces == nil {
		f.namespaces = make(map[engine.ID]string, maxRecent)
	}
	for i := range starts {
		delete(f.namespaces, f.order[f.next])
		f.order[f.next] = starts[i].ID
		f.next = (f.next + 1) % maxRecent
		f.namespaces[starts[i].ID] = starts[i].Namespace
	}
}

// has says that the run is known to be there and was not heard to have ended.
func (f *recentStarts) has(namespace string, id engine.ID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	in, known := f.namespaces[id]
	return known && in == namespace
}

// drop forgets a run.
func (f *recentStarts) drop(id engine.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.namespaces, id)
}

// dropAll forgets all, because something may have been missed.
func (f *recentStarts) dropAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.namespaces)
}
