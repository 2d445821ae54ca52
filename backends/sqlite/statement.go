package sqlite

import (
	"fmt"
	"strings"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// statement is a prepared text. SQLite looks each named parameter up anew when it is asked for one, so the text reaches it with plain
// question marks; order says which argument belongs to which of them.
type statement struct {
	conn  *conn
	stmt  uintptr
	names []string // by place in the text
	given []string // the names of the arguments, as order was worked out for
	order []int    // argument by place
	room  uintptr  // where texts and blobs stand while it is carried out
	size  int      // of room
	row   row
}

func (c *conn) prepare(text *string) (*statement, error) {
	if s := c.prepared[text]; s != nil {
		return s, nil
	}
	plain, names := positional(*text)
	copied, err := libc.CString(plain)
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(c.tls, copied)
	stmt, _, err := c.handle.prepare(copied)
	if err != nil {
		return nil, err
	}
	s := &statement{conn: c, stmt: stmt, names: names, order: make([]int, len(names))}
	s.row = row{tls: c.tls, stmt: stmt, columns: int(lib.Xsqlite3_column_count(c.tls, stmt))}
	c.prepared[text] = s
	return s, nil
}

// positional replaces every @name by a question mark and returns the names in their places. Comments are dropped; text in
// quotes is left alone.
func positional(text string) (string, []string) {
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
			for end < len(text) && (text[end] == '_' || 'a' <= text[end] && text[end] <= 'z' || '0' <= text[end] && text[end] <= '9') {
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
	roomAtFirst = 512
	roomKept    = 64 << 10 // what a statement needed more of is given back
)

// bind puts the arguments in their places. It refuses a missing and a superfluous one alike.
func (s *statement) bind(args []arg) error {
	same := len(args) == len(s.given)
	for i := 0; same && i < len(args); i++ {
		same = args[i].name == s.given[i]
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
	if err := s.makeRoom(size); err != nil {
		return err
	}
	tls, at := s.conn.tls, s.room
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

// makeRoom sees to it that texts and blobs of so many bytes can stand in the statement's own memory, which is outside of what Go may move.
func (s *statement) makeRoom(size int) error {
	if size <= s.size && s.room != 0 {
		return nil
	}
	size = max(size+size/2, roomAtFirst)
	libc.Xfree(s.conn.tls, s.room)
	s.size = size
	if s.room = libc.Xmalloc(s.conn.tls, uint64(size)); s.room == 0 {
		s.size = 0
		return &libError{lib.SQLITE_NOMEM, "out of memory"}
	}
	return nil
}

// reset makes the statement ready for the next time. What it was given is left in its places, where it does no harm, unless it was large.
func (s *statement) reset() {
	lib.Xsqlite3_reset(s.conn.tls, s.stmt) // whose error is that of the step before
	if s.size > roomKept {
		lib.Xsqlite3_clear_bindings(s.conn.tls, s.stmt)
		libc.Xfree(s.conn.tls, s.room)
		s.room, s.size = 0, 0
	}
}

func (s *statement) arrange(args []arg) error {
	at := make(map[string]int, len(args))
	given := make([]string, len(args))
	for i, a := range args {
		at[a.name], given[i] = i, a.name
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
