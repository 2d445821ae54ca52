package watch

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/async"
)

// maxKnown limits hub.known; above it the map is emptied.
const maxKnown = 10_000

// hub sends the changes in namespaces to their watchers. Without watchers, a notification costs one
// atomic load. Without notifications, nothing is read.
type hub struct {
	store interface {
		GetRuns(ctx context.Context, namespace string, ids []engine.ID) ([]engine.Run, error)
	}
	log     *slog.Logger
	watched atomic.Int32 // number of broadcasters

	mu           sync.Mutex
	broadcasters map[string]*broadcaster // by namespace
	known        map[string]struct{}     // namespaces that notifications have named; another one may be new
}

// watch adds a watcher of a namespace, which gets all changes from now on; call leave when done.
func (h *hub) watch(namespace string, interval time.Duration) (w *watcher, leave func()) {
	w = &watcher{interval: interval, wake: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.broadcasters[namespace]
	if f == nil {
		f = h.open(namespace)
	}
	f.watchers[w] = struct{}{}
	async.Notify(f.joined)
	return w, func() { h.leave(f, w) }
}

// open starts a broadcaster. h.mu is held.
func (h *hub) open(namespace string) *broadcaster {
	ctx, end := context.WithCancel(context.Background())
	f := &broadcaster{
		namespace: namespace, changed: make(chan struct{}, 1), joined: make(chan struct{}, 1), end: end,
		done:     make(chan struct{}),
		watchers: map[*watcher]struct{}{},
	}
	if h.broadcasters == nil {
		h.broadcasters = map[string]*broadcaster{}
	}
	h.broadcasters[namespace] = f
	h.watched.Store(int32(len(h.broadcasters)))
	go func() {
		defer close(f.done)
		h.run(ctx, f)
	}()
	return f
}

// leave ends the broadcaster with its last watcher, and waits for its end.
func (h *hub) leave(f *broadcaster, w *watcher) {
	h.mu.Lock()
	delete(f.watchers, w)
	last := len(f.watchers) == 0
	if last {
		delete(h.broadcasters, f.namespace)
		h.watched.Store(int32(len(h.broadcasters)))
	}
	h.mu.Unlock()
	if last {
		f.end()
		<-f.done
	}
}

// notify records a notification of the store. It does not block.
func (h *hub) notify(r engine.Notification) {
	if h.watched.Load() == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch r.Kind {
	case engine.NotifyRun, engine.NotifyEnd:
		h.each(func(n *changes) { n.addRun(r.ID) })
	case engine.NotifyQueue:
		h.notice(r.Namespace)
		h.one(r.Namespace, func(n *changes) { n.workflows = true })
	case engine.NotifySchedule:
		h.notice(r.Namespace)
		h.one(r.Namespace, func(n *changes) { n.schedules = true })
	case engine.NotifyNamespace:
		h.each(func(n *changes) { n.namespaces = true })
	case engine.NotifyWorker:
		h.each(func(n *changes) { n.workers = true })
	case engine.NotifyAll:
		h.each(func(n *changes) {
			n.changedLists = changedLists{workflows: true, workers: true, schedules: true, namespaces: true}
		})
	}
}

// notice records that a namespace exists. The first time, the list of namespaces may have changed.
func (h *hub) notice(namespace string) {
	if _, known := h.known[namespace]; known {
		return
	}
	if h.known == nil || len(h.known) >= maxKnown {
		h.known = map[string]struct{}{}
	}
	h.known[namespace] = struct{}{}
	h.each(func(n *changes) { n.namespaces = true })
}

func (h *hub) each(note func(*changes)) {
	for _, f := range h.broadcasters {
		note(&f.changes)
		async.Notify(f.changed)
	}
}

func (h *hub) one(namespace string, note func(*changes)) {
	if f := h.broadcasters[namespace]; f != nil {
		note(&f.changes)
		async.Notify(f.changed)
	}
}

func (h *hub) count() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.broadcasters {
		n += len(f.watchers)
	}
	return n
}
