package postgres

import (
	"sync"
	"testing"

	"github.com/kagzi/kagzi/backends/postgres/pgtest"
	"github.com/kagzi/kagzi/engine"
)

// Who has carried a group out carries the next one out as well, and there are never more of them than groups at a time.
func TestWhoCarriesAGroupOutStaysForTheNext(t *testing.T) {
	s := openAt(t, pgtest.URL(t))
	waiting := func() int {
		s.writer.mu.Lock()
		defer s.writer.mu.Unlock()
		return s.writer.idle
	}
	for range 20 {
		start(t, s, 1)
		if idle := waiting(); idle != 1 {
			t.Fatalf("after one call at a time %d wait to carry a group out, want 1", idle)
		}
	}
	var rivals sync.WaitGroup
	for range 20 * besideWeight {
		rivals.Go(func() {
			if _, err := s.StartRuns(t.Context(), []engine.StartRun{newStart(s)}); err != nil {
				t.Error(err)
			}
		})
	}
	rivals.Wait()
	if idle := waiting(); idle < 1 || idle > maxGroups {
		t.Errorf("after many calls at a time %d wait to carry a group out, want 1 to %d", idle, maxGroups)
	}
}
