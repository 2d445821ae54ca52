package sqlite

import (
	"time"

	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"
	"github.com/kagzi/kagzi/engine"
)

// row reads columns as values of the engine, from left to right. NULL reads as zero.
type row sqlite3.Row

func (r *row) num() int64 { return (*sqlite3.Row)(r).Int() }

func (r *row) flag() bool { return (*sqlite3.Row)(r).Bool() }

func (r *row) text() string { return (*sqlite3.Row)(r).Text() }

// bytes is nil for what is empty.
func (r *row) bytes() []byte { return (*sqlite3.Row)(r).Bytes() }

func (r *row) id() (id engine.ID) {
	copy(id[:], (*sqlite3.Row)(r).View())
	return id
}

func (r *row) token() (t engine.Token) {
	copy(t[:], (*sqlite3.Row)(r).View())
	return t
}

func (r *row) time() time.Time { return (*sqlite3.Row)(r).Time() }

func (r *row) length() time.Duration { return time.Duration(r.num()) * time.Microsecond }

// eachRow makes a callback of the driver's out of one that reads the engine's values.
func eachRow(each func(*row) error) func(*sqlite3.Row) error {
	if each == nil {
		return nil
	}
	return func(r *sqlite3.Row) error { return each((*row)(r)) }
}

// arg is an argument of a statement, by name.
type arg = sqlite3.Arg

func num[N ~int | ~int64 | ~uint8](name string, n N) arg { return sqlite3.Int(name, int64(n)) }

func flag(name string, b bool) arg { return sqlite3.Bool(name, b) }

func text(name, s string) arg { return sqlite3.Text(name, s) }

// blob is NULL when b is empty.
func blob(name string, b []byte) arg { return sqlite3.Blob(name, b) }

func idArg(name string, id engine.ID) arg {
	if id.IsZero() {
		return sqlite3.Null(name)
	}
	return blob(name, id[:])
}

func tokenArg(name string, t engine.Token) arg {
	if t.IsZero() {
		return sqlite3.Null(name)
	}
	return blob(name, t[:])
}

// instant is microseconds since 1970, NULL for an unset time.
func instant(name string, t time.Time) arg { return sqlite3.Time(name, t) }

func length(name string, d time.Duration) arg { return num(name, d.Microseconds()) }
