package watch

import (
	"sync"

	"github.com/kagzi/kagzi/engine"
)

// maxRecent limits how many runs are kept; the oldest are dropped.
const maxRecent = 8192

// recentStarts holds runs that this server started lately and whose end was not notified yet. A
// wait for one of them does not read it first. Like every wait, it relies on the notification of
// the end and reads the run when it times out.
type recentStarts struct {
	mu         sync.Mutex
	namespaces map[engine.ID]string
	order      [maxRecent]engine.ID
	next       int
}

// add adds runs that are about to be started, before their end can be notified.
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

// has says whether the run is known to exist and its end was not notified.
func (f *recentStarts) has(namespace string, id engine.ID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	in, known := f.namespaces[id]
	return known && in == namespace
}

// drop removes a run.
func (f *recentStarts) drop(id engine.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.namespaces, id)
}

// dropAll removes all runs, because notifications may have been lost.
func (f *recentStarts) dropAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.namespaces)
}
