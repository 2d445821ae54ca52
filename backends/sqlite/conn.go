package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"

	"github.com/kagzi/kagzi/engine"
)

// arg is an argument of a statement, by name.
type arg = driver.NamedValue

// conn is one connection to the database, used by one goroutine at a time. It speaks to the driver without database/sql
// in between, whose pooling and conversions cost as much as a small statement does. Statements are named by the variable that
// holds their text, prepared on first use and kept.
type conn struct {
	driver   driver.Conn
	prepared map[*string]*statement
	sight    sight // of one that only looks
}

// dsn names the database file with the settings of a connection, in their order.
func dsn(path string, pragmas ...string) string {
	q := url.Values{"_pragma": pragmas}
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // a drive letter
	}
	return "file://" + (&url.URL{Path: slashed}).EscapedPath() + "?" + q.Encode()
}

func connect(dsn string) (*conn, error) {
	d, err := new(sqlite.Driver).Open(dsn)
	if err != nil {
		return nil, err
	}
	return &conn{driver: d, prepared: map[*string]*statement{}}, nil
}

func (c *conn) close() error {
	for _, s := range c.prepared {
		s.stmt.Close()
	}
	return c.driver.Close()
}

// statement is a prepared text. The driver looks each named parameter up anew in each execution, so its text reaches the
// driver with plain question marks; order says which argument belongs to which of them.
type statement struct {
	stmt   driver.Stmt
	names  []string // by place in the text
	given  []string // the names of the arguments, as order was worked out for
	order  []int    // argument by place
	places []arg
	row    row
}

func (c *conn) prepare(text *string) (*statement, error) {
	if s := c.prepared[text]; s != nil {
		return s, nil
	}
	plain, names := positional(*text)
	stmt, err := c.driver.Prepare(plain)
	if err != nil {
		return nil, err
	}
	s := &statement{stmt: stmt, names: names, places: make([]arg, len(names)), order: make([]int, len(names))}
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

// bind puts the arguments in their places. It refuses a missing and a superfluous one alike.
func (s *statement) bind(args []arg) ([]arg, error) {
	same := len(args) == len(s.given)
	for i := 0; same && i < len(args); i++ {
		same = args[i].Name == s.given[i]
	}
	if !same {
		if err := s.arrange(args); err != nil {
			return nil, err
		}
	}
	for place, i := range s.order {
		s.places[place] = arg{Ordinal: place + 1, Value: args[i].Value}
	}
	return s.places, nil
}

func (s *statement) arrange(args []arg) error {
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

// exec runs a statement and returns how many rows it changed.
func (c *conn) exec(ctx context.Context, text *string, args ...arg) (int64, error) {
	s, err := c.prepare(text)
	if err != nil {
		return 0, err
	}
	places, err := s.bind(args)
	if err != nil {
		return 0, err
	}
	result, err := s.stmt.(driver.StmtExecContext).ExecContext(ctx, places)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// query runs a statement and has each called for every row. A row is valid during that call only; each may use other
// statements of the connection, but not the same one.
func (c *conn) query(ctx context.Context, text *string, each func(*row) error, args ...arg) (err error) {
	s, err := c.prepare(text)
	if err != nil {
		return err
	}
	places, err := s.bind(args)
	if err != nil {
		return err
	}
	rows, err := s.stmt.(driver.StmtQueryContext).QueryContext(ctx, places)
	if err != nil {
		return err
	}
	defer func() {
		if closing := rows.Close(); err == nil {
			err = closing
		}
	}()
	if s.row.values == nil {
		s.row.values = make([]driver.Value, len(rows.Columns()))
	}
	for {
		switch err := rows.Next(s.row.values); err {
		case nil:
		case io.EOF:
			return nil
		default:
			return err
		}
		s.row.next = 0
		if err := each(&s.row); err != nil {
			return err
		}
	}
}

// script runs a text of several statements.
func (c *conn) script(ctx context.Context, text string) error {
	_, err := c.driver.(driver.ExecerContext).ExecContext(ctx, text, nil)
	return err
}

// row is read column by column, from left to right. NULL reads as zero.
type row struct {
	values []driver.Value
	next   int
}

func (r *row) take() driver.Value {
	v := r.values[r.next]
	r.next++
	return v
}

func (r *row) num() int64 {
	n, _ := r.take().(int64)
	return n
}

func (r *row) flag() bool { return r.num() != 0 }

func (r *row) text() string {
	s, _ := r.take().(string)
	return s
}

func (r *row) bytes() []byte {
	b, _ := r.take().([]byte)
	return b
}

func (r *row) id() (id engine.ID) {
	copy(id[:], r.bytes())
	return id
}

func (r *row) token() (t engine.Token) {
	copy(t[:], r.bytes())
	return t
}

func (r *row) time() time.Time {
	us, ok := r.take().(int64)
	if !ok {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

func (r *row) length() time.Duration { return time.Duration(r.num()) * time.Microsecond }

// The arguments of statements, by name.

func num[N ~int | ~int64 | ~uint8](name string, n N) arg {
	return arg{Name: name, Value: int64(n)}
}

func flag(name string, b bool) arg {
	if b {
		return num(name, 1)
	}
	return num(name, 0)
}

func text(name, s string) arg { return arg{Name: name, Value: s} }

// blob is NULL when there is nothing.
func blob(name string, b []byte) arg {
	if len(b) == 0 {
		return arg{Name: name}
	}
	return arg{Name: name, Value: b}
}

func idArg(name string, id engine.ID) arg {
	if id.IsZero() {
		return arg{Name: name}
	}
	return arg{Name: name, Value: id[:]}
}

func tokenArg(name string, t engine.Token) arg {
	if t.IsZero() {
		return arg{Name: name}
	}
	return arg{Name: name, Value: t[:]}
}

// instant is microseconds since 1970, NULL for an unset time.
func instant(name string, t time.Time) arg {
	if t.IsZero() {
		return arg{Name: name}
	}
	return num(name, t.UnixMicro())
}

func length(name string, d time.Duration) arg { return num(name, d.Microseconds()) }
