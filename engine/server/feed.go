package server

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
	// readShare is how many times as long as reading the runs took it is until they are read again, so that watching costs a
	// small part of the time.
	readShare = 10
	// readLimit bounds one reading; what it did not bring, watchers are told to read themselves.
	readLimit = 10 * time.Second
)

// feed is the one reader of a namespace for all who watch it. It lives as long as somebody does.
type feed struct {
	namespace string
	bell      chan struct{} // capacity one: something was rung
	joined    chan struct{} // capacity one: somebody watches who may want to be told sooner
	end       context.CancelFunc
	done      chan struct{}

	// Under the lock of the hub.
	rung     rung
	watchers map[*watcher]struct{}
}

// rung is what was rung since the runs were last read.
type rung struct {
	news
	runs map[engine.ID]struct{} // at most maxNamed
	many bool                   // there were more, and none is kept
}

func (r *rung) run(id engine.ID) {
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

// run reads what was rung, once for all watchers, until ctx ends: at once after a silence, otherwise as often as the most impatient of
// them wants it.
func (h *hub) run(ctx context.Context, f *feed) {
	for {
		select {
		case <-f.bell:
		case <-ctx.Done():
			return
		}
		began := time.Now()
		h.mu.Lock()
		rung := f.rung.take()
		h.mu.Unlock()
		told := h.read(ctx, f.namespace, rung)
		took := time.Since(began)
		h.tell(f, &told)
		if !h.rest(ctx, f, began, took) {
			return
		}
	}
}

func (r *rung) take() rung {
	taken := *r
	*r = rung{}
	return taken
}

// read is what watchers are told of what was rung: the runs of the namespace as they stand now.
func (h *hub) read(ctx context.Context, namespace string, rung rung) tidings {
	told := tidings{news: rung.news}
	if len(rung.runs) == 0 {
		return told
	}
	runs, err := h.getRuns(ctx, namespace, slices.Collect(maps.Keys(rung.runs)))
	if err != nil {
		if ctx.Err() == nil {
			h.log.Warn("runs that are watched could not be read; their watchers will", "namespace", namespace, "error", err)
		}
		told.workflows = true
		return told
	}
	for i := range runs {
		run := wire.RunTo(&runs[i])
		told.add(runs[i].ID, named{run, proto.Size(run)})
	}
	return told
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

func (h *hub) tell(f *feed, t *tidings) {
	if t.empty() {
		return
	}
	h.mu.Lock()
	watchers := slices.Collect(maps.Keys(f.watchers))
	h.mu.Unlock()
	for _, w := range watchers {
		w.tell(t)
	}
}

// rest waits until it is time to read again; false when ctx has ended.
func (h *hub) rest(ctx context.Context, f *feed, began time.Time, took time.Duration) bool {
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

// intervalOf is that of the most impatient of a feed's watchers.
func (h *hub) intervalOf(f *feed) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	least := maxWatchInterval
	for w := range f.watchers {
		least = min(least, w.interval)
	}
	return least
}
