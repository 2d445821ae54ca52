package server

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

// watcher is one who watches a namespace. What it has not taken yet is merged, so that one who is slow costs no more than others.
type watcher struct {
	interval time.Duration
	bell     chan struct{} // capacity one: there is something to take

	mu      sync.Mutex
	pending tidings
}

func (w *watcher) tell(t *tidings) {
	w.mu.Lock()
	w.pending.merge(t)
	w.mu.Unlock()
	async.Notify(w.bell)
}

func (w *watcher) take() tidings {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.pending
	w.pending = tidings{}
	return taken
}

// news is which lists have changed.
type news struct{ workflows, workers, schedules, namespaces bool }

func (n *news) merge(other news) {
	n.workflows = n.workflows || other.workflows
	n.workers = n.workers || other.workers
	n.schedules = n.schedules || other.schedules
	n.namespaces = n.namespaces || other.namespaces
}

// tidings is what a watcher is told: which lists have changed, and the runs that have, as they stand. The messages are shared by all
// watchers and never changed.
type tidings struct {
	news
	runs map[engine.ID]named
	size int  // of their messages
	many bool // there were more than an event holds, and none is named
}

// named is a run as it stands, with the size of its message.
type named struct {
	run  *kagziv1.Workflow
	size int
}

func (t *tidings) empty() bool { return t.news == news{} && len(t.runs) == 0 }

// add names a run, in the place of what was said of it before.
func (t *tidings) add(id engine.ID, run named) {
	if t.many {
		return
	}
	if t.runs == nil {
		t.runs = map[engine.ID]named{}
	}
	t.size += run.size - t.runs[id].size
	t.runs[id] = run
	if len(t.runs) > maxNamed || t.size > maxNamedBytes {
		t.crowd()
	}
}

// crowd names no run any more and tells to read lists instead.
func (t *tidings) crowd() {
	t.runs, t.size, t.many, t.workflows = nil, 0, true, true
}

// merge adds what is newer.
func (t *tidings) merge(newer *tidings) {
	t.news.merge(newer.news)
	if newer.many {
		t.crowd()
	}
	for id, run := range newer.runs {
		t.add(id, run)
	}
}

// event is what is told as a message.
func (t *tidings) event() *kagziv1.WatchEvent {
	e := &kagziv1.WatchEvent{
		WorkflowsChanged: t.workflows, WorkersChanged: t.workers, SchedulesChanged: t.schedules, NamespacesChanged: t.namespaces,
	}
	for _, run := range t.runs {
		e.Workflows = append(e.Workflows, run.run)
	}
	return e
}
