package storetest

import (
	"testing"

	"github.com/kagzi/kagzi/backends/storetest/internal/bench"
	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/backends/storetest/internal/model"
	"github.com/kagzi/kagzi/backends/storetest/internal/upgrade"
	"github.com/kagzi/kagzi/engine"
)

// T is what a case needs of *testing.T.
type T = fixture.T

// Fill puts ended runs and sleeping runs into a fresh store, faster than the operations can: runs
// of the namespace "default", queue "orders" and type "order". The sleeping ones must not be due
// within a year of now.
type Fill = bench.Fill

// Bench measures the operations of a store as its callers see them: each call is durable when it
// returns. A million ended runs take the operations a while; give a Fill, or lower the flags.
func Bench(b *testing.B, open func(tb testing.TB) engine.Store, fill ...Fill) {
	bench.Bench(b, open, fill...)
}

// SameRows lives one random life in several stores, which must answer alike and hold the same rows
// after it, as seen through their Views.
func SameRows(t *testing.T, opens ...func(tb testing.TB) engine.Store) { model.SameRows(t, opens...) }

// MovedAlong lives one random life, whose rows move to another store now and then: move closes the
// one it is given and opens the next. The life must answer like the model all the same.
func MovedAlong(t *testing.T, seed uint64, store engine.Store, move func(engine.Store) engine.Store) {
	model.MovedAlong(t, seed, store, move)
}

// LeaveWork fills a fresh store with runs in every state and with what stands around them. It does the same each time.
func LeaveWork(t T, store engine.Store) { upgrade.LeaveWork(t, store) }

// TakeUpWork goes on, an hour later, with the work of a database that LeaveWork filled under this schema.
func TakeUpWork(t T, store engine.Store, schema int) { upgrade.TakeUpWork(t, store, schema) }
