package sqlite3

import (
	"fmt"
	"time"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// Row is read column by column, from left to right. NULL is read as zero.
type Row struct {
	tls     *libc.TLS
	stmt    uintptr
	columns int
	next    int
}

// Columns returns how many columns the row has.
func (r *Row) Columns() int { return r.columns }

// column returns the index of the next column.
func (r *Row) column() int32 {
	r.next++
	return int32(r.next - 1)
}

// View returns the next column's bytes in SQLite's memory. They are valid as long as the row is.
func (r *Row) View() []byte {
	i := r.column()
	if data := lib.Xsqlite3_column_blob(r.tls, r.stmt, i); data != 0 {
		return unsafe.Slice((*byte)(memory(data)), lib.Xsqlite3_column_bytes(r.tls, r.stmt, i))
	}
	return nil
}

// Value returns the next column in SQLite's type: nil, int64, float64, string or []byte.
func (r *Row) Value() any {
	switch lib.Xsqlite3_column_type(r.tls, r.stmt, int32(r.next)) {
	case lib.SQLITE_INTEGER:
		return r.Int()
	case lib.SQLITE_FLOAT:
		return lib.Xsqlite3_column_double(r.tls, r.stmt, r.column())
	case lib.SQLITE_TEXT:
		return r.Text()
	case lib.SQLITE_BLOB:
		return append([]byte{}, r.View()...)
	}
	r.next++
	return nil
}

func (r *Row) Int() int64 { return lib.Xsqlite3_column_int64(r.tls, r.stmt, r.column()) }

func (r *Row) Bool() bool { return r.Int() != 0 }

func (r *Row) Text() string { return string(r.View()) }

// Bytes returns a copy of the next column; nil if it is empty.
func (r *Row) Bytes() []byte { return append([]byte(nil), r.View()...) }

// Time reads microseconds since 1970; NULL is the zero time.
func (r *Row) Time() time.Time {
	if lib.Xsqlite3_column_type(r.tls, r.stmt, int32(r.next)) == lib.SQLITE_NULL {
		r.next++
		return time.Time{}
	}
	return time.UnixMicro(r.Int()).UTC()
}

// Arg is a named argument of a statement. Its bytes are read while the statement runs and not
// changed.
type Arg struct {
	Name   string // of the parameter, without the @
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

// Null makes a NULL argument.
func Null(name string) Arg { return Arg{Name: name} }

// Int makes an integer argument.
func Int(name string, n int64) Arg { return Arg{Name: name, kind: isNumber, number: n} }

// Bool makes an argument 1 or 0.
func Bool(name string, b bool) Arg {
	if b {
		return Int(name, 1)
	}
	return Int(name, 0)
}

// Text makes a text argument.
func Text(name, s string) Arg {
	return Arg{Name: name, kind: isText, bytes: unsafe.Slice(unsafe.StringData(s), len(s))}
}

// Blob makes a blob argument, NULL if b is empty.
func Blob(name string, b []byte) Arg {
	if len(b) == 0 {
		return Arg{Name: name}
	}
	return Arg{Name: name, kind: isBlob, bytes: b}
}

// Time makes an argument in microseconds since 1970, NULL for the zero time.
func Time(name string, t time.Time) Arg {
	if t.IsZero() {
		return Arg{Name: name}
	}
	return Int(name, t.UnixMicro())
}

// Value makes an argument from a value as returned by Row.Value.
func Value(name string, value any) Arg {
	switch v := value.(type) {
	case nil:
		return Null(name)
	case int64:
		return Int(name, v)
	case float64:
		return Arg{Name: name, kind: isReal, real: v}
	case string:
		return Text(name, v)
	case []byte:
		return Arg{Name: name, kind: isBlob, bytes: v}
	}
	panic(fmt.Sprintf("sqlite3: no column holds a %T", value))
}
