// Package backends opens the database that a URL names. registry.go lists the kinds that there are.
package backends

import (
	"context"

	"github.com/kagzi/kagzi/backends/move"
	"github.com/kagzi/kagzi/backends/postgres"
	"github.com/kagzi/kagzi/backends/sqlite"
	"github.com/kagzi/kagzi/engine"
)

// ConfigureProcess makes settings of the database libraries that hold for the whole process. The
// program calls it before it opens a store; what is linked into other people's programs, as tests
// are, does not call it.
func ConfigureProcess() error { return sqlite.ConfigureProcess() }

// Open opens the store that url names: "sqlite:PATH", "postgres://…" as libpq has it, or "memory:"
// where the options allow it.
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

// Status compares the schema of the database with the migrations that this program has. It changes nothing.
func Status(ctx context.Context, url string) (engine.SchemaStatus, error) {
	d, err := parse(url)
	if err != nil {
		return engine.SchemaStatus{}, err
	}
	return d.status(ctx, d.at)
}

// Check looks for what is wrong in the database. It changes nothing.
func Check(ctx context.Context, url string) ([]engine.Finding, error) {
	d, err := parse(url)
	if err != nil {
		return nil, err
	}
	return d.check(ctx, d.at)
}

// Accept takes what another program wrote to an SQLite file for right, unless it contradicts
// itself, and returns where the file that was there is kept. Postgres looks after its pages itself.
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
