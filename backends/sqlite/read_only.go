package sqlite

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"
	"github.com/kagzi/kagzi/engine"
)

// currentReader returns c, if it shows the file as it is now, or a new connection to a file that
// still has this program's schema.
func (s *Store) currentReader(ctx context.Context, c *dbfile.Reader) (*dbfile.Reader, error) {
	seen, err := dbfile.OpenReadOnly(s.path, c)
	if err != nil || seen == c {
		return seen, err
	}
	number, err := dbfile.SchemaNumber(ctx, seen.Conn)
	if err == nil && number != s.schema {
		err = &engine.Error{Kind: engine.KindPrecondition,
			Message: "another kagzi has changed the schema of the database; open it again"}
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

// readOnly reports whether the store was opened read-only.
func (s *Store) readOnly() bool { return s.writer == nil }

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
	c, err := s.firstReader(ctx)
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

// firstReader returns a connection to a database of this program's schema.
func (s *Store) firstReader(ctx context.Context) (*dbfile.Reader, error) {
	doubt := error(dbfile.ErrMoving)
	for range maxAttempts {
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
		return fmt.Errorf(
			"the database has schema %d and this program needs schema %d: start `kagzi server` on it once, or run `kagzi db migrate`",
			s.schema, newest)
	}
	return nil
}

// watchInterval is how often a read-only store checks whether the file has changed, while somebody
// listens. Notifications do not leave their process, and SQLite has none. The check reads shared
// memory and the metadata of files; it writes nothing.
const watchInterval = 200 * time.Millisecond

// changeWatch is a connection that notices changes by others: SQLite counts them for each
// connection separately.
type changeWatch struct {
	path    string
	conn    *dbfile.Reader
	version int64
}

// listenReadOnly sends NotifyAll at once and then whenever the file has changed: nobody tells what
// was changed in it.
func (s *Store) listenReadOnly(ctx context.Context, notify func(engine.Notification)) error {
	g := &changeWatch{path: s.path}
	defer g.close()
	again := time.NewTicker(watchInterval)
	defer again.Stop()
	for {
		if g.changed(ctx) {
			notify(engine.Notification{Kind: engine.NotifyAll})
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.closed:
			return dbfile.ErrClosed
		case <-again.C:
		}
	}
}

// changed says that the file is not as it was when this was asked last. A file that cannot be read
// now is asked about again.
func (g *changeWatch) changed(ctx context.Context) bool {
	before := g.conn
	var err error
	if g.conn, err = dbfile.OpenReadOnly(g.path, g.conn); err != nil {
		g.conn = nil
		return false
	}
	version, err := g.conn.DataVersion(ctx)
	if err != nil {
		g.close()
		return false
	}
	changed := g.conn != before || version != g.version
	g.version = version
	return changed
}

func (g *changeWatch) close() {
	if g.conn != nil {
		g.conn.Close()
		g.conn = nil
	}
}
