package sqlite3

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// Conn is one connection to a database. One goroutine uses it at a time, so it has no SQLite mutex;
// only interrupt may be called concurrently. It calls the C library that modernc.org/sqlite
// translates directly: the copying, boxing and locking of database/sql and its driver would double
// the cost of a small statement.
//
// Statements are identified by the variable that holds their text. They are prepared on first use
// and kept.
type Conn struct {
	tls      *libc.TLS
	db       uintptr
	prepared map[*string]*statement

	mu     sync.Mutex // guards closed against interrupt
	closed bool
}

// DSN returns the URI of the database file with the pragmas of a connection, in order. Further URI
// parameters may be appended.
func DSN(path string, pragmas ...string) string {
	q := url.Values{"pragma": pragmas}
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // a drive letter
	}
	return "file://" + (&url.URL{Path: slashed}).EscapedPath() + "?" + q.Encode()
}

// Open opens the file that a dsn names. It creates a missing file, unless the parameters of the dsn
// forbid it.
func Open(dsn string) (*Conn, error) {
	c, err := openConn(dsn)
	if err != nil {
		return nil, err
	}
	if err := c.configure(dsn); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func openConn(uri string) (*Conn, error) {
	if err := register(); err != nil {
		return nil, err
	}
	c := &Conn{tls: libc.NewTLS(), prepared: map[*string]*statement{}}
	name, err := libc.CString(uri)
	if err != nil {
		c.tls.Close()
		return nil, err
	}
	defer libc.Xfree(c.tls, name)
	vfs, err := libc.CString(checkedVFS)
	if err != nil {
		c.tls.Close()
		return nil, err
	}
	defer libc.Xfree(c.tls, vfs)
	place := c.tls.Alloc(8)
	flags := int32(
		lib.SQLITE_OPEN_READWRITE | lib.SQLITE_OPEN_CREATE | lib.SQLITE_OPEN_NOMUTEX | lib.SQLITE_OPEN_URI |
			lib.SQLITE_OPEN_EXRESCODE)
	code := lib.Xsqlite3_open_v2(c.tls, name, place, flags, vfs)
	c.db = *(*uintptr)(memory(place))
	c.tls.Free(8)
	if err := c.check(code); err != nil {
		c.Close() // SQLite may return a connection with an error
		return nil, err
	}
	return c, nil
}

// configure applies the settings of every connection and the pragmas of a dsn, which SQLite itself
// ignores in a URI.
func (c *Conn) configure(dsn string) error {
	named, err := url.Parse(dsn)
	if err != nil {
		return err
	}
	// Plan a statement once, not again for each value that a partial index might suit.
	if err := c.enable(lib.SQLITE_DBCONFIG_ENABLE_QPSG); err != nil {
		return err
	}
	// Reserve room for checksums in the pages of a new file, and of one made by vacuum.
	if _, err := c.control(lib.SQLITE_FCNTL_RESERVE_BYTES, checksumBytes); err != nil {
		return err
	}
	for _, setting := range named.Query()["pragma"] {
		if err := c.runScript("pragma " + setting); err != nil {
			return err
		}
	}
	return nil
}

// Close finalizes all statements and closes the connection. It may be called twice.
func (c *Conn) Close() error {
	for _, s := range c.prepared {
		lib.Xsqlite3_finalize(c.tls, s.stmt)
		libc.Xfree(c.tls, s.buffer)
	}
	clear(c.prepared)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	err := c.check(lib.Xsqlite3_close_v2(c.tls, c.db))
	c.tls.Close()
	return err
}

// memory returns a pointer to an address of the library's heap, which Go neither moves nor frees.
func memory(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

// check returns the error of a result code; nil for success.
func (c *Conn) check(code int32) error {
	switch code {
	case lib.SQLITE_OK, lib.SQLITE_ROW, lib.SQLITE_DONE:
		return nil
	}
	text := libc.GoString(lib.Xsqlite3_errstr(c.tls, code))
	if c.db != 0 && lib.Xsqlite3_extended_errcode(c.tls, c.db) == code {
		if more := libc.GoString(lib.Xsqlite3_errmsg(c.tls, c.db)); more != text {
			text += ": " + more
		}
		if page, err := c.control(controlBroken, 0); code&0xff == lib.SQLITE_CORRUPT && err == nil && page != 0 {
			text += ": " + brokenText(page)
		}
	}
	return &Error{Code: int(code), Text: text}
}

// brokenText describes what is damaged in a database.
func brokenText(page int32) string {
	if uint32(page) == foreignLog {
		return "the log beside it belongs to another file, which this one has replaced"
	}
	return fmt.Sprintf("page %d does not match its checksum", page)
}

// interrupt ends the running statement. Any goroutine may call it, at any time.
func (c *Conn) interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		tls := libc.NewTLS() // c.tls belongs to the goroutine that runs the statement
		lib.Xsqlite3_interrupt(tls, c.db)
		tls.Close()
	}
}

// interruptWhen interrupts as soon as ctx ends, until over is called. over waits for an interrupt
// that has begun: if it came later, it would end the next statement of the connection, which may be
// another caller's.
func (c *Conn) interruptWhen(ctx context.Context) (over func()) {
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		c.interrupt()
	})
	return func() {
		if !stop() {
			<-interrupted
		}
	}
}
