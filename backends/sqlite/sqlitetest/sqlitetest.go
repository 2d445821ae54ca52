// Package sqlitetest gives tests SQLite databases that have their tables already.
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

// Migrate brings the database at a path up to date, and makes it when it is not there. It is the
// same in all calls of a process.
type Migrate func(ctx context.Context, path string) error

// Fresh is the path of a database of t's own without rows, up to date. Each is a copy of the first:
// to carry out all migrations takes ten times as long as all else that it takes to open a store,
// and longer than most tests.
func Fresh(t T, migrate Migrate) string {
	t.Helper()
	return FreshIn(t, t.TempDir(), migrate)
}

// FreshIn is Fresh in a directory that the caller brings.
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

// database is a file's content, made when the first test asks for it.
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
