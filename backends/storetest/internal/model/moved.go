package model

import (
	"fmt"
	"testing"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

// MovedAlong applies one random sequence of calls to a store whose rows are moved to another store
// now and then: move closes the given store and opens the next. The answers must match the model
// all the same.
func MovedAlong(t *testing.T, seed uint64, store engine.Store, move func(engine.Store) engine.Store) {
	const moves = 4
	s, f := fixture.New(t, store), newStream(seed)
	var trail []string
	for n := range *modelSteps {
		if n > 0 && n%(*modelSteps/moves) == 0 {
			store = move(store)
			trail = append(trail, fmt.Sprintf("%4d moved", n))
		}
		a := f.next()
		want := a.model(f.model)
		trail = append(trail, fmt.Sprintf("%4d %s -> %s", n, a.text, want))
		if got := a.store(s.Ctx, store); got != want && !vaguer(got, want) {
			s.Diverged(seed, trail, "answer", got, want)
		}
	}
	for _, r := range f.model.runs {
		if got, want := seenRun(s.Ctx, store, r.ID), r.String(); got != want {
			s.Diverged(seed, trail, "run "+r.ID.String(), got, want)
		}
	}
}
