package engine

import (
	"context"
	"time"
)

// Upkeep holds the operations that time makes necessary. The coordinator calls them. Several
// servers may call each of them at the same time.
type Upkeep interface {
	// LiveWorkers returns every worker that is not OFFLINE, with its last heartbeat.
	LiveWorkers(ctx context.Context) ([]LiveWorker, error)
	// FreeLost frees the runs of workers that are OFFLINE as lost and whose own Timeouts.Heartbeat
	// has passed by now; AfterLeaseLost decides about them. It also frees runs that workers hold
	// who are OFFLINE for another reason, because ForceOfflineWorker did not finish; these count no
	// loss. One call frees a few hundred runs at most.
	FreeLost(ctx context.Context, now time.Time) (Freed, error)
	// TimeoutSteps fails RUNNING attempts with TimeoutAt <= p.Now, as FailStep would with
	// StepTimedOutFailure and Hold, and notifies the worker. With a retry, the attempt is PENDING
	// until RetryAt, the lease ends and the run is parked. Without, the attempt is FAILED, the
	// lease ends too and the run is due at once, so that another worker returns the error to the
	// code. It handles at most p.Limit attempts, oldest first, after skipping the first p.Skip.
	TimeoutSteps(ctx context.Context, p TimeoutStepsParams) (TimedOut, error)
	// EndExpired ends runs whose ExpiresAt is not after Now, in any open status, and notifies their
	// workers. They end as CANCELLED with EndedByFailure if that is their GraceUntil, otherwise as
	// TIMED_OUT with DeadlineFailure. It ends at most p.Limit runs, earliest first, after skipping
	// the first p.Skip.
	EndExpired(ctx context.Context, p EndExpiredParams) (Expired, error)
	// PauseDiverged pauses runs that wait and have Divergences if at least one ONLINE worker serves
	// them (Worker.Serves), and all of these are of builds that have reported (Stranded). A run that
	// was asked to stop is not paused. It pauses at most p.Limit runs and returns them. It has to be
	// called after NotifyDiverged, NotifyWorker and NotifyAll; it is one look into an empty index if no
	// such run waits.
	PauseDiverged(ctx context.Context, p PauseDivergedParams) ([]ID, error)
	// DueSchedules returns the enabled schedules of enabled namespaces, not Broken, whose
	// FiresAt is not after now: earliest first, then by id, at most limit, without their inputs.
	// The second result is when the next of the others fires; zero: none.
	DueSchedules(ctx context.Context, now time.Time, limit int) ([]Schedule, time.Time, error)
	// Prune deletes runs of p.Namespace that ended with p.Status before p.Before, with everything
	// that belongs to them, and returns how many. It deletes the oldest first and at most p.Limit;
	// fewer if they have very many rows, but at least one. It returns 0 if there is none, or if
	// another server prunes at the moment.
	//
	// A request id that was answered with a deleted run stays known if it was made at p.Requests or
	// later (StartRuns). Of what it asked for, type, queue and external id are kept, the input is not.
	//
	// It keeps runs that are Pinned, runs that an open run refers to (its child, parent, handler,
	// retry or continuation), and children of open runs. An imported run is also kept until its id
	// was made before p.Before, no matter how long ago it ended elsewhere.
	Prune(ctx context.Context, p PruneParams) (int, error)
	// PruneRecords deletes workers that became OFFLINE before p.Workers, records of ticks fired
	// before p.Fires, audit events whose ids were made before p.Audit, and request ids of deleted
	// runs made before p.Requests: oldest first, at most p.Limit of each kind. more says that a
	// kind reached the limit, so there may be others.
	PruneRecords(ctx context.Context, p PruneRecordsParams) (more bool, err error)
}

// EndExpiredParams limits one call of EndExpired.
type EndExpiredParams struct {
	Now   time.Time
	Limit int
	Skip  int
}

// Expired answers EndExpired.
type Expired struct {
	Runs      int       // that had expired, including those that ended as children of another
	Cancelled []ID      // those ended by GraceUntil, earliest first
	TimedOut  []ID      // those ended by their deadline, earliest first
	Next      time.Time // when the next run after those expires; zero: none
}

// PauseDivergedParams limits one call of PauseDiverged.
type PauseDivergedParams struct {
	Now   time.Time
	Limit int
}

// LiveWorker is a worker that is not OFFLINE, and when it was last heard from.
type LiveWorker struct {
	ID      string
	HeardAt time.Time
}

// Freed answers FreeLost.
type Freed struct {
	Runs []ID
	Next time.Time // when to free the next run; zero: none
}

// TimedOut answers TimeoutSteps.
type TimedOut struct {
	Attempts []TimedOutAttempt // grouped by run; runs ordered by their oldest attempt
	Next     time.Time         // when the next attempt after those times out; zero: none
}

// TimedOutAttempt is an attempt that ran too long, and what was decided about its step.
type TimedOutAttempt struct {
	RunID   ID
	Step    string
	Worker  string // that ran it, and may hang
	Verdict Verdict
}

// TimeoutStepsParams limits one call of TimeoutSteps. Jitter applies to all its retries.
type TimeoutStepsParams struct {
	Now    time.Time
	Limit  int
	Skip   int
	Margin time.Duration // see Store.Uncertainty; added to RetryAt
	Jitter float64
}

// PruneParams limits one call of Prune.
type PruneParams struct {
	Namespace string
	Status    RunStatus
	Before    time.Time
	Requests  time.Time // request ids that were made since are remembered
	Limit     int
}

// PruneRecordsParams limits one call of PruneRecords; a zero time keeps all records of its kind.
type PruneRecordsParams struct {
	Workers time.Time
	Fires   time.Time
	Audit   time.Time // whole milliseconds, as ids have them
	// Requests bounds request ids of deleted runs, which Prune kept.
	Requests time.Time
	Limit    int
}
