package engine

import (
	"context"
	"time"
)

// Backups is filled besides Store by stores that can copy themselves into a file while they are at work.
type Backups interface {
	// Backup makes a file that was not there, which holds all that had been acknowledged when it was called and can be restored
	// on either kind of database. It is on disk, whole, and was read back when this returns nil; otherwise there is no such file. Writes
	// go on meanwhile. A file in its place is ErrExists, a disk that has no room for it ErrExhausted.
	Backup(ctx context.Context, file string) (Backup, error)
}

// BackupTurns is filled besides Store by stores that several servers share.
type BackupTurns interface {
	// BackupTurn gives the turn to make the next scheduled backup to one of the servers that ask, no more often than every interval: wait is 0
	// for that one, which gives it back when its backup fails, and how long the others are to wait until they ask again.
	BackupTurn(ctx context.Context, every time.Duration) (wait time.Duration, giveBack func(context.Context) error, err error)
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
//   - every lease ends, as Release does, with no loss counted: its token is dead, its open attempts are interrupted, its run is due at once.
//   - every worker is OFFLINE, as OfflineForced.
//   - every schedule with a tick that is due goes on after Now, its ticks up to then counted as Skipped, paused or not: it may have been resumed
//     since, and its namespace enabled. Next is nil where they are to fire, as missed ones.
//   - StandingRestored is noted, and StandingBackup is no more.
type AfterRestoreParams struct {
	From string // for people: which backup, and of when
	// Next is the first tick of a schedule after Now (unset: none comes), and how many there are from its NextFireAt up to then. An error is
	// of an expression that this program cannot read; the schedule is left as it is.
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
