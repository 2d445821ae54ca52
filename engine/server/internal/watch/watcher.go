package watch

import (
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/async"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	// maxNamed limits how many runs an event names. If there are more, it names none and the
	// watcher has to read the list again.
	maxNamed = 200
	// maxNamedBytes limits their size in the same way, so that an event fits into a message.
	maxNamedBytes = engine.MaxMessage / 2
)

// watcher is one call that watches a namespace. Changes that it has not taken yet are merged, so
// that a slow one uses no more memory than others.
type watcher struct {
	interval time.Duration
	wake     chan struct{} // capacity one: there is something to take

	mu      sync.Mutex
	pending batch
}

func (w *watcher) add(t *batch) {
	w.mu.Lock()
	w.pending.merge(t)
	w.mu.Unlock()
	async.Notify(w.wake)
}

func (w *watcher) take() batch {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.pending
	w.pending = batch{}
	return taken
}

// changedLists says which lists have changed.
type changedLists struct{ workflows, workers, schedules, namespaces bool }

func (n *changedLists) merge(other changedLists) {
	n.workflows = n.workflows || other.workflows
	n.workers = n.workers || other.workers
	n.schedules = n.schedules || other.schedules
	n.namespaces = n.namespaces || other.namespaces
}

// batch holds changes: which lists have changed, and the changed runs in their current state. The
// messages are shared by all watchers and immutable.
type batch struct {
	changedLists
	runs map[engine.ID]changedRun
	size int  // of their messages
	many bool // there were more than an event holds; none is named
}

// changedRun is a run in its current state, with the size of its message.
type changedRun struct {
	run  *kagziv1.Workflow
	size int
}

func (t *batch) empty() bool { return t.changedLists == changedLists{} && len(t.runs) == 0 }

// add adds a run, or replaces its older state.
func (t *batch) add(id engine.ID, run changedRun) {
	if t.many {
		return
	}
	if t.runs == nil {
		t.runs = map[engine.ID]changedRun{}
	}
	t.size += run.size - t.runs[id].size
	t.runs[id] = run
	if len(t.runs) > maxNamed || t.size > maxNamedBytes {
		t.overflow()
	}
}

// overflow removes all runs; watchers have to read the list again.
func (t *batch) overflow() {
	t.runs, t.size, t.many, t.workflows = nil, 0, true, true
}

// merge adds newer changes.
func (t *batch) merge(newer *batch) {
	t.changedLists.merge(newer.changedLists)
	if newer.many {
		t.overflow()
	}
	for id, run := range newer.runs {
		t.add(id, run)
	}
}

// event returns the batch as a message.
func (t *batch) event() *kagziv1.WatchEvent {
	e := &kagziv1.WatchEvent{
		WorkflowsChanged: t.workflows, WorkersChanged: t.workers, SchedulesChanged: t.schedules,
		NamespacesChanged: t.namespaces,
	}
	for _, run := range t.runs {
		e.Workflows = append(e.Workflows, run.run)
	}
	return e
}
