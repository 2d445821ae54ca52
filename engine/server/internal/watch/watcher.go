package watch

import (
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/async"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	// maxNamed is how many runs an event names; when there are more, it names none and tells to read lists again.
	maxNamed = 200
	// maxNamedBytes bounds what they take up in the same way, so that an event fits into a message.
	maxNamedBytes = engine.MaxMessage / 2
)

// watcher is one call that watches a namespace. What it has not taken yet is merged, so that a slow
// one costs no more than others.
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

// batch is a batch of changes: which lists have changed, and the changed runs as they are now. The
// messages are shared by all watchers and never changed.
type batch struct {
	changedLists
	runs map[engine.ID]changedRun
	size int  // of their messages
	many bool // there were more than an event holds, and none is named
}

// changedRun is a run as it stands, with the size of its message.
type changedRun struct {
	run  *kagziv1.Workflow
	size int
}

func (t *batch) empty() bool { return t.changedLists == changedLists{} && len(t.runs) == 0 }

// add names a run, in the place of what was said of it before.
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

// overflow names no run any more and tells to read lists instead.
func (t *batch) overflow() {
	t.runs, t.size, t.many, t.workflows = nil, 0, true, true
}

// merge adds what is newer.
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
