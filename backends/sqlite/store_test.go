package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/kagzi/kagzi/backends/storetest"
	"github.com/kagzi/kagzi/engine"
)

func TestStore(t *testing.T) { storetest.Run(t, open) }

func open(tb testing.TB) engine.Store { return openAt(tb, filepath.Join(tb.TempDir(), "kagzi.db")) }

func openAt(tb testing.TB, path string) *Store {
	tb.Helper()
	s, err := Open(tb.Context(), path, engine.OpenOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	return s
}
