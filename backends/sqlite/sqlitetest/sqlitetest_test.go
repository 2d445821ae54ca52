package sqlitetest_test

import (
	"errors"
	"testing"

	"github.com/kagzi/kagzi/backends/sqlite"
	"github.com/kagzi/kagzi/backends/sqlite/sqlitetest"
	"github.com/kagzi/kagzi/engine"
)

func TestAFreshDatabaseIsUpToDateSoundAndOnesOwn(t *testing.T) {
	open := func() (string, *sqlite.Store) {
		path := sqlitetest.Fresh(t, sqlite.Migrate)
		store, err := sqlite.Open(t.Context(), path, engine.OpenOptions{KeepSchema: true})
		if err != nil {
			t.Fatalf("its schema is not the newest: %v", err)
		}
		t.Cleanup(func() { store.Close() })
		return path, store
	}
	path, used := open()
	if _, err := used.CreateNamespace(t.Context(), engine.NamespaceParams{
		Namespace: engine.Namespace{Name: "mine"}, AuditID: engine.NewID(used.Now()), Now: used.Now(),
	}); err != nil {
		t.Fatal(err)
	}
	if findings, err := sqlite.Check(t.Context(), path); err != nil || len(findings) > 0 {
		t.Fatalf("findings = %v (%v), want none", findings, err)
	}
	_, other := open()
	if _, err := other.GetNamespace(t.Context(), "mine"); !errors.Is(err, engine.ErrNotFound) {
		t.Fatalf("another's namespace: %v, want %v", err, engine.ErrNotFound)
	}
}
