package kagzitest

import (
	"context"
	"sync"

	"github.com/kagzi/kagzi/engine"
)

// ends tells who waits for a run that it has ended. A client's wait asks the server again every
// minute, which would make a month of 43,200 calls; with ends it asks once.
type ends struct {
	store engine.Store

	mu      sync.Mutex
	waiting map[engine.ID][]chan struct{}
}

func newEnds(store engine.Store) *ends {
	return &ends{store: store, waiting: map[engine.ID][]chan struct{}{}}
}

func (e *ends) ring(r engine.Notification) {
	if r.Kind == engine.NotifyEnd {
		e.ended(r.ID)
	}
}

func (e *ends) ended(run engine.ID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, waiter := range e.waiting[run] {
		close(waiter)
	}
	delete(e.waiting, run)
}

// outcomes tells the waiters of the test of runs that end in this process, beside the server.
type outcomes struct {
	engine.Outcomes
	ends *ends
}

func (o outcomes) RunEnded(run engine.ID, e *engine.Ending) {
	o.Outcomes.RunEnded(run, e)
	o.ends.ended(run)
}

// await returns when the run has ended, cannot be read, or ctx is over.
func (e *ends) await(ctx context.Context, runID string) {
	id, err := engine.ParseID(runID)
	if err != nil {
		return
	}
	rung := make(chan struct{})
	e.mu.Lock()
	e.waiting[id] = append(e.waiting[id], rung)
	e.mu.Unlock()
	if run, err := e.store.GetRun(ctx, namespace, id); err != nil || run.Status.Ended() {
		return
	}
	select {
	case <-rung:
	case <-ctx.Done():
	}
}
