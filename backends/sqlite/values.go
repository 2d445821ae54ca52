package sqlite

import (
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storekit"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"
	"github.com/kagzi/kagzi/engine"
)

// row reads columns as values of the engine, from left to right. NULL is read as zero.
type row sqlite3.Row

func (r *row) num() int64 { return (*sqlite3.Row)(r).Int() }

func (r *row) flag() bool { return (*sqlite3.Row)(r).Bool() }

func (r *row) text() string { return (*sqlite3.Row)(r).Text() }

// bytes returns nil for an empty column.
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

// eachRow makes a callback for the driver from one that reads the engine's values.
func eachRow(each func(*row) error) func(*sqlite3.Row) error {
	if each == nil {
		return nil
	}
	return func(r *sqlite3.Row) error { return each((*row)(r)) }
}

// arg is a named argument of a statement.
type arg = sqlite3.Arg

func num[N ~int | ~int64 | ~uint8](name string, n N) arg { return sqlite3.Int(name, int64(n)) }

func flag(name string, b bool) arg { return sqlite3.Bool(name, b) }

func text(name, s string) arg { return sqlite3.Text(name, s) }

// blob is NULL if b is empty.
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

// instant is in microseconds since 1970, NULL for an unset time.
func instant(name string, t time.Time) arg { return sqlite3.Time(name, t) }

func length(name string, d time.Duration) arg { return num(name, d.Microseconds()) }

// The values below consist of strings, numbers and booleans, which JSON can always encode. NaN and
// infinities, which it cannot, are refused earlier.

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic("sqlite: " + err.Error())
	}
	return string(text)
}

// encodeMap sorts the keys.
func encodeMap[V any](m map[string]V) string {
	if texts, ok := any(m).(map[string]string); ok {
		return storekit.MapText(texts)
	}
	if len(m) == 0 {
		return ""
	}
	return encode(m)
}

func encodeFailure(f *engine.Failure) string {
	if f == nil {
		return ""
	}
	return encode(f)
}

// encodeKeep is the inverse of decodeKeep.
func encodeKeep(keep map[engine.RunStatus]time.Duration) string {
	if len(keep) == 0 {
		return ""
	}
	micros := make(map[engine.RunStatus]int64, len(keep))
	for status, d := range keep {
		micros[status] = d.Microseconds()
	}
	return encode(micros)
}

func encodePolicy(p *engine.RetryPolicy) string {
	if p == nil {
		return ""
	}
	return encode(p)
}

// encodeIDs is encodeHex for ids, for statements about several rows.
func encodeIDs(ids []engine.ID) string {
	list := make([][]byte, len(ids))
	for i := range ids {
		list[i] = ids[i][:]
	}
	return encodeHex(list)
}

// encodeHex returns a JSON list of hexadecimal strings.
func encodeHex(blobs [][]byte) string {
	list := make([]byte, 0, 2+len(blobs)*67)
	list = append(list, '[')
	for i, b := range blobs {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, '"')
		list = hex.AppendEncode(list, b)
		list = append(list, '"')
	}
	return string(append(list, ']'))
}

func encodeList[T any](list []T) string {
	if len(list) == 0 {
		return ""
	}
	return encode(list)
}

func encodeStatuses[S engine.RunStatus | engine.StepStatus](list []S) string {
	if len(list) == 0 {
		return ""
	}
	numbers := make([]int, len(list)) // a list of bytes would become base64
	for i, status := range list {
		numbers[i] = int(status)
	}
	return encode(numbers)
}
