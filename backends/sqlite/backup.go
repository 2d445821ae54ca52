package sqlite

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// A backup is a copy of the file, page by page, of one snapshot: the writer goes on meanwhile, its log merely cannot begin anew before the
// copy is done. It is not in WAL mode, so that to read it makes no files beside it.

const (
	// backupPages is how many pages are copied before it is asked again whether anybody still wants them.
	backupPages = 256
	// maxRest bounds the pause after each of these parts: a slow disk must not make a backup endless.
	maxRest = 20 * time.Millisecond
	// backupSlack is how much room is to be left on a disk that gets a backup.
	backupSlack = 64 << 20
)

var _ engine.Backups = (*Store)(nil)

// Backup copies the database as it is now, over a connection of its own.
func (s *Store) Backup(ctx context.Context, file string) (engine.Backup, error) {
	select {
	case <-s.closed:
		return engine.Backup{}, errClosed
	default:
	}
	if s.looking() {
		return backupOf(ctx, s.path, file)
	}
	c, err := connectReader(s.path)
	if err != nil {
		return engine.Backup{}, s.failedRead("Backup", err)
	}
	defer c.close()
	b, err := PlaceBackup(ctx, file, func(part string) (time.Time, error) {
		at := s.Now()
		err := c.copyTo(ctx, part)
		if failure := fatal(err, true); failure != nil && failure.Corrupt {
			s.die(failure)
		}
		return at, err
	})
	return b, translateBackup(err)
}

// Backup copies the database at path, which a server may have, into a file that is not there. Nothing is left beside the database.
func Backup(ctx context.Context, path, file string) (engine.Backup, error) {
	path, err := existing(path)
	if err != nil {
		return engine.Backup{}, err
	}
	return backupOf(ctx, path, file)
}

func backupOf(ctx context.Context, path, file string) (engine.Backup, error) {
	for range maxLooks {
		b, moved, err := backupOnce(ctx, path, file)
		if !moved {
			return b, translateBackup(err)
		}
	}
	return engine.Backup{}, errMoving
}

// errMoved is that the file was changed in a way that leaves the copy in doubt.
var errMoved = errors.New("the database was changed behind the copy")

func backupOnce(ctx context.Context, path, file string) (b engine.Backup, moved bool, err error) {
	c, err := look(path, nil)
	if err != nil {
		return b, false, fmt.Errorf("open the database %s: %w", path, err)
	}
	defer c.close()
	if number, err := schemaNumber(ctx, c); err != nil || number == 0 {
		if err == nil {
			err = fmt.Errorf("%s holds no schema: there is nothing to back up", path)
		}
		return b, false, err
	}
	b, err = PlaceBackup(ctx, file, func(part string) (time.Time, error) {
		at := engine.Micros(time.Now())
		err := c.copyTo(ctx, part)
		if !c.sight.still(path) {
			err = errMoved
		}
		return at, err
	})
	return b, errors.Is(err, errMoved), err
}

// existing is where the database at path really is.
func existing(path string) (string, error) {
	absolute, err := filepath.Abs(path)
	if err == nil {
		absolute, err = resolve(absolute)
	}
	if err == nil {
		_, err = beside(absolute)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("there is no database %s", path)
	}
	return absolute, err
}

// translateBackup keeps what went wrong: it is asked for by those who look after the database.
func translateBackup(err error) error {
	switch {
	case err == nil, isRefusal(err):
		return err
	case isFull(err):
		return errNoRoomForBackup
	case errors.Is(err, fs.ErrExist):
		return &engine.Error{Kind: engine.KindExists, Message: err.Error()}
	}
	if failure := fatal(err, true); failure != nil && failure.Corrupt {
		return fmt.Errorf("back up: %w", failure)
	}
	return fmt.Errorf("back up: %w", err)
}

var errNoRoomForBackup = &engine.Error{Kind: engine.KindExhausted, Message: "there is no room for a backup on its disk; choose another directory, or make room"}

// copyTo fills the empty file part with the database as it is now.
func (c *conn) copyTo(ctx context.Context, part string) (err error) {
	if _, err := c.exec(ctx, &beginReadSQL); err != nil {
		return err
	}
	defer c.exec(context.WithoutCancel(ctx), &rollbackSQL)
	if err := c.roomFor(ctx, part); err != nil { // which is the look that begins the snapshot
		return err
	}
	// What is synced and placed afterwards needs no journal.
	file, err := os.OpenFile(part, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close() // last: it drops the locks that SQLite has on the copy
	to, err := connect(dsn(part, "journal_mode(off)", "synchronous(off)", "locking_mode(exclusive)"))
	if err != nil {
		return err
	}
	defer to.close()
	copying, err := c.copyInto(to.handle)
	if err != nil {
		return err
	}
	for more := true; more && err == nil; {
		begun := time.Now()
		if more, err = copying.step(backupPages); err == nil {
			err = file.Sync() // little by little: all at the end would hold up the commits of others
		}
		if err == nil {
			err = breathe(ctx, time.Since(begun))
		}
	}
	if finishing := copying.finish(); err == nil {
		err = finishing
	}
	return err
}

// breathe leaves the machine to others for as long as it was kept from them.
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

// roomFor refuses a copy that would leave others on its disk without room.
func (c *conn) roomFor(ctx context.Context, part string) error {
	size, err := c.size(ctx)
	if err != nil {
		return err
	}
	if free, err := freeBytes(filepath.Dir(part)); err == nil && free < uint64(size)+backupSlack {
		return errNoRoomForBackup
	}
	return nil
}

// Holder is what the process that has the database to itself says of itself; empty: none has.
func Holder(path string) (string, error) {
	path, err := existing(path)
	if err != nil {
		return "", nil // nobody has what is not there
	}
	file, err := os.OpenFile(path+".lock", os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("see who has the database: %w", err)
	}
	defer file.Close()
	free, err := tryLock(file) // for a moment: a server that starts is patient
	if err != nil || free {
		return "", err
	}
	return readHolder(file), nil
}
