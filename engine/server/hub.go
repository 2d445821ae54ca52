package server

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/async"
)

// maxMet bounds the namespaces that are remembered; past it they are all new once more.
const maxMet = 10_000

// hub tells those who watch a namespace what changes in it. While nobody watches, a ring costs one look at a number; while nothing is
// rung, nothing is read.
type hub struct {
	store   engine.Views
	log     *slog.Logger
	watched atomic.Int32 // how many feeds there are

	mu    sync.Mutex
	feeds map[string]*feed    // by namespace
	met   map[string]struct{} // the namespaces that rings have named, so that a new one is noticed
}

// watch begins to watch a namespace; leave it when done. The watcher is told what is rung from now on.
func (h *hub) watch(namespace string, interval time.Duration) (w *watcher, leave func()) {
	w = &watcher{interval: interval, bell: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.feeds[namespace]
	if f == nil {
		f = h.open(namespace)
	}
	f.watchers[w] = struct{}{}
	async.Notify(f.joined)
	return w, func() { h.leave(f, w) }
}

// open begins a feed, under the lock.
func (h *hub) open(namespace string) *feed {
	ctx, end := context.WithCancel(context.Background())
	f := &feed{
		namespace: namespace, bell: make(chan struct{}, 1), joined: make(chan struct{}, 1), end: end, done: make(chan struct{}),
		watchers: map[*watcher]struct{}{},
	}
	if h.feeds == nil {
		h.feeds = map[string]*feed{}
	}
	h.feeds[namespace] = f
	h.watched.Store(int32(len(h.feeds)))
	go func() {
		defer close(f.done)
		h.run(ctx, f)
	}()
	return f
}

// leave ends the feed with its last watcher, and waits for it.
func (h *hub) leave(f *feed, w *watcher) {
	h.mu.Lock()
	delete(f.watchers, w)
	last := len(f.watchers) == 0
	if last {
		delete(h.feeds, f.namespace)
		h.watched.Store(int32(len(h.feeds)))
	}
	h.mu.Unlock()
	if last {
		f.end()
		<-f.done
	}
}

// ring notes a hint of the store. It does not block.
func (h *hub) ring(r engine.Ring) {
	if h.watched.Load() == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch r.Kind {
	case engine.RingRun, engine.RingEnd:
		h.each(func(n *rung) { n.run(r.ID) })
	case engine.RingQueue:
		h.meet(r.Namespace)
		h.one(r.Namespace, func(n *rung) { n.workflows = true })
	case engine.RingSchedule:
		h.meet(r.Namespace)
		h.one(r.Namespace, func(n *rung) { n.schedules = true })
	case engine.RingNamespace:
		h.each(func(n *rung) { n.namespaces = true })
	case engine.RingWorker:
		h.each(func(n *rung) { n.workers = true })
	case engine.RingAll:
		h.each(func(n *rung) { n.news = news{workflows: true, workers: true, schedules: true, namespaces: true} })
	}
}

// meet notes that a namespace is there. One that is heard of for the first time may have come into being just now.
func (h *hub) meet(namespace string) {
	if _, known := h.met[namespace]; known {
		return
	}
	if h.met == nil || len(h.met) >= maxMet {
		h.met = map[string]struct{}{}
	}
	h.met[namespace] = struct{}{}
	h.each(func(n *rung) { n.namespaces = true })
}

func (h *hub) each(note func(*rung)) {
	for _, f := range h.feeds {
		note(&f.rung)
		async.Notify(f.bell)
	}
}

func (h *hub) one(namespace string, note func(*rung)) {
	if f := h.feeds[namespace]; f != nil {
		note(&f.rung)
		async.Notify(f.bell)
	}
}
