package engine

import (
	"context"
	"time"
)

// Store keeps runs, steps, workers, schedules and namespaces. Its contract is written here and only
// here; backends/storetest is the same contract as tests.
//
// Each method is one transaction: it happens whole or not at all, and when it returns nil the
// change is on disk and survives a power cut (but see Claim and ForceOfflineWorker). Methods may be
// called from any goroutine and may be repeated blindly: a repetition has no second effect, and the
// answer that its comment says. The caller passes in the time, ids and randomness, so two backends
// given the same calls hold the same rows. Times are kept as UTC with microseconds, text is
// compared and ordered byte by byte.
//
// Arguments have been validated (Validate, Check…) before they come here; a Store checks what only
// it can know. Writes do not run on the caller's context: once begun they are carried through, and
// a caller that gave up learns the outcome by repeating the call. A write with a Ticket may be
// handed over before the one that it builds on has come to its end: a store may commit them
// together, never in another order, and refuses one whose predecessor failed with ErrPrevRefused.
// Every error is an *Error or unknown to callers (KindInternal); a database that cannot be reached
// is ErrUnavailable, a full disk ErrExhausted.
type Store interface {
	Runs
	Work
	Workers
	Schedules
	Namespaces
	Keys
	Views
	Upkeep
	Notifier

	// Now is the time by which facts are written down: the wall clock on SQLite, the database's
	// clock (local clock plus the measured offset) on Postgres. Whole microseconds, UTC.
	Now() time.Time
	// Uncertainty is by how much Now may be behind the clock that it stands for; it is never ahead
	// of that. Another server, and a later reading here, may be up to so much ahead of a Now that
	// was asked for before. Whoever sets a timer by a duration asks for Now, then for Uncertainty,
	// and passes the latter as Margin: the timer then fires no earlier than its duration says,
	// whichever reading judges it. 0 where Now is the clock itself.
	Uncertainty() time.Duration
	// Health is nil while writes can be made durable, otherwise it says in one sentence why not;
	// also while one has been under way for so long that the disk must have stalled. It costs at
	// most one small query, and one small write where the last write failed, so that a store which
	// nobody writes to for its trouble is well again when that is over.
	Health(ctx context.Context) error
	// Describe tells what the store is and where, for people.
	Describe(ctx context.Context) (Description, error)
	// Fatal is closed, once, when a write or sync failed in a way after which nothing may be
	// acknowledged any more; Failure then says why. The process is to end at once.
	Fatal() <-chan struct{}
	Failure() error
	// Close waits for the writes that have begun and ends the store. Later calls return ErrUnavailable.
	Close() error
}

// Outcomes hears what the commits of its own process came to, where the store knows it without a
// read: AwaitWorkflows and the metrics of a server need it. Other processes get notifications
// alone.
type Outcomes interface {
	// RunEnded is called in place of the run's NotifyEnd. The ending is shared: nobody changes it.
	RunEnded(run ID, e *Ending)
	// SideEffects is called for each call that began or ended runs which it was not asked for;
	// added up, where notifications are merged into NotifyAll. The value is shared: nobody changes
	// it.
	SideEffects(e *SideEffects)
}

// Description is what a store is.
type Description struct {
	Backend       string // "sqlite", "postgres" or "memory"
	Version       string // of the database software
	Database      string // file name, or host/database; never a password
	Bytes         int64
	Schema        int      // number of the newest migration applied
	Notifications string   // how servers wake each other: "in-process", "listen", "polling"
	Warnings      []string // what an operator should change about the database, one sentence each
	Facts         []Fact   // what else an operator may want to know, in an order to be shown
}

// Fact is one line about a part of the system, for people: "write-ahead log", "4.1 MiB". It never holds a secret.
type Fact struct {
	Name  string
	Value string
}

// Commits is filled besides Store by stores that gather writes which wait into one commit.
type Commits interface {
	// CommitSizes tells how many writes shared a commit, since the store was opened. It waits for nothing.
	CommitSizes() CommitSizes
}

// CommitSizes is how many writes were in each commit.
type CommitSizes struct {
	Commits uint64
	Writes  uint64
	AtMost  map[float64]uint64 // how many commits held at most so many writes
}
