package engine

import (
	"context"
	"time"
)

// Upkeep is what the passing of time needs. Every method may run on several servers at once.
type Upkeep interface {
	// LiveWorkers is every worker that is not OFFLINE, with when it was heard from.
	LiveWorkers(ctx context.Context) ([]LiveWorker, error)
	// FreeLost frees, as AfterLeaseLost says, the runs of workers taken OFFLINE as lost whose own
	// Timeouts.Heartbeat is over by now, and with no loss counted what workers still hold that are
	// OFFLINE for another reason, because OfflineWorker did not come to its end. It frees some
	// hundred at most.
	FreeLost(ctx context.Context, now time.Time) (Freed, error)
	// TimeoutSteps fails attempts that are RUNNING with TimeoutAt <= p.Now as FailStep would with
	// StepTimedOutFailure and Hold: with a retry the attempt is PENDING until RetryAt, the run's
	// lease is over and the run is parked; without, the attempt is FAILED and the lease is over
	// too, the run due at once, so that another worker takes the error into the code. At most
	// p.Limit, oldest first but for the first p.Skip. The worker is notified.
	TimeoutSteps(ctx context.Context, p TimeoutStepsParams) (TimedOut, error)
	// EndExpired ends runs whose ExpiresAt is not after Now, wherever they stand: as CANCELLED with
	// EndedByFailure when that is their GraceUntil, else as TIMED_OUT with DeadlineFailure. Their
	// workers are notified. At most p.Limit, earliest first but for the first p.Skip.
	EndExpired(ctx context.Context, p EndExpiredParams) (Expired, error)
	// DueSchedules is the enabled schedules of enabled namespaces, not Broken, whose NextFireAt is
	// not after now, earliest first and then by id, at most limit, with their inputs left out; and
	// when the next of the others fires (zero: none).
	DueSchedules(ctx context.Context, now time.Time, limit int) ([]Schedule, time.Time, error)
	// Prune deletes runs of p.Namespace that ended with p.Status before p.Before, with everything
	// of theirs, oldest first, at most p.Limit, and fewer where these have very many rows, but one
	// at least. A run stays that is Pinned, or that an open run refers to (its child, parent,
	// handler, retry or continuation), or that is the child of an open run. One that ImportRuns
	// made stays as long as its id was not made before p.Before, however long ago it ended
	// elsewhere. It returns how many; 0: there is none, or another server is at them.
	Prune(ctx context.Context, p PruneParams) (int, error)
	// PruneRecords deletes workers that went OFFLINE before p.Workers, records of fired ticks from
	// before p.Fires, and audit events whose ids were made before p.Audit, oldest first, at most
	// p.Limit of each. more says that it came to that limit, so that there may be others.
	PruneRecords(ctx context.Context, p PruneRecordsParams) (more bool, err error)
}

// EndExpiredParams bounds one sweep.
type EndExpiredParams struct {
	Now   time.Time
	Limit int
	Skip  int
}

// Expired answers EndExpired.
type Expired struct {
	Runs      int       // that had expired, those included that ended with another of them
	Cancelled []ID      // of them, by the end of their grace, earliest first
	TimedOut  []ID      // and by their deadline
	Next      time.Time // when the next behind those expires; zero: there is none
}

// LiveWorker is what the look for lost workers needs.
type LiveWorker struct {
	ID      string
	HeardAt time.Time
}

// Freed answers FreeLost.
type Freed struct {
	Runs []ID      // that were freed
	Next time.Time // when the next is to be freed; zero: none
}

// TimedOut answers TimeoutSteps.
type TimedOut struct {
	Attempts []TimedOutAttempt // that were failed: those of a run together, the runs by their oldest
	Next     time.Time         // when the next behind those is due; zero: there is none
}

// TimedOutAttempt is an attempt that ran too long, and what follows from that.
type TimedOutAttempt struct {
	RunID   ID
	Step    string
	Worker  string // that was to end it, and may hang
	Verdict Verdict
}

// TimeoutStepsParams bounds one sweep. Jitter serves all of it.
type TimeoutStepsParams struct {
	Now    time.Time
	Limit  int
	Skip   int
	Margin time.Duration // see Store.Uncertainty; added to RetryAt
	Jitter float64
}

// PruneParams bounds one sweep.
type PruneParams struct {
	Namespace string
	Status    RunStatus
	Before    time.Time
	Limit     int
}

// PruneRecordsParams bounds one sweep; a zero time spares its kind.
type PruneRecordsParams struct {
	Workers time.Time
	Fires   time.Time
	Audit   time.Time // whole milliseconds, as ids have them
	Limit   int
}
