package storetest_test

import (
	"slices"
	"testing"

	"github.com/kagzi/kagzi/backends/memory"
	"github.com/kagzi/kagzi/backends/sqlite"
	"github.com/kagzi/kagzi/backends/sqlite/sqlitetest"
	"github.com/kagzi/kagzi/backends/storetest"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/lab/long"
)

// sabotage is a store that breaks one promise, and the suites that must notice.
type sabotage struct {
	promise string
	spoil   func(engine.Store) engine.Store
	suites  []string
}

// TestSabotage checks that the suites fail for broken stores; a suite that never fails tests
// nothing.
func TestSabotage(t *testing.T) {
	for _, s := range sabotages {
		t.Run(s.promise, func(t *testing.T) {
			t.Parallel()
			failed := storetest.Passes(spoiled(t, s.spoil), s.suites...)
			if len(failed) == 0 {
				t.Fatalf("no case of %v noticed", s.suites)
			}
			t.Logf("%d cases noticed, the first: %s", len(failed), failed[0])
		})
	}
}

// TestPassesNoticesNothingInASoundStore checks that the suites of TestSabotage pass for a sound
// store. Unless tests try everything, it runs a part of them, because the backends' own tests run
// them all.
func TestPassesNoticesNothingInASoundStore(t *testing.T) {
	var suites []string
	for _, s := range sabotages {
		suites = append(suites, s.suites...)
	}
	slices.Sort(suites)
	sound := func(s engine.Store) engine.Store { return s }
	for _, failure := range storetest.Passes(spoiled(t, sound), long.Share(t, slices.Compact(suites), 4)...) {
		t.Errorf("failed: %s", failure)
	}
}

func TestPassesNamesTheCaseThatFailed(t *testing.T) {
	const name = "claim/a second claimant finds nothing"
	failed := storetest.Passes(spoiled(t, func(s engine.Store) engine.Store { return &claimsTwice{Store: s} }), name)
	if len(failed) != 1 || failed[0][:len(name)] != name {
		t.Fatalf("failed = %q, want the one case %q", failed, name)
	}
}

// spoiled opens new stores and breaks them: SQLite when tests try everything, otherwise the memory
// store, which keeps the same contract in a tenth of the time.
func spoiled(t *testing.T, spoil func(engine.Store) engine.Store) func(storetest.T) engine.Store {
	return func(c storetest.T) engine.Store {
		if !long.Enabled() {
			s := memory.New(memory.Options{}).Open(nil)
			c.Cleanup(func() { s.Close() })
			return spoil(s)
		}
		s, err := sqlite.Open(c.Context(), sqlitetest.Fresh(t, sqlite.Migrate), engine.OpenOptions{})
		if err != nil {
			c.Fatalf("open: %v", err)
		}
		c.Cleanup(func() { s.Close() })
		return spoil(s)
	}
}
