package sqlite

import (
	"context"
	"testing"

	"github.com/kagzi/kagzi/backends/sqlite/sqlitetest"
	"github.com/kagzi/kagzi/backends/storetest"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/lab/long"
)

func TestStore(t *testing.T) { storetest.Run(t, open) }

// open returns a new store, and checks its rows after each case. With -short it does not, because
// under the race detector that takes longer than the cases.
func open(tb testing.TB) engine.Store {
	path := sqlitetest.FreshIn(tb, long.ScratchDir(tb), Migrate)
	tb.Cleanup(func() {
		if tb.Failed() || testing.Short() {
			return
		}
		findings, err := Check(context.Background(), path)
		if err != nil {
			tb.Error(err)
		}
		for _, f := range findings {
			tb.Errorf("%s %s", f.Subject, f.Text)
		}
	})
	return openAt(tb, path)
}

// freshFile returns the path of a database with its tables.
func freshFile(tb testing.TB) string { return sqlitetest.Fresh(tb, Migrate) }

func openAt(tb testing.TB, path string) *Store {
	tb.Helper()
	s, err := Open(tb.Context(), path, engine.OpenOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	return s
}
