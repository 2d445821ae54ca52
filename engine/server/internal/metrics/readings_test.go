package metrics

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
)

// slowCounts is a store whose counts take a while.
type slowCounts struct {
	servertest.StubStore
	now, most atomic.Int32
}

func (c *slowCounts) GetStats(context.Context, string, time.Time) (engine.Stats, error) {
	c.most.Store(max(c.most.Load(), c.now.Add(1)))
	time.Sleep(time.Second)
	c.now.Add(-1)
	return engine.Stats{}, nil
}

func TestNamespacesAreCountedAFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowCounts{}
		s := NewReadings(store)
		var all sync.WaitGroup
		for i := range 10 {
			namespace := fmt.Sprint("n", i)
			all.Go(func() {
				if _, err := s.Stats(t.Context(), namespace); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := store.most.Load(); n > statsAtOnce {
			t.Errorf("%d were counted at the same time, want %d at most", n, statsAtOnce)
		}
	})
}
