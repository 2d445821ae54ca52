package backends

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/kagzi/kagzi/backends/memory"
	"github.com/kagzi/kagzi/backends/move"
	"github.com/kagzi/kagzi/backends/postgres"
	"github.com/kagzi/kagzi/backends/sqlite"
	"github.com/kagzi/kagzi/engine"
)

// driver is one kind of database. Its functions take what place made of the URL: a file's path, or
// the URL itself.
type driver struct {
	schemes []string
	place   func(url, rest string) (string, error) // rest is the URL after the scheme and its colon

	open    func(ctx context.Context, place string, o engine.OpenOptions) (engine.Store, error)
	migrate func(ctx context.Context, place string) error
	status  func(ctx context.Context, place string) (engine.SchemaStatus, error)
	check   func(ctx context.Context, place string) ([]engine.Finding, error)
	accept  func(ctx context.Context, place string) (kept string, findings []engine.Finding, err error)
	end     func(ctx context.Context, place string) (move.Database, error) // one end of a copy
	// the source of a copy that leaves it unchanged
	readEnd func(ctx context.Context, place string) (move.Database, error)
	holder  func(place string) (string, error)
	backup  func(ctx context.Context, place, file string) (engine.Backup, error)
	restore func(ctx context.Context, place string, p engine.RestoreParams) (engine.Restoration, error)
	file    bool // place is the path of a file
}

// drivers returns the kinds of database. To add a backend, add an entry. It is a function because a
// backup of one kind is a copy to another kind, which calls drivers again.
func drivers() []driver {
	return []driver{
		{
			schemes: []string{"sqlite"}, place: sqlitePath, file: true,
			open: func(ctx context.Context, path string, o engine.OpenOptions) (engine.Store, error) {
				return opened(sqlite.Open(ctx, path, o))
			},
			migrate: sqlite.Migrate, status: sqlite.Status, check: sqlite.Check, accept: sqlite.Accept,
			end: func(ctx context.Context, path string) (move.Database, error) {
				return openedEnd(sqlite.OpenEnd(ctx, path))
			},
			readEnd: func(ctx context.Context, path string) (move.Database, error) {
				return openedEnd(sqlite.OpenReadEnd(ctx, path))
			},
			holder: sqlite.Holder, backup: sqlite.Backup, restore: sqlite.Restore,
		},
		{
			schemes: []string{"postgres", "postgresql"}, place: postgresURL,
			open: func(ctx context.Context, url string, o engine.OpenOptions) (engine.Store, error) {
				return opened(postgres.Open(ctx, url, o))
			},
			migrate: postgres.Migrate, status: postgres.Status, check: postgres.Check, accept: acceptPostgres,
			end: openPostgresEnd, readEnd: openPostgresEnd,
			holder: func(string) (string, error) { return "", nil }, // several servers may share it
			backup: backupPostgres, restore: restorePostgres,
		},
		{
			schemes: []string{"memory"}, place: func(_, rest string) (string, error) { return rest, nil },
			open:    openMemory,
			migrate: func(context.Context, string) error { return errVolatile },
			status:  func(context.Context, string) (s engine.SchemaStatus, err error) { return s, errVolatile },
			check:   func(context.Context, string) ([]engine.Finding, error) { return nil, errVolatile },
			accept:  func(context.Context, string) (string, []engine.Finding, error) { return "", nil, errVolatile },
			end:     func(context.Context, string) (move.Database, error) { return nil, errVolatile },
			readEnd: func(context.Context, string) (move.Database, error) { return nil, errVolatile },
			holder:  func(string) (string, error) { return "", errVolatile },
			backup:  func(context.Context, string, string) (b engine.Backup, err error) { return b, errVolatile },
			restore: func(context.Context, string, engine.RestoreParams) (r engine.Restoration, err error) {
				return r, errVolatile
			},
		},
	}
}

// errVolatile refuses to serve the memory store as a database.
const errVolatile = urlError(
	"memory: loses its data when the program ends, so it is for demos and tests only: want sqlite:PATH or postgres://USER:PASSWORD@HOST/DATABASE")

func openMemory(_ context.Context, _ string, o engine.OpenOptions) (engine.Store, error) {
	if !o.Volatile {
		return nil, errVolatile
	}
	return memory.New(memory.Options{Endings: true}).Open(nil), nil
}

// opened returns the store that a driver opened, without a nil pointer in the interface.
func opened[S engine.Store](s S, err error) (engine.Store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// openedEnd is opened for one end of a copy.
func openedEnd[D move.Database](d D, err error) (move.Database, error) {
	if err != nil {
		return nil, err
	}
	return d, nil
}

// database is what a URL names.
type database struct {
	driver
	at string
}

// parse finds the driver of a URL. Errors name the scheme only, because a URL may hold a password.
func parse(url string) (database, error) {
	scheme, rest, found := strings.Cut(url, ":")
	for _, d := range drivers() {
		if found && slices.Contains(d.schemes, scheme) {
			at, err := d.place(url, rest)
			return database{d, at}, err
		}
	}
	return database{}, errUnknown
}

const errUnknown = urlError("unknown kind of database URL, want sqlite:PATH or postgres://USER:PASSWORD@HOST/DATABASE")

func sqlitePath(_, rest string) (string, error) {
	if rest == "" {
		return "", urlError("the database URL names no file, want sqlite:PATH")
	}
	path := strings.TrimPrefix(rest, "//")
	if file, settings, _ := strings.Cut(path, "?"); strings.Contains(settings, "=") && !isThere(path) {
		return "",
			urlError(
				fmt.Sprintf(
					"the database URL has settings after the file (?%s), but SQLite takes none: want sqlite:%s",
					settings, file))
	}
	return path, nil
}

func postgresURL(url, rest string) (string, error) {
	if !strings.HasPrefix(rest, "//") {
		return "", errUnknown
	}
	return url, nil
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// urlError describes what is wrong with a URL.
type urlError string

func (e urlError) Error() string { return string(e) }

// ExitCode is the exit code of a wrong setting, after which a service manager need not restart the
// server.
func (urlError) ExitCode() int { return 64 }
