package memory

import (
	"testing"

	"github.com/kagzi/kagzi/backends/storetest"
	"github.com/kagzi/kagzi/engine"
)

// TestStore runs the whole contract, so that what a simulation finds is not a bug of this store.
func TestStore(t *testing.T) {
	if testing.Short() {
		t.Skip("it is all under one lock: the race detector, for which the short run is, finds nothing in it")
	}
	failed := storetest.Passes(func(c storetest.T) engine.Store {
		s := New(Options{}).Open(nil)
		c.Cleanup(func() { s.Close() })
		return s
	})
	for _, line := range failed {
		t.Error(line)
	}
}
