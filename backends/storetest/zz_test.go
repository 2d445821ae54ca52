package storetest_test

import (
	"testing"
	"path/filepath"
	"context"

	"github.com/kagzi/kagzi/backends/sqlite"
	"github.com/kagzi/kagzi/backends/postgres"
	"github.com/kagzi/kagzi/backends/postgres/pgtest"
	"github.com/kagzi/kagzi/backends/storetest"
	"github.com/kagzi/kagzi/engine"
)

func openPG(tb testing.TB) engine.Store {
		s, err := postgres.Open(context.Background(), pgtest.URL(tb), engine.OpenOptions{})
		if err != nil { tb.Fatal(err) }
		tb.Cleanup(func() { s.Close() })
		return s
}
func openZZ(tb testing.TB) engine.Store {
		s, err := sqlite.Open(context.Background(), filepath.Join(tb.TempDir(), "k.db"), engine.OpenOptions{})
		if err != nil { tb.Fatal(err) }
		tb.Cleanup(func() { s.Close() })
		return s
	}

func TestZZ(t *testing.T) { storetest.Run(t, openZZ) }
func TestSame(t *testing.T) { storetest.SameRows(t, openZZ, openPG) }
func BenchmarkZZ(b *testing.B) { storetest.Bench(b, openZZ) }
