package watch

import (
	"context"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/async"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
)

const (
	// readShare is the interval of readings as a multiple of the time that a reading takes, so that
	// watching uses a small share of the database.
	readShare = 10
	// readLimit limits the time of one reading. If it fails, watchers are told to read the lists
	// again.
	readLimit = 10 * time.Second
)

// broadcaster reads the changes in a namespace, once for all its watchers. It ends with its last
// watcher.
type broadcaster struct {
	namespace string
	changed   chan struct{} // capacity one: changes is not empty
	joined    chan struct{} // capacity one: a new watcher may have a shorter interval
	end       context.CancelFunc
	done      chan struct{}

	// Under hub.mu.
	changes  changes
	watchers map[*watcher]struct{}
}

// changes holds what was notified since the last reading.
type changes struct {
	changedLists
	runs map[engine.ID]struct{} // at most maxNamed
	many bool                   // there were more; none is named
}

func (r *changes) addRun(id engine.ID) {
	if r.many {
		return
	}
	if r.runs == nil {
		r.runs = map[engine.ID]struct{}{}
	}
	r.runs[id] = struct{}{}
	if len(r.runs) > maxNamed {
		r.runs, r.many, r.workflows = nil, true, true
	}
}

// run reads changes until ctx ends: at once if there were none for a while, otherwise at the
// shortest interval of the watchers.
func (h *hub) run(ctx context.Context, f *broadcaster) {
	for {
		select {
		case <-f.changed:
		case <-ctx.Done():
			return
		}
		began := time.Now()
		h.mu.Lock()
		changed := f.changes.take()
		h.mu.Unlock()
		b := h.read(ctx, f.namespace, changed)
		took := time.Since(began)
		h.broadcast(f, &b)
		if !h.rest(ctx, f, began, took) {
			return
		}
	}
}

func (r *changes) take() changes {
	taken := *r
	*r = changes{}
	return taken
}

// read returns the batch for the watchers: the changed runs of the namespace in their current
// state.
func (h *hub) read(ctx context.Context, namespace string, changed changes) batch {
	b := batch{changedLists: changed.changedLists}
	if len(changed.runs) == 0 {
		return b
	}
	runs, err := h.getRuns(ctx, namespace, slices.Collect(maps.Keys(changed.runs)))
	if err != nil {
		if ctx.Err() == nil {
			h.log.Warn("changed runs could not be read; their watchers are told to read the list again",
				"namespace", namespace, "error", err)
		}
		b.workflows = true
		return b
	}
	for i := range runs {
		run := wire.ListedRunTo(&runs[i])
		b.add(runs[i].ID, changedRun{run, proto.Size(run)})
	}
	return b
}

func (h *hub) getRuns(ctx context.Context, namespace string, ids []engine.ID) (runs []engine.Run, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = async.Recovered(v)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	return h.store.GetRuns(ctx, namespace, ids)
}

func (h *hub) broadcast(f *broadcaster, t *batch) {
	if t.empty() {
		return
	}
	h.mu.Lock()
	watchers := slices.Collect(maps.Keys(f.watchers))
	h.mu.Unlock()
	for _, w := range watchers {
		w.add(t)
	}
}

// rest waits until it is time to read again. It returns false if ctx has ended.
func (h *hub) rest(ctx context.Context, f *broadcaster, began time.Time, took time.Duration) bool {
	for {
		wait := max(h.intervalOf(f), readShare*took) - time.Since(began)
		if wait <= 0 {
			return ctx.Err() == nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-f.joined:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return false
		}
	}
}

// intervalOf returns the shortest interval of a broadcaster's watchers.
func (h *hub) intervalOf(f *broadcaster) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	least := maxWatchInterval
	for w := range f.watchers {
		least = min(least, w.interval)
	}
	return least
}
