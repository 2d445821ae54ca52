package sqlite3

import (
	"fmt"
	"strings"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// statement is a prepared statement. SQLite searches for a named parameter on every lookup, so the
// text gets plain question marks, and order maps them to arguments.
type statement struct {
	conn   *Conn
	stmt   uintptr
	names  []string // in the order of the text
	given  []string // the names of the arguments that order was made for
	order  []int    // the argument for each name
	buffer uintptr  // memory for texts and blobs while the statement runs
	size   int      // of buffer
	row    Row
}

func (c *Conn) Prepare(text *string) (*statement, error) {
	if s := c.prepared[text]; s != nil {
		return s, nil
	}
	plain, names := Positional(*text)
	copied, err := libc.CString(plain)
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(c.tls, copied)
	stmt, _, err := c.compile(copied)
	if err != nil {
		return nil, err
	}
	s := &statement{conn: c, stmt: stmt, names: names, order: make([]int, len(names))}
	s.row = Row{tls: c.tls, stmt: stmt, columns: int(lib.Xsqlite3_column_count(c.tls, stmt))}
	c.prepared[text] = s
	return s, nil
}

// Positional replaces every @name by a question mark and returns the names in their order. Comments
// are dropped; text in quotes is left alone.
func Positional(text string) (string, []string) {
	var plain strings.Builder
	var names []string
	for i := 0; i < len(text); {
		switch {
		case text[i] == '\'':
			end := i + 1 + strings.IndexByte(text[i+1:], '\'') + 1
			plain.WriteString(text[i:end])
			i = end
		case strings.HasPrefix(text[i:], "--"):
			line, _, _ := strings.Cut(text[i:], "\n")
			i += len(line)
		case text[i] == '@':
			end := i + 1
			for end < len(text) && (text[end] == '_' || 'a' <= text[end] && text[end] <= 'z' || '0' <= text[end] &&
				text[end] <= '9') {
				end++
			}
			names = append(names, text[i+1:end])
			plain.WriteByte('?')
			i = end
		default:
			plain.WriteByte(text[i])
			i++
		}
	}
	return plain.String(), names
}

const (
	bufferAtFirst = 512
	bufferKept    = 64 << 10 // a larger buffer is freed after each use
)

// bind binds the arguments. A missing or an unknown argument is an error.
func (s *statement) bind(args []Arg) error {
	same := len(args) == len(s.given)
	for i := 0; same && i < len(args); i++ {
		same = args[i].Name == s.given[i]
	}
	if !same {
		if err := s.arrange(args); err != nil {
			return err
		}
	}
	size := 0
	for _, i := range s.order {
		size += len(args[i].bytes)
	}
	if err := s.grow(size); err != nil {
		return err
	}
	tls, at := s.conn.tls, s.buffer
	for place, i := range s.order {
		a, n := &args[i], int32(place+1)
		var code int32
		switch a.kind {
		case isNull:
			code = lib.Xsqlite3_bind_null(tls, s.stmt, n)
		case isNumber:
			code = lib.Xsqlite3_bind_int64(tls, s.stmt, n, a.number)
		case isReal:
			code = lib.Xsqlite3_bind_double(tls, s.stmt, n, a.real)
		default:
			copy(unsafe.Slice((*byte)(memory(at)), len(a.bytes)), a.bytes)
			if a.kind == isText {
				code = lib.Xsqlite3_bind_text(tls, s.stmt, n, at, int32(len(a.bytes)), lib.SQLITE_STATIC)
			} else {
				code = lib.Xsqlite3_bind_blob(tls, s.stmt, n, at, int32(len(a.bytes)), lib.SQLITE_STATIC)
			}
			at += uintptr(len(a.bytes))
		}
		if code != lib.SQLITE_OK {
			return s.conn.check(code)
		}
	}
	return nil
}

// grow makes the statement's buffer large enough for texts and blobs of that many bytes. The buffer
// is outside Go's heap, so nothing moves it.
func (s *statement) grow(size int) error {
	if size <= s.size && s.buffer != 0 {
		return nil
	}
	size = max(size+size/2, bufferAtFirst)
	libc.Xfree(s.conn.tls, s.buffer)
	s.size = size
	if s.buffer = libc.Xmalloc(s.conn.tls, uint64(size)); s.buffer == 0 {
		s.size = 0
		return &Error{Code: lib.SQLITE_NOMEM, Text: "out of memory"}
	}
	return nil
}

// reset makes the statement ready for its next use. Small arguments stay bound, which does no harm.
func (s *statement) reset() {
	lib.Xsqlite3_reset(s.conn.tls, s.stmt) // returns the error of the step before
	if s.size > bufferKept {
		lib.Xsqlite3_clear_bindings(s.conn.tls, s.stmt)
		libc.Xfree(s.conn.tls, s.buffer)
		s.buffer, s.size = 0, 0
	}
}

func (s *statement) arrange(args []Arg) error {
	at := make(map[string]int, len(args))
	given := make([]string, len(args))
	for i, a := range args {
		at[a.Name], given[i] = i, a.Name
	}
	used := make(map[string]bool, len(args))
	for place, name := range s.names {
		i, ok := at[name]
		if !ok {
			return fmt.Errorf("statement lacks its argument %s", name)
		}
		s.order[place], used[name] = i, true
	}
	for name := range at {
		if !used[name] {
			return fmt.Errorf("statement knows no argument %s", name)
		}
	}
	s.given = given
	return nil
}
