package sqlite

import (
	"context"
	"net/url"
	"path/filepath"
	"strings"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// conn is one connection to the database, used by one goroutine at a time. Statements are named by the variable that holds their
// text, prepared on first use and kept.
type conn struct {
	*handle
	prepared map[*string]*statement
	sight    sight // of one that only looks
}

// dsn names the database file with the settings of a connection, in their order.
func dsn(path string, pragmas ...string) string {
	q := url.Values{"pragma": pragmas}
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // a drive letter
	}
	return "file://" + (&url.URL{Path: slashed}).EscapedPath() + "?" + q.Encode()
}

// connect opens what a dsn names. SQLite passes over what it does not know in a URI, which the settings are in.
func connect(dsn string) (*conn, error) {
	h, err := openHandle(dsn)
	if err != nil {
		return nil, err
	}
	named, err := url.Parse(dsn)
	if err != nil {
		h.close()
		return nil, err
	}
	if err := h.keepFree(checksumBytes); err != nil {
		h.close()
		return nil, err
	}
	for _, setting := range named.Query()["pragma"] {
		if err := h.script("pragma " + setting); err != nil {
			h.close()
			return nil, err
		}
	}
	return &conn{handle: h, prepared: map[*string]*statement{}}, nil
}

func (c *conn) close() error {
	for _, s := range c.prepared {
		lib.Xsqlite3_finalize(c.tls, s.stmt)
		libc.Xfree(c.tls, s.room)
	}
	clear(c.prepared)
	return c.handle.close()
}

// script runs a text of several statements.
func (c *conn) script(ctx context.Context, text string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.handle.script(text)
}

// exec runs a statement and returns how many rows it changed.
func (c *conn) exec(ctx context.Context, text *string, args ...arg) (int64, error) {
	err := c.query(ctx, text, nil, args...)
	if err != nil {
		return 0, err
	}
	return lib.Xsqlite3_changes64(c.tls, c.db), nil
}

// query runs a statement and has each called for every row; nil passes them over. A row is valid during that call only; each may use other
// statements of the connection, but not the same one.
func (c *conn) query(ctx context.Context, text *string, each func(*row) error, args ...arg) error {
	s, err := c.prepare(text)
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
