package sqlite

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"os"

	"github.com/kagzi/kagzi/backends/sqlite/internal/backup"
	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/migrations"
)

// migrate applies the missing migrations in one transaction, and returns the schema's number. A
// file that holds rows is backed up first.
func migrate(ctx context.Context, c *sqlite3.Conn, path string, o engine.OpenOptions) (int, error) {
	list, err := migrations.List("sqlite")
	if err != nil {
		return 0, err
	}
	number, err := dbfile.SchemaNumber(ctx, c)
	switch {
	case err != nil:
		return 0, err
	case number > len(list):
		return 0, dbfile.NewerSchemaError(number, len(list))
	case number == len(list):
		return number, nil
	case o.KeepSchema:
		return 0, fmt.Errorf("the database has schema %d and this program needs schema %d: run `kagzi db migrate`",
			number, len(list))
	}
	if number > 0 {
		size, _, err := c.Size(ctx)
		if err != nil {
			return 0, err
		}
		o.Log.Info("backing up the database, then migrating its schema; this may rewrite the whole file",
			"schema", number, "newest", len(list), "size", dbfile.BytesText(size))
		if err := backup.BeforeMigration(ctx, c, path, list[number:]); err != nil {
			return 0, err
		}
	}
	return len(list), apply(ctx, c, list[number:])
}

// apply carries out all of these migrations or none.
func apply(ctx context.Context, c *sqlite3.Conn, list []migrations.Migration) error {
	if err := c.Script(ctx, "begin immediate"); err != nil {
		return err
	}
	for _, m := range list {
		script := fmt.Sprintf("%s\n;pragma application_id = %d;\npragma user_version = %d", m.SQL,
			dbfile.ApplicationID, m.Number)
		if err := c.Script(ctx, script); err != nil {
			c.Script(ctx, "rollback") // fails if SQLite rolled back by itself
			return fmt.Errorf("migration %s: %w; the database is as it was", m.Name, err)
		}
	}
	if err := c.Script(ctx, "commit"); err != nil {
		c.Script(ctx, "rollback")
		return err
	}
	return nil
}

// Migrate migrates the database and adds checksums to its pages. No server may be using it.
func Migrate(ctx context.Context, path string) error {
	s, err := openUpTo(ctx, path, engine.OpenOptions{Log: slog.New(slog.DiscardHandler)}, anySize)
	if err != nil {
		return err
	}
	return s.Close()
}

// Status compares the database with this program's migrations. A server may be using it. A missing
// file counts as an empty database and is not made.
func Status(ctx context.Context, path string) (engine.SchemaStatus, error) {
	list, err := migrations.List("sqlite")
	if err != nil {
		return engine.SchemaStatus{}, err
	}
	status := engine.SchemaStatus{Newest: len(list)}
	switch info, err := os.Stat(path); {
	case os.IsNotExist(err):
		status.Missing = true
	case err != nil:
		return engine.SchemaStatus{}, err
	case !info.Mode().IsRegular():
		return engine.SchemaStatus{}, fmt.Errorf("open the database %s: %w", path, dbfile.ErrNoFile)
	default:
		if err := readStatus(ctx, path, &status); err != nil {
			return engine.SchemaStatus{}, err
		}
	}
	for _, m := range list[min(status.Applied, len(list)):] {
		status.Pending = append(status.Pending, m.Name)
	}
	return status, nil
}

// readStatus reads the schema and the states of the file.
func readStatus(ctx context.Context, path string, status *engine.SchemaStatus) error {
	path, err := dbfile.Resolve(path)
	if err != nil {
		return err
	}
	c, err := dbfile.OpenReader(path)
	if err != nil {
		return dbfile.OpenError(path, err)
	}
	defer c.Close()
	if status.Applied, err = dbfile.SchemaNumber(ctx, c.Conn); err != nil {
		return err
	}
	return dbfile.Refusing(ctx, c.Conn, status.Refuse)
}

const (
	// maxRenewedAtStart is the size up to which a server adds checksums to a database when it
	// starts, which takes some seconds.
	maxRenewedAtStart = 256 << 20
	anySize           = 1 << 62
)

// withChecksums returns c, or a new connection to the file that replaced one without checksums. If
// that fails, the file stays as it is; this is an error only if files of any size must be
// rewritten.
func (s *Store) withChecksums(ctx context.Context, c *sqlite3.Conn, largest int64) (*sqlite3.Conn, error) {
	checked, err := c.HasChecksums()
	if s.checked = checked; checked || err != nil {
		return c, err
	}
	size, _, err := c.Size(ctx)
	if err != nil {
		return c, err
	}
	if size > largest {
		s.log.Warn(
			"the database has no page checksums, so damage may go unnoticed; stop the server and run `kagzi db migrate` to add them", "size", dbfile.BytesText(size))
		return c, nil
	}
	s.log.Info("adding page checksums to the database; this rewrites the file", "size", dbfile.BytesText(size))
	next, err := backup.Renew(ctx, c, s.path, size)
	if failure := dbfile.AsFatal(err, true); err != nil && largest != anySize && failure == nil && ctx.Err() == nil {
		s.log.Warn("cannot add page checksums to the database; continuing without them", "error", err)
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("add checksums to the database: %w", err)
	}
	if err := c.Close(); err != nil {
		return c, err
	}
	err = backup.TakePlace(next, s.path)
	if dbfile.InUse(err) && largest != anySize {
		s.log.Warn(
			"cannot add page checksums to the database while another program has it open; continuing without them",
			"error", err)
		err = os.Remove(next)
	}
	if err != nil {
		return c, err
	}
	if c, err = connectWriter(s.path, s.log); err != nil {
		return c, err
	}
	s.checked, err = c.HasChecksums()
	return c, err
}
