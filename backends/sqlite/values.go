package sqlite

import (
	"fmt"
	"time"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"

	"github.com/kagzi/kagzi/engine"
)

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
