package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// Backups is implemented by stores that can copy themselves into a file while they are in use.
type Backups interface {
	// Backup makes a new file that holds everything acknowledged before the call. It can be
	// restored on either kind of database. When Backup returns nil, the file is complete, on disk,
	// and was read back; otherwise there is no file. Writes continue meanwhile. If the file exists
	// it is ErrExists, and if the disk is full ErrExhausted.
	Backup(ctx context.Context, file string) (Backup, error)
}

// BackupTurns is implemented by stores that several servers share.
type BackupTurns interface {
	// BackupTurn picks one of the servers that call it to make the next scheduled backup, at most
	// once per interval. For that server wait is 0, and it calls giveBack if its backup fails. For
	// the others wait is how long to wait before they call again.
	BackupTurn(ctx context.Context, every time.Duration) (wait time.Duration,
		giveBack func(context.Context) error, err error)
}

// Backup is a file that holds a whole database as it was at one moment.
type Backup struct {
	File    string
	TakenAt time.Time // unset: the file is a copy that Backup did not make
	Bytes   int64
	SHA256  [32]byte
	Schema  int // number of its newest migration
	Rows    BackupRows
}

// BackupRows counts what a backup holds.
type BackupRows struct {
	Runs     int64
	OpenRuns int64 // part of Runs
	Steps    int64 // attempts
}

// Names of the states of a database as a whole (table standing).
const (
	StandingBackup   = "backup"   // it is a backup, taken at that time
	StandingRestored = "restored" // a backup was restored at that time; the value says which
)

// AfterRestoreParams says how to prepare rows from a backup before a server uses them:
//
//   - every lease ends, as with Release, with no loss counted: its token is refused, its open
//     attempts are interrupted, its run is due at once.
//   - every worker is OFFLINE, as OfflineForced.
//   - every schedule with a due tick continues after Now, and its ticks up to then count as
//     Skipped. This includes paused schedules and disabled namespaces, which may have been active
//     since the backup. If Next is nil, the ticks fire as missed ones instead.
//   - StandingRestored is set, and StandingBackup is removed.
type AfterRestoreParams struct {
	From string // for people: which backup, and when it was taken
	// Next returns the first tick of a schedule after Now (unset: none), and how many ticks there
	// are from its NextFireAt to Now. It fails if this program cannot read the expression; the
	// schedule then does not change.
	Next func(s *Schedule, now time.Time) (next time.Time, skipped int64, err error)
	Now  time.Time
}

// AfterRestore counts what was changed to prepare a restored database.
type AfterRestore struct {
	Leases    int   // leases that ended
	Workers   int   // workers that became OFFLINE
	Schedules int   // schedules that continue after now
	Ticks     int64 // ticks of these schedules that count as skipped
}

// RestoreParams says what to restore, and where to.
type RestoreParams struct {
	File   string
	URL    string // of the database to fill
	Force  bool   // replace a database that holds rows; its file is kept
	Refire bool   // fire the ticks of schedules since the backup, instead of skipping them
	DryRun bool   // return what would be done, and change nothing
	// Next is passed on as AfterRestoreParams.Next.
	Next func(s *Schedule, now time.Time) (next time.Time, skipped int64, err error)
	Now  time.Time
}

// Restoration says what was restored or, with DryRun, would be.
type Restoration struct {
	Backup   Backup
	Database string // file name, or host/database
	Kept     string // the file of the replaced database; empty: there was none
	Empty    bool   // the target held no rows: nothing was replaced
	Changed  AfterRestore
	Progress Progress
	Findings []Finding // contradictions in the backup, which were restored with it
}

// Progress says what the replaced database holds and the backup does not.
type Progress struct {
	// Unknown says why the two could not be compared; empty: they were, or nothing was replaced.
	Unknown string
	// Beyond holds the runs that are open in the backup and have changed since, by id.
	Beyond []RunBeyond
	// Only holds the runs that the backup does not hold, newest first.
	Only []RunBeyond
	// KeysBack holds the names of the keys that were revoked since and are valid again.
	KeysBack []string
}

