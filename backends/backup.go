package backends

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/kagzi/kagzi/backends/postgres"
	"github.com/kagzi/kagzi/backends/sqlite"
	"github.com/kagzi/kagzi/engine"
)

// Backup makes a backup of the database in a new file. Servers may be running on it.
func Backup(ctx context.Context, url, file string) (engine.Backup, error) {
	d, err := parse(url)
	if err != nil {
		return engine.Backup{}, err
	}
	return d.backup(ctx, d.at, file)
}

func backupPostgres(ctx context.Context, url, file string) (engine.Backup, error) {
	return sqlite.PlaceBackup(ctx, file, func(part string) (time.Time, error) {
		now := time.Now()
		_, err := Snapshot(ctx, url, part, now, nil)
		return now, err
	})
}

// Holder describes the server that holds the database exclusively; empty if none does, or if
// several may share it.
func Holder(url string) (string, error) {
	d, err := parse(url)
	if err != nil {
		return "", err
	}
	return d.holder(d.at)
}

// Restore fills the database from a backup. No server may be running on it; a Postgres database
// must be empty.
func Restore(ctx context.Context, p engine.RestoreParams) (engine.Restoration, error) {
	d, err := parse(p.URL)
	if err != nil {
		return engine.Restoration{}, err
	}
	return d.restore(ctx, d.at, p)
}

// restorePostgres fills an absent or empty schema. It replaces nothing and drops nothing, forced or not.
func restorePostgres(ctx context.Context, url string, p engine.RestoreParams) (engine.Restoration, error) {
	place, err := emptyTarget(ctx, url)
	if err != nil {
		return engine.Restoration{}, err
	}
	done, err := sqlite.RestoreElsewhere(ctx, p, func(file, from string) error {
		if _, err := Copy(ctx, engine.CopyParams{
			From: "sqlite:" + file, To: url, Snapshot: true, Now: p.Now}); err != nil {
			return err
		}
		return postgres.NoteRestored(ctx, url, from, p.Now)
	})
	done.Database, done.Empty = place, true
	return done, err
}

// emptyTarget returns the place of a Postgres database that a restore may fill; empty: it has no
// schema yet. It changes nothing.
func emptyTarget(ctx context.Context, url string) (place string, err error) {
	status, err := postgres.Status(ctx, url)
	switch {
	case err != nil:
		return "", err
	case status.Standing != "", status.Refusal != "" && !status.Absent:
		return "", &engine.Error{Kind: engine.KindPrecondition, Message: status.Refusal + elsewhere}
	case status.Applied == 0:
		return "", nil
	}
	target, err := openPostgresEnd(ctx, url)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	tables, err := target.Tables(ctx)
	if err != nil {
		return "", err
	}
	rows, runs := int64(0), int64(0)
	for _, t := range tables {
		n, err := target.Count(ctx, t.Name)
		if err != nil {
			return "", err
		}
		if rows += n; t.Name == "runs" {
			runs = n
		}
	}
	if rows > 0 {
		return "", &engine.Error{Kind: engine.KindPrecondition, Message: fmt.Sprintf(
			"%s holds %d runs (%d rows in all), and a restore onto Postgres fills an absent or empty schema only, also with --force%s",
			target.Place(), runs, rows, elsewhere)}
	}
	return target.Place(), nil
}

// elsewhere is what to do about a schema that a restore cannot fill.
const elsewhere = "; name another with ?schema=NAME in the URL of --db, or create another database; nothing is dropped"

// Receive makes a backup in a new file from what fill writes.
func Receive(ctx context.Context, file string, fill func(io.Writer) error) (engine.Backup, error) {
	return sqlite.ReceiveBackup(ctx, file, fill)
}

// Verify reads a whole backup and returns the contradictions in it; a damaged one is an error.
func Verify(ctx context.Context, file string) (engine.Backup, []engine.Finding, error) {
	return sqlite.VerifyBackup(ctx, file)
}
