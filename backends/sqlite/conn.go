package sqlite

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"

	"github.com/kagzi/kagzi/engine"
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
		defer context.AfterFunc(ctx, c.interrupt)()
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

// row is read column by column, from left to right. NULL reads as zero.
type row struct {
	tls     *libc.TLS
	stmt    uintptr
	columns int
	next    int
}

// column is the place of the next one.
func (r *row) column() int32 {
	r.next++
	return int32(r.next - 1)
}

// view is the bytes of the next column, in SQLite's memory.
func (r *row) view() []byte {
	i := r.column()
	if data := lib.Xsqlite3_column_blob(r.tls, r.stmt, i); data != 0 {
		return unsafe.Slice((*byte)(memory(data)), lib.Xsqlite3_column_bytes(r.tls, r.stmt, i))
	}
	return nil
}

// take is the next column as SQLite has it: nil, int64, float64, string or []byte.
func (r *row) take() any {
	switch lib.Xsqlite3_column_type(r.tls, r.stmt, int32(r.next)) {
	case lib.SQLITE_INTEGER:
		return r.num()
	case lib.SQLITE_FLOAT:
		return lib.Xsqlite3_column_double(r.tls, r.stmt, r.column())
	case lib.SQLITE_TEXT:
		return r.text()
	case lib.SQLITE_BLOB:
		return append([]byte{}, r.view()...)
	}
	r.next++
	return nil
}

func (r *row) num() int64 { return lib.Xsqlite3_column_int64(r.tls, r.stmt, r.column()) }

func (r *row) flag() bool { return r.num() != 0 }

func (r *row) text() string { return string(r.view()) }

// bytes is nil for what is empty.
func (r *row) bytes() []byte { return append([]byte(nil), r.view()...) }

func (r *row) id() (id engine.ID) {
	copy(id[:], r.view())
	return id
}

func (r *row) token() (t engine.Token) {
	copy(t[:], r.view())
	return t
}

func (r *row) time() time.Time {
	if lib.Xsqlite3_column_type(r.tls, r.stmt, int32(r.next)) == lib.SQLITE_NULL {
		r.next++
		return time.Time{}
	}
	return time.UnixMicro(r.num()).UTC()
}

func (r *row) length() time.Duration { return time.Duration(r.num()) * time.Microsecond }

// arg is an argument of a statement, by name. The bytes are only looked at.
type arg struct {
	name   string
	kind   argKind
	number int64
	real   float64
	bytes  []byte
}

type argKind uint8

const (
	isNull argKind = iota
	isNumber
	isReal
	isText
	isBlob
)

// The arguments of statements, by name.

func num[N ~int | ~int64 | ~uint8](name string, n N) arg {
	return arg{name: name, kind: isNumber, number: int64(n)}
}

func flag(name string, b bool) arg {
	if b {
		return num(name, 1)
	}
	return num(name, 0)
}

func text(name, s string) arg {
	return arg{name: name, kind: isText, bytes: unsafe.Slice(unsafe.StringData(s), len(s))}
}

// blob is NULL when there is nothing.
func blob(name string, b []byte) arg {
	if len(b) == 0 {
		return arg{name: name}
	}
	return arg{name: name, kind: isBlob, bytes: b}
}

// anyArg is a value as row.take gives it.
func anyArg(name string, value any) arg {
	switch v := value.(type) {
	case nil:
		return arg{name: name}
	case int64:
		return num(name, v)
	case float64:
		return arg{name: name, kind: isReal, real: v}
	case string:
		return text(name, v)
	case []byte:
		return arg{name: name, kind: isBlob, bytes: v}
	}
	panic(fmt.Sprintf("sqlite: no column holds a %T", value))
}

func idArg(name string, id engine.ID) arg {
	if id.IsZero() {
		return arg{name: name}
	}
	return blob(name, id[:])
}

func tokenArg(name string, t engine.Token) arg {
	if t.IsZero() {
		return arg{name: name}
	}
	return blob(name, t[:])
}

// instant is microseconds since 1970, NULL for an unset time.
func instant(name string, t time.Time) arg {
	if t.IsZero() {
		return arg{name: name}
	}
	return num(name, t.UnixMicro())
}

func length(name string, d time.Duration) arg { return num(name, d.Microseconds()) }
