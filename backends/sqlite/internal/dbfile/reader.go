package dbfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"
)

// Read-only access leaves no files beside the database, takes no lock that disturbs a server, and
// shows what a server writes meanwhile. A plain read-only connection would create a log and an
// index beside the file and leave them there. So the way to open the file depends on the files
// beside it.

// MaxLogBytes is the size to which the log is truncated after a checkpoint.
const MaxLogBytes = 64 << 20

// mode is how a file is opened read-only.
type mode uint8

const (
	// immutable: there is no log, so no process has the file open. SQLite is told that none will
	// open it; every read checks that.
	immutable mode = iota
	// shared: log and index exist. Either a server runs, which maintains the index; or it was
	// killed, and SQLite builds an index in memory. The index on disk is opened read-only. SQLite
	// notices by itself when a server comes or goes.
	shared
	// exclusive: there is a log without an index, as when a file was copied together with its log.
	// SQLite builds an index in memory, as a process with exclusive access. It takes no locks;
	// every read checks that no other process has come.
	exclusive
)

// layout records the files at the path, and beside it, when a connection was opened.
type layout struct {
	file fs.FileInfo
	log  fs.FileInfo // nil: none, or an empty one
	mode mode
}

var ErrNoFile = errors.New("it is not a file")

// layoutOf uses names and sizes only, because opening and closing the file would drop the locks of
// a server in this process.
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

// StatIfExists returns information about a file; nil if it does not exist.
func StatIfExists(path string) (fs.FileInfo, error) {
	info, err := seen(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return info, err
}

// stillAt reports whether a connection that was opened with this layout shows the present file at
// path.
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
	layout layout // zero for a reader in the writer's process
}

// Current reports whether a read-only connection shows the present file at path.
func (r *Reader) Current(path string) bool { return r.layout.stillAt(path) }

// SharesFile reports whether a read-only connection shares the file with a server by locks.
func (r *Reader) SharesFile() bool { return r.layout.mode == shared }

// OpenReadOnly returns c if it shows the present file at path, otherwise a new connection. c may be
// nil. It is closed if it is not returned.
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
	if found.mode == exclusive { // otherwise closing it would delete a log that it finds empty
		if err := opened.KeepLog(); err != nil {
			opened.Close()
			return nil, err
		}
	}
	return &Reader{Conn: opened, layout: found}, nil
}

// OpenReader opens a connection that cannot write, in addition to the writer of this process or of
// a server.
func OpenReader(path string) (*Reader, error) {
	path, err := filepath.Abs(path) // a DSN has no relative paths
	if err != nil {
		return nil, err
	}
	if err := RefuseLoneLog(path); err != nil {
		return nil, err
	}
	const noNew = "&mode=rw" // never create a new file if the file was removed
	c, err := sqlite3.Open(sqlite3.DSN(path, "busy_timeout(5000)", "foreign_keys(1)", "mmap_size(0)",
		"synchronous(full)", "query_only(1)") + noNew)
	if err != nil {
		return nil, err
	}
	return &Reader{Conn: c}, nil
}
