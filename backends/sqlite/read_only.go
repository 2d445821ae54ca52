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

// currentReader returns c if it shows the present file, or a new connection to a file that still
// has this program's schema.
func (s *Store) currentReader(ctx context.Context, c *dbfile.Reader) (*dbfile.Reader, error) {
	seen, err := dbfile.OpenReadOnly(s.path, c)
	if err != nil || seen == c {
		return seen, err
	}
	number, err := dbfile.SchemaNumber(ctx, seen.Conn)
	if err == nil && number != s.schema {
		err = &engine.Error{Kind: engine.KindPrecondition,
			Message: "another kagzi has changed the schema of the database meanwhile; open it again"}
	}
	if err != nil && !seen.Current(s.path) {
		err = nil // the next read finds the problem
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
		return fmt.Errorf("%s is not a SQLite database", s.path)
	case sqlite3.Code(err) == sqlite3.CodeCantOpen:
		return fmt.Errorf("open the database %s: no permission to read it or a file beside it (%w)", s.path, err)
	case err != nil:
		return fmt.Errorf("open the database %s: %w", s.path, err)
	}
	s.readers <- c
	for range readerCount - 1 {
		s.readers <- nil
	}
	return nil
}

// firstReader returns a connection to a database with this program's schema.
func (s *Store) firstReader(ctx context.Context) (*dbfile.Reader, error) {
	doubt := error(dbfile.ErrMoving)
	for range maxAttempts {
		c, err := dbfile.OpenReadOnly(s.path, nil)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err != nil { // a server that starts or stops may have removed a file a moment ago
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

// requireSchema refuses a file that is not a database with this program's schema.
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
// listens. Notifications do not leave their process, and SQLite has none. A check reads shared
// memory and file metadata; it writes nothing.
const watchInterval = 200 * time.Millisecond

// changeWatch is a connection that notices changes by others; SQLite counts them per connection.
type changeWatch struct {
	path    string
	conn    *dbfile.Reader
	version int64
}

// listenReadOnly sends NotifyAll at once and whenever the file has changed, because it cannot tell
// what changed.
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

// changed says whether the file has changed since the last call. A file that cannot be read is
// checked again by the next call.
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
