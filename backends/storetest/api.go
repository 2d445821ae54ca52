package storetest

import (
	"testing"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/bench"
	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/backends/storetest/internal/model"
	"github.com/kagzi/kagzi/backends/storetest/internal/runs"
	"github.com/kagzi/kagzi/backends/storetest/internal/upgrade"
	"github.com/kagzi/kagzi/engine"
)

// T is what a case needs of *testing.T.
type T = fixture.T

// Fill puts ended runs and sleeping runs into a new store, faster than the operations can: runs of
// the namespace "default", queue "orders" and type "order". The sleeping ones must not be due
// within a year of now.
type Fill = bench.Fill

// Bench measures the operations of a store as its callers see them: each call is durable when it
// returns. Making a million ended runs with the operations takes a while; pass a Fill, or lower the
// flags.
func Bench(b *testing.B, open func(tb testing.TB) engine.Store, fill ...Fill) {
	bench.Bench(b, open, fill...)
}

// SameRows applies one random sequence of calls to several stores. They must answer alike and hold
// the same rows afterwards, as seen through their Views.
func SameRows(t *testing.T, opens ...func(tb testing.TB) engine.Store) { model.SameRows(t, opens...) }

// MovedAlong applies one random sequence of calls to a store whose rows are moved to another store
// now and then: move closes the given store and opens the next. The answers must match the model
// all the same.
func MovedAlong(t *testing.T, seed uint64, store engine.Store, move func(engine.Store) engine.Store) {
	model.MovedAlong(t, seed, store, move)
}

// PlacesMoved checks that moving the rows to another store leaves the places of concurrency keys of
// ScopeOpen to the runs that have them. move closes the given store and opens the next; check fails
// the test if the rows of the store contradict each other.
func PlacesMoved(t T, store engine.Store, move func(engine.Store, time.Time) engine.Store, check func()) {
	runs.PlacesMoved(t, store, move, check)
}

// LeaveWork fills a new store with runs in every state, and with schedules, signals and keys. It
// does the same each time.
func LeaveWork(t T, store engine.Store) { upgrade.LeaveWork(t, store) }

// TakeUpWork continues, an hour later, the work of a database that LeaveWork filled under this
// schema.
func TakeUpWork(t T, store engine.Store, schema int) { upgrade.TakeUpWork(t, store, schema) }
