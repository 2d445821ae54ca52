package sqlite

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// A file whose pages have no room for checksums, as older versions made them, is written anew: beside its place, read back, and put there in
// one step. A server does that when it starts on a file of up to maxRenewedAtStart bytes, which takes some seconds; on a larger one it says so
// and serves it as it is. `kagzi db migrate` and `kagzi db restore` do it whatever the size.

const (
	maxRenewedAtStart = 256 << 20
	anySize           = 1 << 62
	renewSlack        = 64 << 20 // room to be left on the disk
)

// withChecksums is c, or a new connection to the file that has taken the place of one without checksums. Where that cannot be had the file
// stays as it is, which is an error only when it is to be of any size.
func (s *Store) withChecksums(ctx context.Context, c *conn, largest int64) (*conn, error) {
	checked, err := c.checked()
	if s.checked = checked; checked || err != nil {
		return c, err
	}
	size, err := c.size(ctx)
	if err != nil {
		return c, err
	}
	if size > largest {
		s.log.Warn("the database has no checksums, so damage to it may go unnoticed; `kagzi db migrate` adds them while no server is at work", "size", bytesText(size))
		return c, nil
	}
	s.log.Info("adding checksums to the database, which writes it anew", "size", bytesText(size))
	next, err := renew(ctx, c, s.path, size)
	if failure := fatal(err, true); err != nil && largest != anySize && failure == nil && ctx.Err() == nil {
		s.log.Warn("the database keeps being without checksums, so damage to it may go unnoticed", "error", err)
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("add checksums to the database: %w", err)
	}
	if err := c.close(); err != nil {
		return c, err
	}
	err = takePlace(next, s.path)
	if inUse(err) && largest != anySize {
		s.log.Warn("the database keeps being without checksums, so damage to it may go unnoticed; another program has it open", "error", err)
		err = os.Remove(next)
	}
	if err != nil {
		return c, err
	}
	if c, err = connectWriter(s.path, s.log); err != nil {
		return c, err
	}
	s.checked, err = c.checked()
	return c, err
}

// size is that of the database, in bytes.
func (c *conn) size(ctx context.Context) (size int64, err error) {
	err = c.query(ctx, &databaseSizeSQL, func(r *row) error {
		size = r.num()
		return nil
	})
	return size, err
}

// renew writes the database at path, which nobody else has and which is of so many bytes, into a file beside it, with checksums, and reads that
// back. Nothing is left in the log of the database.
func renew(ctx context.Context, c *conn, path string, size int64) (next string, err error) {
	if free, err := freeBytes(filepath.Dir(path)); err == nil && free < uint64(size)+renewSlack {
		return "", fmt.Errorf("it takes %s of room on its disk, and %s are free", bytesText(size+renewSlack), bytesText(int64(free)))
	}
	next = path + renewing
	remove := func() error {
		for _, suffix := range []string{"", "-journal", "-wal", "-shm"} {
			if err := os.Remove(next + suffix); err != nil && !os.IsNotExist(err) {
				return err
			}
		}
		return nil
	}
	if err := remove(); err != nil { // what a process that died has left
		return "", err
	}
	defer func() {
		if err != nil {
			remove()
		}
	}()
	if err := createPrivately(next); err != nil {
		return "", err
	}
	if err := c.fold(ctx); err != nil {
		return "", err
	}
	into := "vacuum into '" + strings.ReplaceAll(dsn(next)+roomParam+"=1", "'", "''") + "'"
	if _, err := c.exec(ctx, &into); err != nil {
		return "", err
	}
	giveTo(next, path)
	if err := syncPath(next); err != nil {
		return "", err
	}
	return next, c.sameAs(ctx, next)
}

var errOthersHave = &engine.Error{Kind: engine.KindPrecondition, Message: "another process has the database open; end it first"}

// fold leaves nothing in the log.
func (c *conn) fold(ctx context.Context) error {
	return c.query(ctx, &checkpointTruncateSQL, func(r *row) error {
		if r.num() != 0 {
			return errOthersHave
		}
		return nil
	})
}

// sameAs reads a file that was made of the database, and refuses it unless it is whole, with checksums, and of the same schema.
func (c *conn) sameAs(ctx context.Context, next string) error {
	number, err := schemaNumber(ctx, c)
	if err != nil {
		return err
	}
	made, err := look(next, nil)
	if err != nil {
		return err
	}
	defer made.close()
	var of engine.Backup
	if err := made.inspect(ctx, &of); err != nil {
		return err
	}
	checked, err := made.checked()
	if err == nil && (!checked || of.Schema != number) {
		err = fmt.Errorf("the file that was made is not what it was made of: schema %d, want %d; checksums: %t", of.Schema, number, checked)
	}
	return err
}

// takePlace puts the file next in the place of the database, whose log is empty and which this process has closed.
func takePlace(next, path string) error {
	if log, err := beside(path + "-wal"); err != nil || log != nil && log.Size() > 0 {
		return errors.Join(errors.New("another process writes to the database; end it first"), err)
	}
	for _, suffix := range []string{"-wal", "-shm"} { // they belong to the file, which others may look at still
		if err := os.Remove(path + suffix); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	if err := move(next, path); err != nil {
		return err
	}
	return syncDirectory(filepath.Dir(path))
}

// refuseOthers refuses to take away a database that another program has open, where that is an obstacle.
func refuseOthers(path string) error {
	others, err := othersHave(path)
	if err == nil && others {
		err = errOthersHave
	}
	return err
}

// Accept takes what stands in the database at path for right, as after a repair with another program, which leaves pages without a checksum: it
// writes the database anew and keeps the file that was there, under the name that it returns. No server may have it. What SQLite itself finds
// damaged is refused, and so is what contradicts itself, with what was found.
func Accept(ctx context.Context, path string) (kept string, findings []engine.Finding, err error) {
	if path, err = existing(path); err != nil {
		return "", nil, err
	}
	lock, err := acquire(path)
	if err != nil {
		return "", nil, err
	}
	defer lock.release()
	if err := refuseLoneLog(path); err != nil {
		return "", nil, err
	}
	if err := refuseOthers(path); err != nil {
		return "", nil, err
	}
	c, err := connect(dsn(path, "busy_timeout(5000)", "foreign_keys(1)", "mmap_size(0)", "synchronous(full)") + "&" + uncheckedParam + "=1")
	if err != nil {
		return "", nil, refusedToOpen(path, err)
	}
	next, findings, err := acceptable(ctx, c, path)
	if closing := c.close(); err == nil {
		err = closing
	}
	if err != nil || len(findings) > 0 {
		return "", findings, err
	}
	if err := refuseOthers(path); err != nil {
		return "", nil, err
	}
	kept = path + ".before-accept-" + stamp(time.Now())
	if err := keepAs(path, kept); err != nil {
		return "", nil, err
	}
	return kept, nil, takePlace(next, path)
}

// acceptable is the file that is made of a database without looking at checksums, unless there is something else to be found.
func acceptable(ctx context.Context, c *conn, path string) (next string, findings []engine.Finding, err error) {
	var of engine.Backup
	if err := c.inspect(ctx, &of); err != nil {
		return "", nil, err
	}
	newest, err := newestSchema()
	if err != nil {
		return "", nil, err
	}
	if of.Schema == newest {
		if findings, err = check(ctx, c); err != nil || len(findings) > 0 {
			return "", findings, err
		}
	}
	size, err := c.size(ctx)
	if err == nil {
		next, err = renew(ctx, c, path, size)
	}
	return next, nil, err
}
