package sqlite

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/kagzi/kagzi/backends/storetest"
	"github.com/kagzi/kagzi/engine"
)

func TestStore(t *testing.T) { storetest.Run(t, open) }

// open gives a fresh store, and looks after each case whether the rows that it left make sense; with -short it does not, because under
// the race detector that takes longer than the cases.
func open(tb testing.TB) engine.Store {
	path := filepath.Join(tb.TempDir(), "kagzi.db")
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

func openAt(tb testing.TB, path string) *Store {
	tb.Helper()
	s, err := Open(tb.Context(), path, engine.OpenOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	return s
}