// RunBeyond is a run whose state in the replaced database differs from the backup.
type RunBeyond struct {
	ID        ID
	Namespace string
	Type      string
	Status    RunStatus // in the replaced database
	Steps     int64     // steps in the replaced database
	Had       int64     // steps in the backup
	Gone      bool      // the replaced database did not hold it any more
}

// States that a copy of a database sets at both ends (table standing).
const (
	StandingMoved   = "moved"   // its rows were moved to another database, writes are refused; value: Moved
	StandingFilling = "filling" // rows are being copied into it; value: Filling
	StandingCopied  = "copied"  // it is a complete copy of another database; value: the Moved of that one
)

// Moved says where the rows of a database were moved to.
type Moved struct {
	Copy string `json:"copy"` // an id, the same at both ends
	To   string `json:"to"`   // for people, without a password
	Done bool   `json:"done,omitempty"`
}

// Filling is the progress of a copy into a database. It is written in the same transaction as the
// rows that it counts.
type Filling struct {
	Copy   string                  `json:"copy"`
	From   string                  `json:"from"` // for people, without a password
	Tables map[string]FillingTable `json:"tables"`
}

// FillingTable says how much of a table was copied.
type FillingTable struct {
	Last []string `json:"last"` // key of the last row, see the package that copies
	Rows int64    `json:"rows"`
	Sum  string   `json:"sum"` // of these rows, in hexadecimal
}

// ServingRefused returns why a database in the state name, with that value, must not be served.
func ServingRefused(name, value string) error {
	if name == StandingFilling {
		var f Filling
		json.Unmarshal([]byte(value), &f) // if it cannot be read, the text names no source
		return preconditionf(
			"a copy of %s into this database has not ended: run the same `kagzi db copy` again; "+
				"it continues where it stopped",
			cmp.Or(f.From, "another database"))
	}
	var m Moved
	json.Unmarshal([]byte(value), &m)
	to := cmp.Or(m.To, "another database")
	if !m.Done {
		return preconditionf(
			"this database is being moved to %s: run the same `kagzi db copy` again until it completes, then serve the new database; "+
				"`kagzi db copy --release URL` abandons the copy", to)
	}
	return preconditionf(
		"this database was moved to %s: start the server on that one; if no server has run on it yet, "+
			"`kagzi db copy --release URL --force` undoes the move", to)
}

func preconditionf(format string, args ...any) error {
	return &Error{Kind: KindPrecondition, Message: fmt.Sprintf(format, args...)}
}

// CopyKind is the type of a column, the same on every kind of database.
type CopyKind uint8

const (
	CopyNumber CopyKind = iota + 1 // int64; a flag is 0 or 1
	CopyText                       // string
	CopyBytes                      // []byte, never nil
)

// CopyColumn is a column with the values that it accepts. A value is an int64, a string, a []byte
// or nil for NULL.
type CopyColumn struct {
	Name   string
	Kind   CopyKind
	Least  int64 // smallest number
	Most   int64 // largest number
	Length int   // exact number of bytes; 0: any
	Strict bool  // text must be UTF-8 without NUL
}

// CopyTable is a table as the database's catalog describes it.
type CopyTable struct {
	Name    string
	Columns []CopyColumn // by name
	Key     []string     // the columns of the primary key
	Refers  []string     // tables that its foreign keys name; their rows are copied first
}

// At returns the index of a column, or -1 if there is none with that name.
func (t *CopyTable) At(column string) int {
	return slices.IndexFunc(t.Columns, func(c CopyColumn) bool { return c.Name == column })
}

// KeyOf returns the key of a row that has all columns of the table.
func (t *CopyTable) KeyOf(row []any) []any {
	key := make([]any, len(t.Key))
	for i, name := range t.Key {
		key[i] = row[t.At(name)]
	}
	return key
}

// CopyRange asks for the rows after a key, in key order.
type CopyRange struct {
	Table *CopyTable // may hold only some columns of the table, but always those of the key
	After []any      // nil: from the first row
	Rows  int        // limit
	Bytes int        // approximate limit, but at least one row is returned
}

