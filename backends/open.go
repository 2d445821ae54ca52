// Package backends opens the database that a URL names. It is the one place that knows there is more than one kind.
package backends

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/kagzi/kagzi/backends/postgres"
	"github.com/kagzi/kagzi/backends/sqlite"
	"github.com/kagzi/kagzi/engine"
)

// ConfigureProcess makes settings of the database libraries that hold for the whole process. The program calls it before it opens a store; what is
// linked into other people's programs, as tests are, does not call it.
func ConfigureProcess() error { return sqlite.ConfigureProcess() }

// Open opens the store that url names: "sqlite:PATH", or "postgres://…" as libpq has it.
func Open(ctx context.Context, url string, o engine.OpenOptions) (engine.Store, error) {
	path, err := parse(url)
	if err != nil {
		return nil, err
	}
	if path != "" {
		s, err := sqlite.Open(ctx, path, o)
		if err != nil {
			return nil, err // not a nil *Store in an interface
		}
		return s, nil
	}
	s, err := postgres.Open(ctx, url, o)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Migrate brings the schema of the database up to date.
func Migrate(ctx context.Context, url string) error {
	path, err := parse(url)
	switch {
	case err != nil:
		return err
	case path != "":
		return sqlite.Migrate(ctx, path)
	}
	return postgres.Migrate(ctx, url)
}

// Status compares the schema of the database with the migrations that this program has. It changes nothing.
func Status(ctx context.Context, url string) (engine.SchemaStatus, error) {
	path, err := parse(url)
	switch {
	case err != nil:
		return engine.SchemaStatus{}, err
	case path != "":
		return sqlite.Status(ctx, path)
	}
	return postgres.Status(ctx, url)
}

// Check looks for what is wrong in the database. It changes nothing.
func Check(ctx context.Context, url string) ([]engine.Finding, error) {
	path, err := parse(url)
	switch {
	case err != nil:
		return nil, err
	case path != "":
		return sqlite.Check(ctx, path)
	}
	return postgres.Check(ctx, url)
}

// Accept takes what another program wrote to an SQLite file for right, unless it contradicts itself, and returns where the file that was there is
// kept. Postgres looks after its pages itself.
func Accept(ctx context.Context, url string) (kept string, findings []engine.Finding, err error) {
	path, err := parse(url)
	switch {
	case err != nil:
		return "", nil, err
	case path != "":
		return sqlite.Accept(ctx, path)
	}
	return "", nil, errors.New("there is nothing to accept in a Postgres database: what other programs write there is as good as what kagzi does")
}

// parse is the path of an SQLite database, empty for a Postgres one. The message names the scheme only: a URL may hold a
// password.
func parse(url string) (path string, err error) {
	scheme, rest, found := strings.Cut(url, ":")
	switch {
	case found && scheme == "sqlite" && rest != "":
		path := strings.TrimPrefix(rest, "//")
		if file, settings, _ := strings.Cut(path, "?"); strings.Contains(settings, "=") && !isThere(path) {
			return "", urlError(fmt.Sprintf("the database URL has settings behind the file (?%s), and there are none for SQLite: want sqlite:%s", settings, file))
		}
		return path, nil
	case found && (scheme == "postgres" || scheme == "postgresql") && strings.HasPrefix(rest, "//"):
		return "", nil
	case found && scheme == "sqlite":
		return "", urlError("the database URL names no file, want sqlite:PATH")
	}
	return "", urlError("unknown kind of database URL, want sqlite:PATH or postgres://USER:PASSWORD@HOST/DATABASE")
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// urlError is what is wrong with a URL.
type urlError string

func (e urlError) Error() string { return string(e) }

// ExitCode is that of a wrong setting: a service manager need not start a server with it again and again.
func (urlError) ExitCode() int { return 64 }
