package postgres

import (
	"context"
	"testing"

	"github.com/kagzi/kagzi/backends/postgres/pgtest"
	"github.com/kagzi/kagzi/backends/storetest"
	"github.com/kagzi/kagzi/engine"
)

func TestStore(t *testing.T) { storetest.Run(t, open) }

// open gives a fresh store, and looks after each case whether the rows that it left make sense.
func open(tb testing.TB) engine.Store {
	url := pgtest.URL(tb)
	tb.Cleanup(func() {
		if !tb.Failed() {
			expectSound(tb, url)
		}
	})
	return openAt(tb, url)
}

func openAt(tb testing.TB, url string) *Store {
	tb.Helper()
	s, err := Open(context.Background(), url, engine.OpenOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	return s
}

func BenchmarkStore(b *testing.B) {
	storetest.Bench(b, func(tb testing.TB) engine.Store { return openAt(tb, pgtest.DurableURL(tb)) }, fill)
}
