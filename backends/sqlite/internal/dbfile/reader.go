package dbfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"
)

// Read-only access leaves no trace in the directory of the file, takes no lock that disturbs a
// server, and shows what a server writes meanwhile. A plain read-only connection does not do that:
// it creates a log and an index beside the file, and leaves them there. So the way to open the file
// depends on what lies beside it.

// MaxLogBytes is up to which size the write-ahead log stays when it has been checkpointed.
const MaxLogBytes = 64 << 20

// mode is how a file is opened read-only.
type mode uint8

const (
	// immutable: there is no log, so no process has the file open. SQLite is told that none will,
	// and every read checks that.
	immutable mode = iota
	// shared: log and index are there. A server runs, which maintains the index; or it was killed,
	// and then SQLite builds an index in memory. It opens the one on disk for reading only. SQLite
	// notices by itself when a server comes or goes.
	shared
	// exclusive: there is a log without an index, as when a file was copied together with its log.
	// SQLite builds an index in memory for a process that has the file exclusively. Without locks
	// it believes that it has; every read checks that nobody else has come.
	exclusive
)

// layout is what lay at the path, and beside it, when a connection was opened.
type layout struct {
	file fs.FileInfo
	log  fs.FileInfo // nil: none, or an empty one
	mode mode
}

var ErrNoFile = errors.New("it is no file")

// layoutOf looks at names and sizes only: to open and close the file would drop locks that a server
// in this process has on it.
func layoutOf(path string) (s layout, err error) {
	if s.file, err = seen(path); err != nil {
		return s, err
	}
	if !s.file.Mode().IsRegular() {
		return s, ErrNoFile
	}
	s.log, err = StatIfExists(path + "-wal")
	if err != nil {
		return s, err
	}
	index, err := StatIfExists(path + "-shm")
	switch {
	case err != nil:
		return s, err
	case s.log != nil && index != nil:
		s.mode = shared
	case s.log != nil && s.log.Size() > 0:
		s.mode = exclusive
	default:
		s.log = nil
	}
	return s, nil
}

// StatIfExists returns information about a file that may be missing; nil then.
func StatIfExists(path string) (fs.FileInfo, error) {
	info, err := seen(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return info, err
}

// stillAt reports whether a connection that was opened with this layout shows the file at path as
// it is now.
func (s layout) stillAt(path string) bool {
	now, err := layoutOf(path)
	if err != nil || now.mode != s.mode || !os.SameFile(s.file, now.file) {
		return false
	}
	return s.mode == shared || unchanged(s.file, now.file) && (s.log == nil || unchanged(s.log, now.log))
}

func unchanged(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// Reader is a connection that cannot write.
type Reader struct {
	*sqlite3.Conn
	layout layout // zero for a reader beside the writer of the same process
}

// Current reports whether a read-only connection shows the file at path as it is now.
func (r *Reader) Current(path string) bool { return r.layout.stillAt(path) }

// SharesFile reports whether a read-only connection shares the file with a server by locks.
func (r *Reader) SharesFile() bool { return r.layout.mode == shared }

// OpenReadOnly returns c, if it shows the file at path as it is now, or a new connection. c may be
// nil; otherwise it is closed if it is not returned.
func OpenReadOnly(path string, c *Reader) (*Reader, error) { return openReadOnly(path, c, "") }

// openReadOnly is OpenReadOnly with more parameters.
func openReadOnly(path string, c *Reader, more string) (*Reader, error) {
	if err := RefuseLoneLog(path); err != nil {
		return nil, err
	}
	if c != nil {
		if c.layout.stillAt(path) {
			return c, nil
		}
		c.Close()
	}
	found, err := layoutOf(path)
	if err != nil {
		return nil, err
	}
	settings := []string{"query_only(1)", "mmap_size(0)", "busy_timeout(5000)"}
	parameters := "&mode=ro" + more
	switch found.mode {
	case immutable:
		parameters += "&immutable=1"
	case shared:
		parameters += "&readonly_shm=1"
	case exclusive:
		settings = append([]string{"locking_mode(exclusive)"}, settings...)
		parameters += "&vfs=" + sqlite3.LocklessVFS
	}
	opened, err := sqlite3.Open(sqlite3.DSN(path, settings...) + parameters)
	if err != nil {
		return nil, err
	}
	if found.mode == exclusive { // otherwise closing it would delete a log in which it finds nothing
		if err := opened.KeepLog(); err != nil {
			opened.Close()
			return nil, err
		}
	}
	return &Reader{Conn: opened, layout: found}, nil
}

// OpenReader opens a connection that cannot write, beside the writer of this process or of a
// server.
func OpenReader(path string) (*Reader, error) {
	path, err := filepath.Abs(path) // a DSN has no relative paths
	if err != nil {
		return nil, err
	}
	if err := RefuseLoneLog(path); err != nil {
		return nil, err
	}
	const noNew = "&mode=rw" // if the file has been taken away, a new one must not be created in its place
	c, err := sqlite3.Open(sqlite3.DSN(path, "busy_timeout(5000)", "foreign_keys(1)", "mmap_size(0)",
		"synchronous(full)", "query_only(1)") + noNew)
	if err != nil {
		return nil, err
	}
	return &Reader{Conn: c}, nil
}