// CopyFence begins a copy at one end: it records the state, and every other writer is refused from
// then on.
type CopyFence struct {
	Standing string // StandingMoved, StandingFilling
	Value    string
	Copy     string
	Why      string // error text for other writers
	At       time.Time
}

// CopyBatch holds rows to insert, and the value of StandingFilling before and after.
type CopyBatch struct {
	Table    *CopyTable
	Rows     [][]any
	Copy     string
	Old, New string // value of StandingFilling before and after
}

// ErrCopyRival says that another process changed the state of the database meanwhile.
var ErrCopyRival = error(&Error{Kind: KindPrecondition,
	Message: "another copy or release is running on the same database; wait until it ends, then try again"})

// ErrCopyNotEmpty says that the target database of a copy holds rows.
var ErrCopyNotEmpty = error(&Error{Kind: KindPrecondition,
	Message: "the target database is not empty; copy into an empty database"})

// CopyParams says what to copy.
type CopyParams struct {
	From string // URL
	To   string // URL of an empty database, or of one that this copy has begun to fill
	// Snapshot copies what the source holds at one moment and does not change the source. The
	// target must be empty, and the copy cannot be resumed.
	Snapshot bool
	Now      time.Time
	Progress func(CopyProgress) // may be nil; called from one goroutine at a time
}

// CopyProgress is the progress of a copy.
type CopyProgress struct {
	Verifying bool // false: copying
	Table     string
	Rows      int64 // rows of all tables in the target or, while Verifying, read back
	Total     int64
	Bytes     int64 // bytes copied by this process
}

// CopyReport says what a completed copy has done.
type CopyReport struct {
	From, To string // for people
	Tables   []CopyCount
	Resumed  bool // it continued an earlier copy
	Before   bool // an earlier copy had completed: nothing was done
}

// CopyCount is the number of rows copied into a table.
type CopyCount struct {
	Table string
	Rows  int64
}

// Rows returns the number of rows copied into all tables.
func (r *CopyReport) Rows() (n int64) {
	for _, t := range r.Tables {
		n += t.Rows
	}
	return n
}

// OpenOptions says how to open a store. The zero value migrates and logs nothing.
type OpenOptions struct {
	KeepSchema bool // refuse an old schema instead of migrating it
	// ReadOnly opens the database without changing it; another process may serve it meanwhile. An
	// old schema is refused, and every method that would write fails with ErrReadOnly. Health
	// returns nil while the store is open. Listen sends only NotifyAll, shortly after another
	// process has changed something. SQLite only, and not in the process that serves the database.
	ReadOnly bool
	// Serving says that the store is for a server, not for a short command: SQLite then extends its
	// log ahead of the commits (18 MiB).
	Serving bool
	// Volatile says that no data has to survive the process, as in demos and tests. "memory:" is
	// opened only with it.
	Volatile bool
	// Ahead returns how far the store's clock is ahead of the machine's, for tests; nil: not at all.
	// SQLite only.
	Ahead func() time.Duration
	Log   *slog.Logger
}

// SchemaStatus compares a database with the migrations that this program has.
type SchemaStatus struct {
	Applied int      // number of the newest migration applied; 0: an empty database
	Newest  int      // number of the newest that this program has
	Pending []string // names of the migrations to apply, in order
	Missing bool     // no database file yet; migrations create it
	Absent  bool     // the schema that a Postgres URL names does not exist; migrations create it
	Place   string   // the Postgres schema that holds the tables, or will; empty elsewhere
	// Warnings say what an operator should change, one sentence each.
	Warnings []string
	// Standing is StandingMoved or StandingFilling if the database must not be served; Refusal then
	// says why and what to do.
	Standing string
	Refusal  string
}

// Refuse sets Standing to name, and Refusal to the reason for its value.
func (s *SchemaStatus) Refuse(name, value string) {
	s.Standing, s.Refusal = name, ServingRefused(name, value).Error()
}

// Finding is an inconsistency in a database.
type Finding struct {
	Subject string // "run 0198…", "index runs_claim"
	Text    string
}
