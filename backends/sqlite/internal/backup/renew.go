package backup

import (
	"context"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"

	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// A file whose pages have no room for checksums, as older versions made them, is written anew:
// beside its place, read back, and put there in one step. A server does that when it starts on a
// file of up to maxRenewedAtStart bytes, which takes some seconds; on a larger one it says so and
// serves it as it is. `kagzi db migrate` and `kagzi db restore` do it whatever the size.

const renewSlack = 64 << 20 // bytes to be left free on the disk

// Renew writes the database at path, which nobody else has and which is of so many bytes, into a
// file beside it, with checksums, and reads that back. Nothing is left in the log of the database.
func Renew(ctx context.Context, c *sqlite3.Conn, path string, size int64) (next string, err error) {
	if free, err := dbfile.FreeBytes(filepath.Dir(path)); err == nil && free < uint64(size)+renewSlack {
		return "", fmt.Errorf("it takes %s of room on its disk, and %s are free", dbfile.BytesText(size+renewSlack),
			dbfile.BytesText(int64(free)))
	}
	next = path + dbfile.Renewing
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
	if err := dbfile.CreatePrivately(next); err != nil {
		return "", err
	}
	if err := checkpointAll(ctx, c); err != nil {
		return "", err
	}
	into := "vacuum into '" + strings.ReplaceAll(sqlite3.DSN(next)+sqlite3.ChecksumsParam+"=1", "'", "''") + "'"
	if _, err := c.Exec(ctx, &into); err != nil {
		return "", err
	}
	dbfile.GiveToOwnerOf(next, path)
	if err := syncPath(next); err != nil {
		return "", err
	}
	return next, SameAs(ctx, c, next)
}

var ErrOthersHave = &engine.Error{Kind: engine.KindPrecondition,
	Message: "another process has the database open; end it first"}

// checkpointAll leaves nothing in the log.
func checkpointAll(ctx context.Context, c *sqlite3.Conn) error {
	busy, err := c.CheckpointAll(ctx)
	if err == nil && busy {
		err = ErrOthersHave
	}
	return err
}

// SameAs reads a file that was made of the database, and refuses it unless it is whole, with
// checksums, and of the same schema.
func SameAs(ctx context.Context, c *sqlite3.Conn, next string) error {
	number, err := dbfile.SchemaNumber(ctx, c)
	if err != nil {
		return err
	}
	made, err := dbfile.OpenReadOnly(next, nil)
	if err != nil {
		return err
	}
	defer made.Close()
	var of engine.Backup
	if err := inspectRows(ctx, made.Conn, &of); err != nil {
		return err
	}
	checked, err := made.HasChecksums()
	if err == nil && (!checked || of.Schema != number) {
		err = fmt.Errorf("the file that was made is not what it was made of: schema %d, want %d; checksums: %t",
			of.Schema, number, checked)
	}
	return err
}

// TakePlace puts the file next in the place of the database, whose log is empty and which this
// process has closed.
func TakePlace(next, path string) error {
	if log, err := dbfile.StatIfExists(path + "-wal"); err != nil || log != nil && log.Size() > 0 {
		return errors.Join(errors.New("another process writes to the database; end it first"), err)
	}
	for _, suffix := range []string{"-wal", "-shm"} { // they belong to the file, which others may look at still
		if err := os.Remove(path + suffix); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	if err := dbfile.Rename(next, path); err != nil {
		return err
	}
	return dbfile.SyncDirectory(filepath.Dir(path))
}

// refuseOthers refuses to take away a database that another program has open, where that is an
// obstacle.
func refuseOthers(path string) error {
	others, err := dbfile.OpenElsewhere(path)
	if err == nil && others {
		err = ErrOthersHave
	}
	return err
}

// Accept takes what stands in the database at path for right, as after a repair with another
// program, which leaves pages without a checksum: it writes the database anew and keeps the file
// that was there, under the name that it returns. No server may have it. What SQLite itself finds
// damaged is refused, and so is what contradicts itself, with what was found.
func Accept(ctx context.Context, path string, check CheckRows) (kept string, findings []engine.Finding, err error) {
	if path, err = dbfile.Locate(path); err != nil {
		return "", nil, err
	}
	lock, err := dbfile.Acquire(path)
	if err != nil {
		return "", nil, err
	}
	defer lock.Release()
	if err := dbfile.RefuseLoneLog(path); err != nil {
		return "", nil, err
	}
	if err := refuseOthers(path); err != nil {
		return "", nil, err
	}
	c, err := sqlite3.Open(sqlite3.DSN(path, "busy_timeout(5000)", "foreign_keys(1)", "mmap_size(0)",
		"synchronous(full)") + "&" + sqlite3.UncheckedParam + "=1")
	if err != nil {
		return "", nil, dbfile.OpenError(path, err)
	}
	next, findings, err := acceptable(ctx, c, path, check)
	if closing := c.Close(); err == nil {
		err = closing
	}
	if err != nil || len(findings) > 0 {
		return "", findings, err
	}
	if err := refuseOthers(path); err != nil {
		return "", nil, err
	}
	kept = path + ".before-accept-" + Stamp(time.Now())
	if err := keepAs(path, kept); err != nil {
		return "", nil, err
	}
	return kept, nil, TakePlace(next, path)
}

// acceptable is the file that is made of a database without reading checksums, unless there is
// something else to be found.
func acceptable(ctx context.Context, c *sqlite3.Conn, path string, check CheckRows) (next string,
	findings []engine.Finding, err error) {
	var of engine.Backup
	if err := inspectRows(ctx, c, &of); err != nil {
		return "", nil, err
	}
	newest, err := dbfile.NewestSchema()
	if err != nil {
		return "", nil, err
	}
	if of.Schema == newest {
		if findings, err = check(ctx, c); err != nil || len(findings) > 0 {
			return "", findings, err
		}
	}
	size, _, err := c.Size(ctx)
	if err == nil {
		next, err = Renew(ctx, c, path, size)
	}
	return next, nil, err
}
