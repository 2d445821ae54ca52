package sqlite3

import (
	"context"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// Script runs a text of several statements and ignores their rows.
func (c *Conn) Script(ctx context.Context, text string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.runScript(text)
}

func (c *Conn) runScript(text string) error {
	next, err := libc.CString(text)
	if err != nil {
		return err
	}
	defer libc.Xfree(c.tls, next)
	for {
		stmt, rest, err := c.compile(next)
		if err != nil {
			return err
		}
		if stmt == 0 && *(*byte)(memory(rest)) == 0 {
			return nil
		}
		for code := int32(lib.SQLITE_ROW); stmt != 0 && code == lib.SQLITE_ROW; {
			code = lib.Xsqlite3_step(c.tls, stmt)
			err = c.check(code)
		}
		lib.Xsqlite3_finalize(c.tls, stmt)
		if err != nil {
			return err
		}
		next = rest
	}
}

// compile prepares the first statement of a text that ends with a zero byte, and returns where the
// rest of the text begins. stmt is 0 if the text holds only space and comments.
func (c *Conn) compile(text uintptr) (stmt, rest uintptr, err error) {
	places := c.tls.Alloc(16)
	defer c.tls.Free(16)
	code := lib.Xsqlite3_prepare_v3(c.tls, c.db, text, -1, lib.SQLITE_PREPARE_PERSISTENT, places, places+8)
	return *(*uintptr)(memory(places)), *(*uintptr)(memory(places + 8)), c.check(code)
}

// Exec runs a statement and returns how many rows it changed.
func (c *Conn) Exec(ctx context.Context, text *string, args ...Arg) (int64, error) {
	err := c.Query(ctx, text, nil, args...)
	if err != nil {
		return 0, err
	}
	return lib.Xsqlite3_changes64(c.tls, c.db), nil
}

// Query runs a statement and calls each for every row; nil skips them. A row is valid only during
// that call. each may use other statements of the connection, but not the same one.
func (c *Conn) Query(ctx context.Context, text *string, each func(*Row) error, args ...Arg) error {
	s, err := c.Prepare(text)
	if err != nil {
		return err
	}
	if err := s.bind(args); err != nil {
		return err
	}
	defer s.reset()
	if ctx.Done() != nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		defer c.interruptWhen(ctx)()
	}
	for {
		switch code := lib.Xsqlite3_step(c.tls, s.stmt); code {
		case lib.SQLITE_DONE:
			return nil
		case lib.SQLITE_ROW:
			if each == nil {
				continue
			}
			s.row.next = 0
			if err := each(&s.row); err != nil {
				return err
			}
		case lib.SQLITE_INTERRUPT:
			if err := ctx.Err(); err != nil {
				return err
			}
			return c.check(code)
		default:
			return c.check(code)
		}
	}
}

// TotalChanges returns how many rows the connection has changed since it was opened.
func (c *Conn) TotalChanges() int64 { return lib.Xsqlite3_total_changes64(c.tls, c.db) }

// CacheBytes returns the size of the connection's page cache.
func (c *Conn) CacheBytes() (int64, error) {
	n, err := c.status(lib.SQLITE_DBSTATUS_CACHE_USED, false)
	return int64(n), err
}

// TakePagesWritten returns how many pages the connection has written since this was last called.
func (c *Conn) TakePagesWritten() (int, error) {
	return c.status(lib.SQLITE_DBSTATUS_CACHE_WRITE, true)
}

// PagesRead returns how many pages the connection has read from the file or its log since it was
// opened.
func (c *Conn) PagesRead() (int, error) { return c.status(lib.SQLITE_DBSTATUS_CACHE_MISS, false) }

// status returns one of SQLite's counters of a connection; reset sets it to zero.
func (c *Conn) status(which int32, reset bool) (int, error) {
	places := c.tls.Alloc(8)
	defer c.tls.Free(8)
	code := lib.Xsqlite3_db_status(c.tls, c.db, which, places, places+4, libc.Bool32(reset))
	return int(*(*int32)(memory(places))), c.check(code)
}
