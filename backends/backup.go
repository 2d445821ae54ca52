package backends

import (
	"context"
	"io"
	"time"

	"github.com/kagzi/kagzi/backends/postgres"
	"github.com/kagzi/kagzi/backends/sqlite"
	"github.com/kagzi/kagzi/engine"
)

// Backup makes a backup of the database in a file that is not there. Servers may be at work on it.
func Backup(ctx context.Context, url, file string) (engine.Backup, error) {
	path, err := parse(url)
	if err != nil {
		return engine.Backup{}, err
	}
	if path != "" {
		return sqlite.Backup(ctx, path, file)
	}
	return sqlite.PlaceBackup(ctx, file, func(part string) (time.Time, error) {
		now := time.Now()
		_, err := Snapshot(ctx, url, part, now, nil)
		return now, err
	})
}

// Holder is what the server says of itself that has the database to itself; empty: none has, or several may share it.
func Holder(url string) (string, error) {
	path, err := parse(url)
	if err != nil || path == "" {
		return "", err
	}
	return sqlite.Holder(path)
}

// Restore fills the database with a backup. No server may be at work on it; one on Postgres must be empty.
func Restore(ctx context.Context, p engine.RestoreParams) (engine.Restoration, error) {
	path, err := parse(p.URL)
	if err != nil {
		return engine.Restoration{}, err
	}
	if path != "" {
		return sqlite.Restore(ctx, path, p)
	}
	return sqlite.RestoreElsewhere(ctx, p, func(file, from string) error {
		if _, err := Copy(ctx, engine.CopyParams{From: "sqlite:" + file, To: p.URL, Snapshot: true, Now: p.Now}); err != nil {
			return err
		}
		return postgres.NoteRestored(ctx, p.URL, from, p.Now)
	})
}

// Receive makes a backup in a file that is not there of what fill writes.
func Receive(ctx context.Context, file string, fill func(io.Writer) error) (engine.Backup, error) {
	return sqlite.ReceiveBackup(ctx, file, fill)
}

// Verify reads all of a backup, with the contradictions in it; a damaged one is an error.
func Verify(ctx context.Context, file string) (engine.Backup, []engine.Finding, error) {
	return sqlite.VerifyBackup(ctx, file)
}
