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

// A file from an older version, whose pages have no room for checksums, is rewritten: into a file
// beside it, which is read back and then replaces it in one step. A server does this at its start
// for a file of up to maxRenewedAtStart bytes, which takes some seconds. It serves a larger one as
// it is, and logs that. `kagzi db migrate` and `kagzi db restore` rewrite a file of any size.

const renewSlack = 64 << 20 // bytes that must stay free on the disk

// Renew writes the database at path, of size bytes and used by nobody else, into a file beside it,
// with checksums, and reads that back. It leaves the database's log empty.
func Renew(ctx context.Context, c *sqlite3.Conn, path string, size int64) (next string, err error) {
	if free, err := dbfile.FreeBytes(filepath.Dir(path)); err == nil && free < uint64(size)+renewSlack {
		return "", fmt.Errorf("it needs %s of free disk space, and only %s are free", dbfile.BytesText(size+renewSlack),
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
	if err := remove(); err != nil { // left by a process that died
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

// checkpointAll empties the log.
func checkpointAll(ctx context.Context, c *sqlite3.Conn) error {
	busy, err := c.CheckpointAll(ctx)
	if err == nil && busy {
		err = ErrOthersHave
	}
	return err
}

// SameAs reads a file that was made from the database. It refuses the file unless it is complete,
// has checksums, and has the same schema.
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
		err = fmt.Errorf("the new file differs from the database: schema %d, want %d; checksums: %t",
			of.Schema, number, checked)
	}
	return err
}

// TakePlace replaces the database by the file next. The database's log is empty and this process
// has closed it.
func TakePlace(next, path string) error {
	if log, err := dbfile.StatIfExists(path + "-wal"); err != nil || log != nil && log.Size() > 0 {
		return errors.Join(errors.New("another process writes to the database; end it first"), err)
	}
	for _, suffix := range []string{"-wal", "-shm"} { // they belong to the old file, which others may still read
		if err := os.Remove(path + suffix); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	if err := dbfile.Rename(next, path); err != nil {
		return err
	}
	return dbfile.SyncDirectory(filepath.Dir(path))
}

// refuseOthers refuses to replace a database that another program has open, if the system does not
// allow that.
func refuseOthers(path string) error {
	others, err := dbfile.OpenElsewhere(path)
	if err == nil && others {
		err = ErrOthersHave
	}
	return err
}

// Accept accepts the database at path as it is, for example after a repair with another program,
// which leaves pages without checksums. It rewrites the database and keeps the old file under the
// name that it returns. No server may be using it. It refuses a database that SQLite finds damaged,
// or whose rows contradict each other; then it returns the contradictions.
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

// acceptable returns a file made from a database without checking checksums, unless other problems
// are found.
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
