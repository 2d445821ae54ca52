// Package sqlitetest gives tests SQLite databases with all tables.
package sqlitetest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
)

// T is what sqlitetest needs of *testing.T and *testing.B.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
	TempDir() string
}

// Migrate migrates the database at a path, and makes it if it does not exist. It must be the same
// function in all calls of a process.
type Migrate func(ctx context.Context, path string) error

// Fresh returns the path of a migrated database without rows, for t alone. Each is a copy of the
// first: running all migrations takes ten times as long as everything else about opening a store,
// and longer than most tests.
func Fresh(t T, migrate Migrate) string {
	t.Helper()
	return FreshIn(t, t.TempDir(), migrate)
}

// FreshIn is Fresh in a directory that the caller provides.
func FreshIn(t T, dir string, migrate Migrate) string {
	t.Helper()
	data, err := first.read(migrate)
	path := filepath.Join(dir, "kagzi.db")
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		t.Fatalf("a database for the test: %v", err)
	}
	return path
}

var first database

// database is the content of a file, made when the first test needs it.
type database struct {
	once sync.Once
	data []byte
	err  error
}

func (d *database) read(migrate Migrate) ([]byte, error) {
	d.once.Do(func() { d.data, d.err = build(migrate) })
	return d.data, d.err
}

func build(migrate Migrate) ([]byte, error) {
	dir, err := os.MkdirTemp("", "kagzi-sqlite-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "kagzi.db")
	if err := migrate(context.Background(), path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}
