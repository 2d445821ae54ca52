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

// Backups is filled besides Store by stores that can copy themselves into a file while they are at work.
type Backups interface {
	// Backup makes a file that was not there, which holds all that had been acknowledged when it
	// was called and can be restored on either kind of database. It is on disk, whole, and was read
	// back when this returns nil; otherwise there is no such file. Writes go on meanwhile. A file
	// in its place is ErrExists, a disk that has no room for it ErrExhausted.
	Backup(ctx context.Context, file string) (Backup, error)
}

// BackupTurns is filled besides Store by stores that several servers share.
type BackupTurns interface {
	// BackupTurn gives the turn to make the next scheduled backup to one of the servers that ask,
	// no more often than every interval: wait is 0 for that one, which gives it back when its
	// backup fails, and how long the others are to wait until they ask again.
	BackupTurn(ctx context.Context, every time.Duration) (wait time.Duration,
		giveBack func(context.Context) error, err error)
}

// Backup is a file that holds a whole database as it was at one moment.
type Backup struct {
	File    string
	TakenAt time.Time // unset: it is a copy that no backup has made
	Bytes   int64
	SHA256  [32]byte
	Schema  int // number of its newest migration
	Rows    BackupRows
}

// BackupRows is how much a backup holds.
type BackupRows struct {
	Runs     int64
	OpenRuns int64 // of these
	Steps    int64 // attempts
}

// Standings, the names of what is true of a database as a whole (table standing).
const (
	StandingBackup   = "backup"   // it is a backup, taken then
	StandingRestored = "restored" // it was taken back to an earlier moment, then; the value says to which
)

// AfterRestoreParams says how rows that were copied from an earlier moment are made fit to be served again:
//
//   - every lease ends, as Release does, with no loss counted: its token is dead, its open attempts
//     are interrupted, its run is due at once.
//   - every worker is OFFLINE, as OfflineForced.
//   - every schedule with a tick that is due goes on after Now, its ticks up to then counted as
//     Skipped, paused or not: it may have been resumed since, and its namespace enabled. Next is
//     nil where they are to fire, as missed ones.
//   - StandingRestored is noted, and StandingBackup is no more.
type AfterRestoreParams struct {
	From string // for people: which backup, and of when
	// Next is the first tick of a schedule after Now (unset: none comes), and how many there are
	// from its NextFireAt up to then. An error is of an expression that this program cannot read;
	// the schedule is left as it is.
	Next func(s *Schedule, now time.Time) (next time.Time, skipped int64, err error)
	Now  time.Time
}

// AfterRestore is what was changed to take a restored database up.
type AfterRestore struct {
	Leases    int   // that ended
	Workers   int   // taken OFFLINE
	Schedules int   // that go on after now
	Ticks     int64 // of these, counted as skipped
}

// RestoreParams says what is to be restored, and where to.
type RestoreParams struct {
	File   string
	URL    string // of the database to fill
	Force  bool   // replace a database that holds rows; the file of it is kept
	Refire bool   // ticks of schedules since the backup fire, instead of being counted as skipped
	DryRun bool   // say what would be done, and change nothing
	// Next is AfterRestoreParams.Next.
	Next func(s *Schedule, now time.Time) (next time.Time, skipped int64, err error)
	Now  time.Time
}

// Restoration is what was restored, or would be.
type Restoration struct {
	Backup   Backup
	Database string // file name, or host/database
	Kept     string // the file of the database that was there before; empty: there was none
	Changed  AfterRestore
	Progress Progress
	Findings []Finding // contradictions in the backup, which came along
}

// Progress is what the replaced database knew and the backup does not.
type Progress struct {
	// Unknown says why the two could not be compared; empty: they were, or there was nothing before.
	Unknown string
	// Beyond is the runs that are open in the backup and had gone on since, by id.
	Beyond []RunBeyond
	// Only is the runs that the backup does not hold, newest first.
	Only []RunBeyond
	// KeysBack is the names of the keys that were revoked since and are valid again.
	KeysBack []string
}

// RunBeyond is a run that stood elsewhere in the replaced database.
type RunBeyond struct {
	ID        ID
	Namespace string
	Type      string
	Status    RunStatus // in the replaced database
	Steps     int64     // likewise
	Had       int64     // steps in the backup
	Gone      bool      // it was not there any more
}

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
		return preconditionf(
			"a copy of %s into this database has not ended: run the same `kagzi db copy` again, it goes on where it stopped",
			cmp.Or(f.From, "another database"))
	}
	var m Moved
	json.Unmarshal([]byte(value), &m)
	to := cmp.Or(m.To, "another database")
	if !m.Done {
		return preconditionf(
			"this database is being moved to %s: run the same `kagzi db copy` again until it ends, and serve that one; "+
				"`kagzi db copy --release URL` gives the copy up", to)
	}
	return preconditionf(
		"this database was moved to %s: start the server on that one; to undo it while nobody has served that one, "+
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
var ErrCopyRival = error(&Error{Kind: KindPrecondition,
	Message: "another copy, or a release, is at work on the same database"})

// ErrCopyNotEmpty is that a database to copy into holds rows.
var ErrCopyNotEmpty = error(&Error{Kind: KindPrecondition,
	Message: "the target holds rows of its own; give the copy a database of its own"})

// CopyParams says what to copy.
type CopyParams struct {
	From string // URL
	To   string // URL of an empty database, or of one that this copy has begun to fill
	// Snapshot copies what the source holds at one moment and leaves it alone. The target must be
	// empty, and such a copy does not go on where it stopped.
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

// OpenOptions says how a store is opened. The zero value migrates and logs nothing.
type OpenOptions struct {
	KeepSchema bool // refuse an old schema instead of migrating it
	// ReadOnly opens the database for reading only, also while another process serves it: nothing
	// of it is changed, an old schema is refused, and every verb that would write fails with
	// ErrReadOnly. Health is nil while the store is open, and Listen notifies nothing but
	// NotifyAll, shortly after another process has changed something. SQLite only, and not in the
	// process that serves the database.
	ReadOnly bool
	// Serving says that the store is for a server and not for a command that is soon over: SQLite
	// lengthens its log ahead of the commits (18 MiB).
	Serving bool
	// Volatile says that nothing need survive the program, as in demos and tests: only then is "memory:" opened.
	Volatile bool
	Log      *slog.Logger
}

// SchemaStatus compares a database with the migrations that this program has.
type SchemaStatus struct {
	Applied int      // number of the newest migration applied; 0: an empty database
	Newest  int      // number of the newest that this program has
	Pending []string // names of those to come, in order
	Missing bool     // there is no database file; migrations make it
	Place   string   // the Postgres schema that holds the tables, or is to; empty elsewhere
	// Warnings say what an operator should change, one sentence each.
	Warnings []string
	// Standing is StandingMoved or StandingFilling where the database is not to be served, and
	// Refusal then says why and what to do.
	Standing string
	Refusal  string
}

// Refuse notes that the database stands as name, with that value.
func (s *SchemaStatus) Refuse(name, value string) {
	s.Standing, s.Refusal = name, ServingRefused(name, value).Error()
}

// Finding is something that is wrong in a database.
type Finding struct {
	Subject string // "run 0198…", "index runs_claim"
	Text    string
}
