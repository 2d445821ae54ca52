package session

import (
	"context"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
)

// Unary polls get no more runs than the worker's max_concurrent leaves. A session needs no such
// check: its worker grants credit.

// slots counts the runs that open polls of this server may still get, by worker.
type slots struct {
	mu       sync.Mutex
	reserved map[string]int
	freed    chan struct{} // closed when a slot may have become free; nil: nobody waits for it
}

// lookAgain is how long a poll of a full worker waits before it looks again. It matters for runs
// that end at other servers or by the coordinator.
const lookAgain = 5 * time.Second

// reserve adds n to the slots of a worker and returns how many others had reserved before, and what
// is closed when a slot becomes free.
func (l *slots) reserve(worker string, n int) (others int, freed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reserved == nil {
		l.reserved = map[string]int{}
	}
	if l.freed == nil {
		l.freed = make(chan struct{})
	}
	others = l.reserved[worker]
	l.reserved[worker] += n
	return others, l.freed
}

// drop gives up n reserved slots.
func (l *slots) drop(worker string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reserved[worker] -= n; l.reserved[worker] == 0 {
		delete(l.reserved, worker)
	}
}

// free wakes the polls of full workers.
func (l *slots) free() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.freed != nil {
		close(l.freed)
		l.freed = nil
	}
}

// awaitSlots waits up to wait until the worker may get another run, and reserves up to most slots.
// It returns how many; 0: none became free in time. Call drop with them when the poll is over. The
// slots are reserved before the held runs are counted, so that a run which another poll gets
// meanwhile is counted by one of the two.
func (s *Service) awaitSlots(ctx context.Context, w *engine.Worker, most int, wait time.Duration) (int, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		others, freed := s.slots.reserve(w.ID, most)
		held, err := s.store.HeldBy(ctx, w.ID)
		if err != nil {
			s.slots.drop(w.ID, most)
			return 0, err
		}
		n := max(0, min(most, w.MaxConcurrent-len(held)-others))
		s.slots.drop(w.ID, most-n)
		if n > 0 {
			return n, nil
		}
		again := time.NewTimer(lookAgain)
		select {
		case <-freed:
		case <-again.C:
		case <-timer.C:
			again.Stop()
			return 0, nil
		case <-s.stopping:
			again.Stop()
			return 0, wire.ErrStopping
		case <-ctx.Done():
			again.Stop()
			return 0, ctx.Err()
		}
		again.Stop()
	}
}
