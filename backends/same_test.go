package backends

import (
	"context"
	"testing"

	"github.com/kagzi/kagzi/backends/postgres/pgtest"
	"github.com/kagzi/kagzi/backends/sqlite"
	"github.com/kagzi/kagzi/backends/sqlite/sqlitetest"
	"github.com/kagzi/kagzi/backends/storetest"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/lab/long"
)

// Time, ids and randomness are arguments, so two stores given the same calls hold the same rows.
func TestAllBackendsHoldTheSameRows(t *testing.T) {
	storetest.SameRows(t,
		func(tb testing.TB) engine.Store {
			return open(tb, "sqlite:"+sqlitetest.FreshIn(tb, long.ScratchDir(tb), sqlite.Migrate))
		},
		func(tb testing.TB) engine.Store { return open(tb, pgtest.Lend(tb, Migrate).URL) },
		func(tb testing.TB) engine.Store { return open(tb, "memory:") })
}

func open(tb testing.TB, url string) engine.Store {
	s, err := Open(context.Background(), url, engine.OpenOptions{Volatile: true})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	return s
}
