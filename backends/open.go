// Package backends opens the database that a URL names: SQLite, Postgres or memory. open.go opens
// it; registry.go lists the kinds of database; copy.go moves one to another; backup.go makes,
// checks and restores backups.
package backends

import (
	"context"

	"github.com/kagzi/kagzi/backends/move"
	"github.com/kagzi/kagzi/backends/postgres"
	"github.com/kagzi/kagzi/backends/sqlite"
	"github.com/kagzi/kagzi/engine"
)

// ConfigureProcess makes the settings of the database libraries that hold for the whole process.
// The program calls it before it opens a store. Code that is linked into other programs, such as
// tests, does not call it.
func ConfigureProcess() error { return sqlite.ConfigureProcess() }

// Open opens the store that url names: "sqlite:PATH", a "postgres://…" URL as in libpq, or
// "memory:" if the options allow it.
func Open(ctx context.Context, url string, o engine.OpenOptions) (engine.Store, error) {
	d, err := parse(url)
	if err != nil {
		return nil, err
	}
	return d.open(ctx, d.at, o)
}

// Migrate brings the schema of the database up to date.
func Migrate(ctx context.Context, url string) error {
	d, err := parse(url)
	if err != nil {
		return err
	}
	return d.migrate(ctx, d.at)
}

// Status compares the schema of the database with this program's migrations. It changes nothing.
func Status(ctx context.Context, url string) (engine.SchemaStatus, error) {
	d, err := parse(url)
	if err != nil {
		return engine.SchemaStatus{}, err
	}
	return d.status(ctx, d.at)
}

// Check reports contradictions in the database. It changes nothing.
func Check(ctx context.Context, url string) ([]engine.Finding, error) {
	d, err := parse(url)
	if err != nil {
		return nil, err
	}
	return d.check(ctx, d.at)
}

// Accept accepts changes that another program made to an SQLite file, unless they contradict each
// other, and returns where the original file is kept. Postgres checks its pages itself.
func Accept(ctx context.Context, url string) (kept string, findings []engine.Finding, err error) {
	d, err := parse(url)
	if err != nil {
		return "", nil, err
	}
	return d.accept(ctx, d.at)
}

func acceptPostgres(context.Context, string) (string, []engine.Finding, error) {
	return "", nil, &engine.Error{Kind: engine.KindInvalid, Message: "--accept is for SQLite files only: " +
		"Postgres checks its pages itself, and kagzi db check checks the rows"}
}

func openPostgresEnd(ctx context.Context, url string) (move.Database, error) {
	return openedEnd(postgres.OpenEnd(ctx, url))
}
