package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"
	"github.com/kagzi/kagzi/engine"
)

// look is c, if it shows the file as it is now, or a new connection to what is still of this program's schema.
func (s *Store) look(ctx context.Context, c *dbfile.Reader) (*dbfile.Reader, error) {
	seen, err := dbfile.OpenReadOnly(s.path, c)
	if err != nil || seen == c {
		return seen, err
	}
	number, err := dbfile.SchemaNumber(ctx, seen.Conn)
	if err == nil && number != s.schema {
		err = &engine.Error{Kind: engine.KindPrecondition, Message: "another kagzi has changed the schema of the database meanwhile; open it anew"}
	}
	if err != nil && !seen.Current(s.path) {
		err = nil // there is more to it: who reads next finds out
	}
	if err != nil {
		seen.Close()
		return nil, err
	}
	return seen, nil
}

// looking says that the store was opened for looking only.
func (s *Store) looking() bool { return s.writer == nil }

func (s *Store) openReadOnly(ctx context.Context, path string) (err error) {
	if s.path, err = filepath.Abs(path); err == nil {
		s.path, err = dbfile.Resolve(s.path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no database %s", s.path)
	}
	if err != nil {
		return fmt.Errorf("database %s: %w", s.path, err)
	}
	c, err := s.lookFirst(ctx)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no database %s", s.path)
	case sqlite3.Code(err) == sqlite3.CodeNotADB:
		return fmt.Errorf("%s is no SQLite database", s.path)
	case sqlite3.Code(err) == sqlite3.CodeCantOpen:
		return fmt.Errorf("open the database %s: you may not read it, or a file beside it (%w)", s.path, err)
	case err != nil:
		return fmt.Errorf("open the database %s: %w", s.path, err)
	}
	s.readers <- c
	for range readerCount - 1 {
		s.readers <- nil
	}
	return nil
}

// lookFirst is a connection to a database of this program's schema.
func (s *Store) lookFirst(ctx context.Context) (*dbfile.Reader, error) {
	doubt := error(dbfile.ErrMoving)
	for range maxLooks {
		c, err := dbfile.OpenReadOnly(s.path, nil)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err != nil { // a server that comes or goes may have taken away what was there a moment ago
			doubt = err
			continue
		}
		if err = s.requireSchema(ctx, c); err == nil && c.SharesFile() {
			err = dbfile.RefuseNetwork(s.path)
		}
		if err == nil {
			return c, nil
		}
		still := c.Current(s.path)
		c.Close()
		if still {
			return nil, err
		}
		doubt = dbfile.ErrMoving
	}
	return nil, doubt
}

// requireSchema refuses what is no database of this program's schema.
func (s *Store) requireSchema(ctx context.Context, c *dbfile.Reader) (err error) {
	if s.version, err = soundVersion(ctx, c.Conn); err != nil {
		return err
	}
	newest, err := dbfile.NewestSchema()
	if err != nil {
		return err
	}
	s.schema, err = dbfile.SchemaNumber(ctx, c.Conn)
	switch {
	case err != nil:
		return err
	case s.schema > newest:
		return dbfile.NewerSchemaError(s.schema, newest)
	case s.schema < newest:
		return fmt.Errorf("the database has schema %d and this program needs schema %d: start `kagzi server` on it once, or run `kagzi db migrate`",
			s.schema, newest)
	}
	return nil
}
