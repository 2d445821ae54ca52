package kagzitest

import (
	"context"
	"sync"

	"github.com/kagzi/kagzi/engine"
)

// ends notifies callers that wait for the end of a run. Without it, a client's wait would ask the
// server every minute, which is 43,200 calls in a month of test time.
type ends struct {
	store  engine.Store
	gaveUp <-chan struct{}

	mu      sync.Mutex
	waiting map[engine.ID][]chan struct{}
}

func newEnds(store engine.Store, gaveUp <-chan struct{}) *ends {
	return &ends{store: store, gaveUp: gaveUp, waiting: map[engine.ID][]chan struct{}{}}
}

func (e *ends) notify(r engine.Notification) {
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

// outcomes also reports runs that end in this process to the waiting test.
type outcomes struct {
	engine.Outcomes
	ends *ends
}

func (o outcomes) RunEnded(run engine.ID, e *engine.Ending) {
	o.Outcomes.RunEnded(run, e)
	o.ends.ended(run)
}

// await returns when the run has ended, cannot be read, or ctx is done, and when the test was given
// up.
func (e *ends) await(ctx context.Context, runID string) {
	id, err := engine.ParseID(runID)
	if err != nil {
		return
	}
	done := make(chan struct{})
	e.mu.Lock()
	e.waiting[id] = append(e.waiting[id], done)
	e.mu.Unlock()
	if run, err := e.store.GetRun(ctx, namespace, id); err != nil || run.Status.Ended() {
		return
	}
	select {
	case <-done:
	case <-e.gaveUp:
	case <-ctx.Done():
	}
}
