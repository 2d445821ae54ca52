package sqlite

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/migrations"
)

// applicationID marks a file as ours: "Kagz".
const applicationID = 0x4b61677a

//go:embed sql/schema_state.sql
var schemaStateSQL string

// schemaNumber is the newest migration that was applied, kept where SQLite has a place for it.
func schemaNumber(ctx context.Context, c *conn) (int, error) {
	var application, number, tables int64
	err := c.query(ctx, &schemaStateSQL, func(r *row) error {
		application, number, tables = r.num(), r.num(), r.num()
		return nil
	})
	if err != nil {
		return 0, err
	}
	if application != applicationID && tables > 0 {
		return 0, errors.New("this SQLite database belongs to another program")
	}
	return int(number), nil
}

// newestSchema is the number of the newest migration.
func newestSchema() (int, error) {
	list, err := migrations.List("sqlite")
	return len(list), err
}

// migrate applies what is missing, in one transaction, and returns the schema's number. A file that holds rows is copied before.
func migrate(ctx context.Context, c *conn, path string, o engine.OpenOptions) (int, error) {
	list, err := migrations.List("sqlite")
	if err != nil {
		return 0, err
	}
	number, err := schemaNumber(ctx, c)
	switch {
	case err != nil:
		return 0, err
	case number > len(list):
		return 0, newerSchema(number, len(list))
	case number == len(list):
		return number, nil
	case o.KeepSchema:
		return 0, fmt.Errorf("the database has schema %d and this program needs schema %d: run `kagzi db migrate`", number, len(list))
	}
	if number > 0 {
		size, err := c.size(ctx)
		if err != nil {
			return 0, err
		}
		o.Log.Info("bringing the schema up to date after a copy of the database, which may write all of it anew",
			"schema", number, "newest", len(list), "size", bytesText(size))
		if err := backupBefore(ctx, c, path, list[number:]); err != nil {
			return 0, err
		}
	}
	return len(list), apply(ctx, c, list[number:])
}

// apply carries out all of these migrations or none.
func apply(ctx context.Context, c *conn, list []migrations.Migration) error {
	if err := c.script(ctx, "begin immediate"); err != nil {
		return err
	}
	for _, m := range list {
		script := fmt.Sprintf("%s\n;pragma application_id = %d;\npragma user_version = %d", m.SQL, applicationID, m.Number)
		if err := c.script(ctx, script); err != nil {
			c.script(ctx, "rollback") // fails when SQLite did it by itself
			return fmt.Errorf("migration %s: %w; the database is as it was", m.Name, err)
		}
	}
	if err := c.script(ctx, "commit"); err != nil {
		c.script(ctx, "rollback")
		return err
	}
	return nil
}

func newerSchema(number, newest int) error {
	return &engine.Error{Kind: engine.KindPrecondition,
		Message: fmt.Sprintf("the database has schema %d and this program knows schemas up to %d: a newer kagzi has used it; run that one", number, newest)}
}

// Migrate brings the database up to date, with checksums on its pages. No server may be at work on it.
func Migrate(ctx context.Context, path string) error {
	s, err := openUpTo(ctx, path, engine.OpenOptions{Log: slog.New(slog.DiscardHandler)}, anySize)
	if err != nil {
		return err
	}
	return s.Close()
}

// Status compares the database with the migrations that this program has. A server may be at work on it. A file that is
// not there is an empty database, and stays away.
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
		return engine.SchemaStatus{}, fmt.Errorf("open the database %s: %w", path, errNoFile)
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

// readStatus is what the file says of itself.
func readStatus(ctx context.Context, path string, status *engine.SchemaStatus) error {
	path, err := resolve(path)
	if err != nil {
		return err
	}
	c, err := connectReader(path)
	if err != nil {
		return fmt.Errorf("open the database %s: %w", path, err)
	}
	defer c.close()
	if status.Applied, err = schemaNumber(ctx, c); err != nil {
		return err
	}
	return refusing(ctx, c, status.Refuse)
}
