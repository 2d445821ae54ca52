package engine

import (
	"context"
	"time"
)

// Store keeps runs, steps, workers, schedules and namespaces. The comments of this interface and of
// the interfaces it embeds are its whole contract; backends/storetest holds the same contract as
// tests.
//
// Transactions. Each method is one transaction: it takes effect as a whole or not at all. When it
// returns nil, the change is on disk and survives a power cut. Exceptions: Claim, and workers with
// very many runs (RegisterWorker, Heartbeat, ForceOfflineWorker).
//
// Repetition. Methods may be called from any goroutine, and a caller may repeat any call without
// knowing its outcome. A repeated call has no second effect (Heartbeat adds its counts again) and
// returns what the method's comment says.
//
// Inputs. The caller passes in the time, ids and randomness, so two backends given the same calls
// hold the same rows. It has validated the arguments (Validate, Check…); the store checks only what
// needs its data. Times are stored in UTC with microseconds. Text is compared and ordered by byte.
//
// Contexts. Writes do not run on the caller's context. A write that has begun is carried out; a
// caller that gave up learns the outcome by repeating the call.
//
// Order. A write with a Ticket may arrive before the write that it builds on has been answered. The
// store may commit both together, but never in another order. If the earlier one failed, the store
// refuses the later one with ErrPrevRefused.
//
// Errors. Every error that callers can act on is an *Error; any other counts as KindInternal. A
// database that cannot be reached is ErrUnavailable, a full disk is ErrExhausted.
type Store interface {
	Runs
	Work
	Workers
	Schedules
	Namespaces
	Keys
	Sessions
	Hooks
	Views
	Upkeep
	Notifier

	// Now returns the time that callers pass to the store: the wall clock on SQLite, the database's
	// clock (local clock plus the measured offset) on Postgres. Whole microseconds, UTC.
	Now() time.Time
	// Uncertainty returns by how much Now may be behind the clock that it stands for; Now is never
	// ahead of that clock. Another server, or a later reading here, may be ahead of an earlier Now
	// by up to that much. Callers that set a timer by a duration call Now, then Uncertainty, and
	// pass it as Margin: the timer then never fires before its duration has passed, whichever
	// reading judges it. 0 where Now is the clock itself.
	Uncertainty() time.Duration
	// Health returns nil while writes can be made durable; otherwise its error says in one sentence
	// why not. A write that takes so long that the disk must have stalled is an error too. Health
	// costs at most one small query, plus one small write if the last write failed: that write
	// detects that the trouble is over when nobody else writes.
	Health(ctx context.Context) error
	// Describe returns what the store is and where its data is, for people.
	Describe(ctx context.Context) (Description, error)
	// Fatal returns a channel that is closed once, when a write or sync failed in a way after which
	// the store must not acknowledge anything. The process has to exit at once.
	Fatal() <-chan struct{}
	// Failure returns why Fatal was closed, or nil.
	Failure() error
	// Close waits for the writes that have begun and closes the store. Later calls return
	// ErrUnavailable.
	Close() error
}

// Outcomes receives the results of this process's own commits that the store knows without a read.
// AwaitWorkflows and a server's metrics use it. Commits of other processes are announced by
// notifications only.
type Outcomes interface {
	// RunEnded is called instead of sending the run's NotifyEnd. The ending is shared: do not
	// change it.
	RunEnded(run ID, e *Ending)
	// SideEffects is called for each call that had side effects. When notifications are merged into
	// NotifyAll, it is called once with the sum. The value is shared: do not change it.
	SideEffects(e *SideEffects)
}

// Description describes a store.
type Description struct {
	Backend       string // "sqlite", "postgres" or "memory"
	Version       string // of the database software
	Database      string // file name, or host/database; never a password
	Bytes         int64
	Schema        int      // number of the newest migration applied
	Notifications string   // how servers notify each other: "in-process", "listen", "polling"
	Warnings      []string // what an operator should change about the database, one sentence each
	Facts         []Fact   // more for operators, in the order to show them
}

// Fact is one line about a part of the system, for people: "write-ahead log", "4.1 MiB". It never
// holds a secret.
type Fact struct {
	Name  string
	Value string
}

// Disk is implemented by stores that write to a disk of this machine.
type Disk interface {
	// Space returns the free space of the disk. It does not block.
	Space() DiskSpace
}

// DiskSpace is the free space of a disk.
type DiskSpace struct {
	Free  uint64 // bytes
	Low   bool   // too little for new runs, which are refused; existing runs go on
	Known bool   // false: the other fields say nothing
}

// Commits is implemented by stores that gather waiting writes into one commit.
type Commits interface {
	// CommitSizes returns how many writes shared a commit since the store was opened. It does not
	// block.
	CommitSizes() CommitSizes
}

// CommitSizes counts commits by the number of their writes.
type CommitSizes struct {
	Commits uint64
	Writes  uint64
	AtMost  map[float64]uint64 // number of commits with at most that many writes
}
