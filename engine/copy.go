package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// What a copy of a database makes true of both ends (table standing).
const (
	StandingMoved   = "moved"   // its rows went to another database, and nobody may write here: a Moved
	StandingFilling = "filling" // rows are on their way into it: a Filling
	StandingCopied  = "copied"  // it came into being as a whole copy of another: a Moved, seen from there
)

// Moved is where the rows of a database went.
type Moved struct {
	Copy string `json:"copy"` // an id, the same at both ends
	To   string `json:"to"`   // for people, without a password
	Done bool   `json:"done,omitempty"`
}

// Filling is how far a copy into a database has come. It is written in the transaction of the rows that it counts.
type Filling struct {
	Copy   string                  `json:"copy"`
	From   string                  `json:"from"` // for people, without a password
	Tables map[string]FillingTable `json:"tables"`
}

// FillingTable is how much of a table has arrived.
type FillingTable struct {
	Last []string `json:"last"` // key of the last row, see the package that copies
	Rows int64    `json:"rows"`
	Sum  string   `json:"sum"` // of these rows, in hexadecimal
}

// ServingRefused is why a database that stands as name, with that value, is not to be served.
func ServingRefused(name, value string) error {
	if name == StandingFilling {
		var f Filling
		json.Unmarshal([]byte(value), &f) // whoever cannot read it has no source to name
		return preconditionf("a copy of %s into this database has not ended: run the same `kagzi db copy` again, it goes on where it stopped",
			cmp.Or(f.From, "another database"))
	}
	var m Moved
	json.Unmarshal([]byte(value), &m)
	to := cmp.Or(m.To, "another database")
	if !m.Done {
		return preconditionf("this database is being moved to %s: run the same `kagzi db copy` again until it ends, and serve that one; "+
			"`kagzi db copy --release URL` gives the copy up", to)
	}
	return preconditionf("this database was moved to %s: start the server on that one; to undo it while nobody has served that one, "+
		"`kagzi db copy --release URL --force`", to)
}

func preconditionf(format string, args ...any) error {
	return &Error{Kind: KindPrecondition, Message: fmt.Sprintf(format, args...)}
}

// CopyKind is what a column holds, the same on every kind of database.
type CopyKind uint8

const (
	CopyNumber CopyKind = iota + 1 // int64; a flag is 0 or 1
	CopyText                       // string
	CopyBytes                      // []byte, never nil
)

// CopyColumn is a column, and what the database takes in it. A value is an int64, a string, a []byte or nil for NULL.
type CopyColumn struct {
	Name   string
	Kind   CopyKind
	Least  int64 // of a number
	Most   int64
	Length int  // of bytes: exactly so many; 0: any
	Strict bool // of a text: UTF-8 without NUL
}

// CopyTable is a table as the catalog of a database has it.
type CopyTable struct {
	Name    string
	Columns []CopyColumn // by name
	Key     []string     // the columns of the primary key
	Refers  []string     // tables that its foreign keys name: their rows come first
}

// At is the place of a column, -1 when there is none of that name.
func (t *CopyTable) At(column string) int {
	return slices.IndexFunc(t.Columns, func(c CopyColumn) bool { return c.Name == column })
}

// KeyOf is the key of a row that has all columns of the table.
func (t *CopyTable) KeyOf(row []any) []any {
	key := make([]any, len(t.Key))
	for i, name := range t.Key {
		key[i] = row[t.At(name)]
	}
	return key
}

// CopyRange asks for the rows after a key, in the order of keys.
type CopyRange struct {
	Table *CopyTable // its columns may be some of those of the table; those of the key are among them
	After []any      // nil: from the first row
	Rows  int        // at most
	Bytes int        // about as many at most, but one row at least
}

// CopyFence begins a copy at one end: it writes down why, and refuses every other writer from then on.
type CopyFence struct {
	Standing string // StandingMoved, StandingFilling
	Value    string
	Copy     string
	Why      string // what others are told who write
	At       time.Time
}

// CopyBatch is rows that arrive, and the standing before and after that.
type CopyBatch struct {
	Table    *CopyTable
	Rows     [][]any
	Copy     string
	Old, New string // values of StandingFilling
}

// ErrCopyRival is that somebody else has changed the standing of a database meanwhile.
var ErrCopyRival = error(&Error{Kind: KindPrecondition, Message: "another copy, or a release, is at work on the same database"})

// ErrCopyNotEmpty is that a database to copy into holds rows.
var ErrCopyNotEmpty = error(&Error{Kind: KindPrecondition, Message: "the target holds rows of its own; give the copy a database of its own"})

// CopyParams says what to copy.
type CopyParams struct {
	From string // URL
	To   string // URL of an empty database, or of one that this copy has begun to fill
	// Snapshot copies what the source holds at one moment and leaves it alone. The target must be empty, and such a copy does not go on where
	// it stopped.
	Snapshot bool
	Now      time.Time
	Progress func(CopyProgress) // nil: nobody wants to know; called by one goroutine at a time
}

// CopyProgress is how far a copy is.
type CopyProgress struct {
	Verifying bool // else copying
	Table     string
	Rows      int64 // that were there or arrived, or that were read back, of all tables
	Total     int64
	Bytes     int64 // that went over in this process
}

// CopyReport is what a copy that ended has done.
type CopyReport struct {
	From, To string // for people
	Tables   []CopyCount
	Resumed  bool // it went on where an earlier one had stopped
	Before   bool // it had ended before: nothing was done
}

// CopyCount is how many rows of a table arrived.
type CopyCount struct {
	Table string
	Rows  int64
}

// Rows is how many arrived in all.
func (r *CopyReport) Rows() (n int64) {
	for _, t := range r.Tables {
		n += t.Rows
	}
	return n
}
