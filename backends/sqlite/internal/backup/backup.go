package backup

import (
	"context"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"

	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// A backup copies the pages of one snapshot of the file. The writer goes on meanwhile; only its log
// cannot restart before the copy is done. A backup is not in WAL mode, so reading it makes no files
// beside it.

const (
	// backupPages is the number of pages copied before the caller's context is checked again.
	backupPages = 256
	// maxRest limits the pause after each of these parts, so that a slow disk does not make a
	// backup endless.
	maxRest = 20 * time.Millisecond
	// maxAttempts limits how often to open a file that others open and close meanwhile.
	maxAttempts = 10
	// backupSlack is the space that must stay free on a disk that gets a backup.
	backupSlack = 64 << 20
)

// Database copies the database at path, which a server may be using, into a new file. It leaves
// nothing beside the database.
func Database(ctx context.Context, path, file string) (engine.Backup, error) {
	path, err := dbfile.Locate(path)
	if err != nil {
		return engine.Backup{}, err
	}
	return DatabaseAt(ctx, path, file)
}

func DatabaseAt(ctx context.Context, path, file string) (engine.Backup, error) {
	for range maxAttempts {
		b, moved, err := backupOnce(ctx, path, file)
		if !moved {
			return b, TranslateError(err)
		}
	}
	return engine.Backup{}, dbfile.ErrMoving
}

// errMoved means that the file may have changed during the copy, so that the copy is in doubt.
var errMoved = errors.New("the database was changed during the copy")

func backupOnce(ctx context.Context, path, file string) (b engine.Backup, moved bool, err error) {
	c, err := dbfile.OpenReadOnly(path, nil)
	if err != nil {
		return b, false, fmt.Errorf("open the database %s: %w", path, err)
	}
	defer c.Close()
	if number, err := dbfile.SchemaNumber(ctx, c.Conn); err != nil || number == 0 {
		if err == nil {
			err = fmt.Errorf("%s has no schema; nothing to back up", path)
		}
		return b, false, err
	}
	b, err = Place(ctx, file, func(part string) (time.Time, error) {
		at := engine.Micros(time.Now())
		err := CopyTo(ctx, c.Conn, part)
		if !c.Current(path) {
			err = errMoved
		}
		return at, err
	})
	return b, errors.Is(err, errMoved), err
}

// TranslateError turns an error of a backup into one for the operator, with its cause.
func TranslateError(err error) error {
	switch {
	case err == nil, dbfile.IsRefusal(err):
		return err
	case sqlite3.IsFull(err):
		return errNoRoomForBackup
	case errors.Is(err, fs.ErrExist):
		return &engine.Error{Kind: engine.KindExists, Message: err.Error()}
	}
	if failure := dbfile.AsFatal(err, true); failure != nil && failure.Corrupt {
		return fmt.Errorf("back up: %w", failure)
	}
	return fmt.Errorf("back up: %w", err)
}

var errNoRoomForBackup = &engine.Error{Kind: engine.KindExhausted,
	Message: "not enough free disk space for a backup; choose another directory, or free space"}

// CopyTo fills the empty file part with the present content of the database.
func CopyTo(ctx context.Context, c *sqlite3.Conn, part string) (err error) {
	if err := c.BeginRead(ctx); err != nil {
		return err
	}
	defer c.Rollback(context.WithoutCancel(ctx))
	if err := roomFor(ctx, c, part); err != nil { // this read begins the snapshot
		return err
	}
	// The copy is synced and renamed later, so it needs no journal.
	file, err := os.OpenFile(part, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close() // last, because it drops SQLite's locks on the copy
	to, err := sqlite3.Open(sqlite3.DSN(part, "journal_mode(off)", "synchronous(off)", "locking_mode(exclusive)"))
	if err != nil {
		return err
	}
	defer to.Close()
	pages, err := c.CopyInto(to)
	if err != nil {
		return err
	}
	for more := true; more && err == nil; {
		begun := time.Now()
		if more, err = pages.Step(backupPages); err == nil {
			err = file.Sync() // in parts: one sync at the end would hold up the commits of others
		}
		if err == nil {
			err = breathe(ctx, time.Since(begun))
		}
	}
	if finishing := pages.Finish(); err == nil {
		err = finishing
	}
	return err
}

// breathe pauses for as long as the last part took, so that others get the machine.
func breathe(ctx context.Context, took time.Duration) error {
	rest := time.NewTimer(min(took, maxRest))
	defer rest.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-rest.C:
		return nil
	}
}

// roomFor refuses a copy that would leave too little free space on its disk.
func roomFor(ctx context.Context, c *sqlite3.Conn, part string) error {
	size, _, err := c.Size(ctx)
	if err != nil {
		return err
	}
	if free, err := dbfile.FreeBytes(filepath.Dir(part)); err == nil && free < uint64(size)+backupSlack {
		return errNoRoomForBackup
	}
	return nil
}
