package postgres

import (
	"context"
	"testing"

	"github.com/kagzi/kagzi/backends/postgres/pgtest"
	"github.com/kagzi/kagzi/backends/storetest"
	"github.com/kagzi/kagzi/engine"
)

func TestStore(t *testing.T) { storetest.Run(t, open) }

// open returns an empty store, and checks its rows after each case.
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

// kept holds sessions for the next store of a place: opening a session, and planning each statement
// in it for the first time, takes longer than most cases.
type kept struct{ sessions }

func (k kept) Close() { k.close() }

// openOnKept opens a store that leaves its sessions to the next one, unless something closes it
// before.
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

// lentURL returns the address of a schema with its tables and no rows.
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
