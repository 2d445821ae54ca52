package postgres

import (
	"context"
	"testing"

	"github.com/kagzi/kagzi/backends/postgres/pgtest"
	"github.com/kagzi/kagzi/backends/storetest"
	"github.com/kagzi/kagzi/engine"
)

func TestStore(t *testing.T) { storetest.Run(t, open) }

// open gives an empty store, and looks after each case whether the rows that it left make sense.
func open(tb testing.TB) engine.Store { return openIn(tb, pgtest.Lend(tb, Migrate)) }

func openIn(tb testing.TB, place *pgtest.Place) engine.Store {
	tb.Helper()
	tb.Cleanup(func() {
		if tb.Failed() {
			return
		}
		findings, err := checkOn(context.Background(), place.Session)
		expectNoFindings(tb, findings, err)
	})
	return openOnKept(tb, place)
}

// kept are sessions that the next store of a place goes on with: to begin one, and to plan each
// statement in it for the first time, takes a server longer than most cases do.
type kept struct{ sessions }

func (k kept) Close() { k.close() }

// openOnKept opens a store that leaves its sessions to the next one, unless something closes it before.
func openOnKept(tb testing.TB, place *pgtest.Place) *Store {
	tb.Helper()
	s, err := openOn(context.Background(), place.URL, engine.OpenOptions{},
		func(ctx context.Context, config *address) (sessions, error) {
			if k, ok := place.Kept.(kept); ok {
				if k.pool.Ping(ctx) == nil && k.views.Ping(ctx) == nil {
					return k.sessions, nil
				}
				k.Close() // the test before closed its store
			}
			made, err := newSessions(ctx, config)
			if err == nil {
				place.Kept = kept{made}
			}
			return made, err
		})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.stop() })
	return s
}

// lentURL is the address of a schema with its tables and no rows, for tests to which it does not
// matter how these came about.
func lentURL(tb testing.TB) string {
	tb.Helper()
	return pgtest.Lend(tb, Migrate).URL
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
