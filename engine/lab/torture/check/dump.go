package check

import "github.com/kagzi/kagzi/engine/lab/torture/history"

// Dump is the content of a database, read with SQL and not through the server.
type Dump struct {
	Runs      []Run
	Steps     []Step
	Leases    []Lease
	Fires     []Fire
	Schedules []Schedule
	Rows      int      // number of rows read, of all tables
	Unsound   []string // what the server's own check reports
}

// Run is a row of runs with its payloads.
type Run struct {
	ID, Request, Type, Queue string
	Status                   string // by name: COMPLETED, …
	Input, Output            string // digests
	Attempts, LeaseLosses    int
	Crashed                  bool   // it failed because it lost its workers
	Message                  string // of the error that ended it; a digest
	EndedAt                  int64  // microseconds since 1970; 0: open
	OnFailure, FailedRun     string
	Schedule                 string
}

// Step is one attempt of a step.
type Step struct {
	Run, Name string
	Status    StepStatus
	Latest    bool
	Output    string // a digest
}

// StepStatus is the status of an attempt, by name.
type StepStatus string

// Completed is the status of a step or run that has a result.
const Completed StepStatus = "COMPLETED"

// Lease is a row of leases.
type Lease struct{ Run, Token string }

// Fire is a schedule's tick with its run. Times are microseconds since 1970.
type Fire struct {
	Schedule, Run string
	Tick, FiredAt int64
}

// Schedule is a schedule that fires when the seconds since 1970 are divisible by Every.
type Schedule struct {
	ID             string
	Every          int64 // seconds
	CreatedAt      int64 // microseconds since 1970
	Fired, Skipped int64
	NextFire       int64 // the next undecided tick; 0: none
}

// mostLosses is how many workers in a row a run may lose.
const mostLosses = 10

// Ended reports whether a run with the status has ended.
func Ended(status string) bool {
	switch status {
	case "", "PENDING", "RUNNING", "SLEEPING":
		return false
	}
	return true
}

// Writes reports whether an operation changes a run under its lease.
func Writes(op history.Op) bool {
	switch op {
	case history.Complete, history.Fail, history.Park, history.Release, history.End, history.EndBadly:
		return true
	}
	return false
}
