package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/kagzi/kagzi/engine"
)

// A store that was opened for looking only leaves no trace in the directory of the file, takes no lock that a server minds, and shows what a server
// writes meanwhile. A plain read-only connection does not do that: it makes a log and an index beside the file, and leaves them there. So
// it depends on what lies beside the file how it is looked at.

// way is how a file is looked at.
type way uint8

const (
	// alone: there is no log, so nobody has the file open. SQLite is told that nobody will (immutable), and that is checked at each look.
	alone way = iota
	// shared: log and index are there. A server is at work, which keeps the index; or it was killed, and then SQLite makes an index in memory.
	// It opens the one that is there for reading only. When a server comes or goes it notices by itself.
	shared
	// copied: there is a log without an index, as where a file was copied together with its log. SQLite makes an index in memory for whoever has
	// the file exclusively. It believes that it has where locks are not asked for; that nobody else comes is checked at each look.
	copied
)

// sight is what there was when a connection was made. Its zero value is that of a connection that does not only look.
type sight struct {
	file fs.FileInfo
	log  fs.FileInfo // nil: none, or an empty one
	way  way
}

var errNoFile = errors.New("it is no file")

// sightOf looks at names and sizes only: to open and close the file would drop locks that a server in this process has on it.
func sightOf(path string) (s sight, err error) {
	if s.file, err = seen(path); err != nil {
		return s, err
	}
	if !s.file.Mode().IsRegular() {
		return s, errNoFile
	}
	s.log, err = beside(path + "-wal")
	if err != nil {
		return s, err
	}
	index, err := beside(path + "-shm")
	switch {
	case err != nil:
		return s, err
	case s.log != nil && index != nil:
		s.way = shared
	case s.log != nil && s.log.Size() > 0:
		s.way = copied
	default:
		s.log = nil
	}
	return s, nil
}

// beside is a file that may be missing, nil then.
func beside(path string) (fs.FileInfo, error) {
	info, err := seen(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return info, err
}

// still says that a connection made at this sight shows the file at path as it is now.
func (s sight) still(path string) bool {
	now, err := sightOf(path)
	if err != nil || now.way != s.way || !os.SameFile(s.file, now.file) {
		return false
	}
	return s.way == shared || unchanged(s.file, now.file) && (s.log == nil || unchanged(s.log, now.log))
}

func unchanged(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// look is c, if it shows the file as it is now, or a new connection.
func look(path string, c *conn) (*conn, error) {
	if err := refuseLoneLog(path); err != nil {
		return nil, err
	}
	if c != nil {
		if c.sight.still(path) {
			return c, nil
		}
		c.close()
	}
	seen, err := sightOf(path)
	if err != nil {
		return nil, err
	}
	settings := []string{"query_only(1)", "mmap_size(0)", "busy_timeout(5000)"}
	mode := "&mode=ro"
	switch seen.way {
	case alone:
		mode += "&immutable=1"
	case shared:
		mode += "&readonly_shm=1"
	case copied:
		settings = append([]string{"locking_mode(exclusive)"}, settings...)
		mode += "&vfs=" + checkedLocklessVFS
	}
	if c, err = connect(dsn(path, settings...) + mode); err != nil {
		return nil, err
	}
	c.sight = seen
	if seen.way == copied { // or else it would delete, when it is closed, a log in which it finds nothing
		if err := c.keepLog(); err != nil {
			c.close()
			return nil, err
		}
	}
	return c, nil
}

// look is c, if it shows the file as it is now, or a new connection to what is still of this program's schema.
func (s *Store) look(ctx context.Context, c *conn) (*conn, error) {
	seen, err := look(s.path, c)
	if err != nil || seen == c {
		return seen, err
	}
	number, err := schemaNumber(ctx, seen)
	if err == nil && number != s.schema {
		err = &engine.Error{Kind: engine.KindPrecondition, Message: "another kagzi has changed the schema of the database meanwhile; open it anew"}
	}
	if err != nil && !seen.sight.still(s.path) {
		err = nil // there is more to it: who reads next finds out
	}
	if err != nil {
		seen.close()
		return nil, err
	}
	return seen, nil
}

// looking says that the store was opened for looking only.
func (s *Store) looking() bool { return s.writer == nil }

func (s *Store) openLooking(ctx context.Context, path string) (err error) {
	if s.path, err = filepath.Abs(path); err == nil {
		s.path, err = resolve(s.path)
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
	case code(err) == sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%s is no SQLite database", s.path)
	case code(err) == sqlite3.SQLITE_CANTOPEN:
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
func (s *Store) lookFirst(ctx context.Context) (*conn, error) {
	doubt := error(errMoving)
	for range maxLooks {
		c, err := look(s.path, nil)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err != nil { // a server that comes or goes may have taken away what was there a moment ago
			doubt = err
			continue
		}
		if err = s.requireSchema(ctx, c); err == nil && c.sight.way == shared {
			err = refuseNetwork(s.path)
		}
		if err == nil {
			return c, nil
		}
		still := c.sight.still(s.path)
		c.close()
		if still {
			return nil, err
		}
		doubt = errMoving
	}
	return nil, doubt
}

// requireSchema refuses what is no database of this program's schema.
func (s *Store) requireSchema(ctx context.Context, c *conn) (err error) {
	if s.version, err = soundVersion(ctx, c); err != nil {
		return err
	}
	newest, err := newestSchema()
	if err != nil {
		return err
	}
	s.schema, err = schemaNumber(ctx, c)
	switch {
	case err != nil:
		return err
	case s.schema > newest:
		return newerSchema(s.schema, newest)
	case s.schema < newest:
		return fmt.Errorf("the database has schema %d and this program needs schema %d: start `kagzi server` on it once, or run `kagzi db migrate`",
			s.schema, newest)
	}
	return nil
}
