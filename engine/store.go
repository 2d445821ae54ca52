package engine

import (
	"context"
	"time"
)

// Store keeps runs, steps and workers. Its contract is written here and only here; backends/storetest is the same
// contract as tests.
//
// Each method is one transaction: it happens whole or not at all, and when it returns nil the change is on disk and
// survives a power cut. Methods may be called from any goroutine and may be repeated blindly: a repetition has no second
// effect, and the answer that its comment says. A Store is told the time, the ids and the luck; it invents none of them, so
// two backends that are given the same calls hold the same rows. Times are kept as UTC with microseconds, text is
// compared and ordered byte by byte.
//
// Arguments have been validated (Validate, Check…) before they come here; a Store checks what only it can know. Writes
// do not run on the caller's context: once begun they are carried through, and a caller that gave up learns the outcome by
// repeating the call. Every error is an *Error or unknown to callers (KindInternal); a database that cannot be reached is
// ErrUnavailable, a full disk ErrExhausted.
type Store interface {
	Runs
	Work
	Workers
	Views
	Upkeep
	Bell

	// Now is the time by which facts are written down: the wall clock on SQLite, the database's clock (local clock plus the
	// measured offset) on Postgres. Whole microseconds, UTC.
	Now() time.Time
	// Health is nil while writes can be made durable, otherwise it says in one sentence why not. It costs at most one small query.
	Health(ctx context.Context) error
	// Describe tells what the store is and where, for people.
	Describe(ctx context.Context) (Description, error)
	// Fatal is closed, once, when a write or sync failed in a way after which nothing may be acknowledged any more; Failure
	// then says why. The process is to end at once.
	Fatal() <-chan struct{}
	Failure() error
	// Close waits for the writes that have begun and ends the store. Later calls return ErrUnavailable.
	Close() error
}

// Description is what a store is.
type Description struct {
	Backend       string // "sqlite" or "postgres"
	Version       string // of the database software
	Database      string // file name, or host/database; never a password
	Bytes         int64
	Schema        int    // number of the newest migration applied
	Notifications string // how servers wake each other: "in-process", "listen", "polling"
}

// Runs is what clients may ask for.
type Runs interface {
	// StartRuns makes runs, in one commit, and answers each in its place; one that is refused fails alone (Started.Err). The
	// namespace comes into being if it is new. For each start, in this order:
	//
	//   - RequestID known in the namespace: the first answer again (RunID, Existed, with Repeated set), whatever has become of the
	//     run, or ErrConflict when type, queue, external id or input differ from the first time.
	//   - ExternalID of an active run (with ReuseNever: of any retained run, the newest): that run, Existed; with ReuseReject and
	//     an active run: ErrExists, with SubjectID the run. Existed answers are remembered for their RequestID.
	//   - otherwise a new PENDING run, Attempts 1, due at AvailableAt, whose queue is rung.
	//
	// Starts of one call are applied in their order, so two of them may share an external id.
	StartRuns(ctx context.Context, starts []StartRun) ([]Started, error)
	// CancelRun ends a PENDING, RUNNING or SLEEPING run as CANCELLED, with EndedByFailure as its error, ends its lease and rings its
	// worker and its run. A run that is CANCELLED already is fine again (Changed false); one that ended otherwise is RunEnded.
	CancelRun(ctx context.Context, p EndRunParams) (RunEnd, error)
	// TerminateRun is the same with TERMINATED.
	TerminateRun(ctx context.Context, p EndRunParams) (RunEnd, error)
}

// EndRunParams names a run that a person ends.
type EndRunParams struct {
	Namespace string
	RunID     ID
	Reason    string
	Now       time.Time
}

// RunEnd answers CancelRun and TerminateRun.
type RunEnd struct {
	Status  RunStatus
	Changed bool // it was this call that ended the run
}

// Work is what a lease allows. Every method but Claim carries a Lease and takes effect only while its token is the run's
// current one; the clock plays no part. Otherwise nothing changes and the answer is
//
//   - the first answer again, when this very write (same token, same content) has counted before, whatever has become of
//     the run since;
//   - StepConflict, when a write of this token has counted for the same step or end with other content;
//   - RunNotFound, when there is no such run in the namespace;
//   - LeaseLost with the run's status.
//
// Whenever a method ends a lease, SLEEPs of the run that are due become COMPLETED with FinishedAt at their WakeAt, and its step
// attempts that still run as FUNCTION become FAILED with InterruptedFailure (their Failures unchanged), unless the run ends: then
// all that is still open becomes FAILED with RunEndedFailure. The method
// rings the run whenever anything about it or its steps changed, the queue when the run became due for others, and the
// slot of the queue when a lease ended; at the run's end also RingEnd.
type Work interface {
	// Claim hands due runs to grants, in the order of both: first those due for StarvationAfter or longer, then by priority,
	// then by AvailableAt, then by ID. It takes only runs of the namespace, queue and types whose requirements the offers meet, that are
	// PENDING or SLEEPING with AvailableAt <= Now; at most one a grant, and no more than QueueLimit and TypeLimits leave free (the
	// RUNNING runs of that queue, or of that type in it, across all workers and servers). Grants of workers that are not ONLINE, or
	// unknown, get nothing. Concurrent claims never get the same run.
	//
	// A claimed run becomes RUNNING under the grant's token, with StartedAt on its first claim; its due SLEEP steps become
	// COMPLETED with FinishedAt at their WakeAt. Its cost does not depend on how many runs have ended, sleep, or wait for others.
	Claim(ctx context.Context, p ClaimParams) (Claimed, error)
	// BeginStep records that a step runs, or says that it need not. Of the step's latest attempt:
	//
	//   - COMPLETED: nothing to execute, Step has the output. FAILED for good: nothing to execute, Step has the error.
	//   - RUNNING under this token: that attempt again (with its ID), to execute.
	//   - PENDING with RetryAt after Now: ErrPrecondition.
	//   - PENDING, interrupted, or none: a new attempt RUNNING, to execute. A PENDING one becomes FAILED; neither is the latest any more.
	//
	// A SLEEP is begun without WakeAt; Sleep sets it. A step of another kind under that name is a StepConflict. The MaxSteps+1st step
	// is ErrTooLarge, as is whatever would take the run past MaxRunBytes.
	BeginStep(ctx context.Context, p BeginStepParams) (Begun, error)
	// CompleteStep records a step's result for good: it completes the RUNNING attempt, or makes a new attempt already completed
	// (its place in the sequence is the next one, when the step is new; Latest moves to it, as with BeginStep). A step that is COMPLETED or
	// FAILED for good by another lease is a StepConflict. A SLEEP cannot be completed: ErrPrecondition. LeaseLosses count anew.
	CompleteStep(ctx context.Context, p CompleteStepParams) (Step, error)
	// FailStep records a failure of the step's code and asks AfterStepFailed, with the attempt's own policy if it has one, what
	// follows. Retry: the attempt is PENDING until RetryAt, the run's Attempts grow by one and, unless Hold, the run is parked (see
	// Park) and the lease is over. Final: the attempt is FAILED, the lease goes on, and its code gets the error.
	FailStep(ctx context.Context, p FailStepParams) (Verdict, error)
	// Sleep sets a timer: the step becomes a RUNNING SLEEP with WakeAt = Until, or StartedAt = Now and WakeAt = Now + Duration. Unless
	// Hold, the run is parked and the lease is over. Where the timer stands already (same Until or Duration), it keeps its
	// WakeAt; a step of another kind, or a SLEEP that is over, is a StepConflict.
	Sleep(ctx context.Context, p SleepParams) error
	// CompleteRun ends the run as COMPLETED with its output.
	CompleteRun(ctx context.Context, p CompleteRunParams) error
	// FailRun asks AfterRunFailed what follows. Retry: the run is PENDING until RetryAt with Attempts and Failures one higher, the lease is
	// over, and its steps that failed for good become PENDING with that RetryAt and no Failures, to be run again. Final: the
	// run ends as FAILED with this error.
	FailRun(ctx context.Context, p FailRunParams) (Verdict, error)
	// Release hands the run back unfinished: due at once, or with Park when the earliest of its timers and retries is due. It
	// counts as nothing: no attempt, no loss.
	Release(ctx context.Context, p ReleaseParams) error
}

// ClaimParams is what the slots that wait at one queue have in common, and the slots.
type ClaimParams struct {
	Namespace    string
	Queue        string
	Types        []string // at least one
	Offers       []Offer
	QueueLimit   int            // 0: none
	TypeLimits   map[string]int // for types without an entry none
	Grants       []Grant
	HistoryBytes int // of history a task, about; always at least one step
	Now          time.Time
}

// Claimed answers Claim: Tasks are in the order in which they were handed out, with Lease.Token telling which grant got which.
type Claimed struct {
	Tasks []Task
	// NextDue is when the next run that these grants could take becomes due, so that nobody needs to poll: later than Now, or
	// zero when no such run waits. It is set only when grants were left over.
	NextDue time.Time
	// Limited says that grants were left over although runs are due, because of a limit: a ring of the queue's slot is the moment to
	// come again.
	Limited bool
	// Offline names the workers among the grants that got nothing because they are not ONLINE, each once, in the grants' order.
	Offline []string
}

// BeginStepParams announces a step. ID is for the attempt, if it is a new one.
type BeginStepParams struct {
	Lease        Lease
	ID           ID
	Name         string
	Kind         StepKind
	Input        Payload
	RetryPolicy  *RetryPolicy
	StartToClose time.Duration // TimeoutAt = StartedAt + this; 0: the run's own, else DefaultStepTimeout. Not for a SLEEP.
	StartedAt    time.Time     // unset: Now
	Now          time.Time
}

// Begun answers BeginStep.
type Begun struct {
	Step    Step
	Execute bool
}

// CompleteStepParams is a step's result. ID is for the attempt, if it is a new one.
type CompleteStepParams struct {
	Lease     Lease
	Step      StepRef
	ID        ID
	Output    Payload
	StartedAt time.Time // for a step reported without BeginStep; unset: Now
	Now       time.Time
}

// FailStepParams is a step's failure. ID is for the attempt, if it is a new one.
type FailStepParams struct {
	Lease       Lease
	Step        StepRef
	ID          ID
	Failure     Failure
	RetryPolicy *RetryPolicy // for a step reported without BeginStep
	StartedAt   time.Time
	Hold        bool // parallel siblings are still at work: keep the lease in any case
	Now         time.Time
	Roll        float64 // [0,1), the luck of the jitter
}

// SleepParams is a timer: Until, or Duration when that is unset. ID is for the attempt, if it is a new one.
type SleepParams struct {
	Lease    Lease
	Step     StepRef
	ID       ID
	Duration time.Duration
	Until    time.Time
	Hold     bool
	Now      time.Time
}

// CompleteRunParams is a run's result.
type CompleteRunParams struct {
	Lease  Lease
	Output Payload
	Now    time.Time
}

// FailRunParams is a run's failure.
type FailRunParams struct {
	Lease   Lease
	Failure Failure
	Now     time.Time
	Roll    float64
}

// ReleaseParams hands a run back.
type ReleaseParams struct {
	Lease Lease
	Park  bool
	Now   time.Time
}

// Workers is the register of workers. Their leases live and die with them.
type Workers interface {
	// RegisterWorker makes the worker known and ONLINE, its namespace too if that is new, rings it, and returns it as it stands. w.ID is
	// what it asks for or, with Chosen false, a fresh one; InstanceID decides:
	//
	//   - the same instance is in the register: it gets its id back (whatever w.ID says), with its profile renewed and its leases
	//     kept; ONLINE, or DRAINING if it was.
	//   - the id is taken by another instance that is not OFFLINE: ErrExists.
	//   - the id belonged to an instance that is OFFLINE: the new one takes it over with its totals at zero; runs that the old one still
	//     held are freed as lost (AfterLeaseLost).
	RegisterWorker(ctx context.Context, p RegisterWorkerParams) (Worker, error)
	// Heartbeat notes that the worker lives, in one row, and says which of the leases that it names it does not hold. With Whole,
	// leases of the worker that it does not name, claimed at least NameWithin before Now, are freed: due at once, no loss counted. A
	// worker that is unknown or OFFLINE is WorkerNotFound, and nothing changes. Repeating it adds the deltas again.
	Heartbeat(ctx context.Context, p HeartbeatParams) (Beat, error)
	// DrainWorker makes an ONLINE worker DRAINING and rings it. DRAINING is fine again; OFFLINE or unknown is WorkerNotFound.
	DrainWorker(ctx context.Context, workerID string, now time.Time) error
	// OfflineWorker makes a worker OFFLINE, with the reason, and frees its runs. OfflineDeregistered and OfflineForced: due at once, no
	// loss counted. OfflineLost: as AfterLeaseLost says, but a run whose own Timeouts.Heartbeat since the last heartbeat is not yet
	// over keeps its lease (FreeLost comes for it), and nothing happens at all when the worker was heard from after HeardAt
	// (the second look failed). It returns how many runs were freed. OFFLINE already is fine (0 freed); unknown is WorkerNotFound.
	OfflineWorker(ctx context.Context, p OfflineWorkerParams) (int, error)
}

// RegisterWorkerParams is a registration. Of Worker the fields from Status on that the store keeps itself are ignored.
type RegisterWorkerParams struct {
	Worker Worker
	Chosen bool // the worker chose its id itself
	Now    time.Time
}

// HeartbeatParams is a sign of life.
type HeartbeatParams struct {
	WorkerID   string
	Active     int
	Completed  int // since the last accepted heartbeat
	Failed     int
	Stats      *WorkerStats // nil: as before
	Held       []Lease
	Whole      bool // Held names every run that the worker holds
	NameWithin time.Duration
	Now        time.Time
}

// Beat answers Heartbeat.
type Beat struct {
	Status WorkerStatus
	Lost   []Lease // of Held, those that are the worker's no longer
}

// OfflineWorkerParams takes a worker off.
type OfflineWorkerParams struct {
	WorkerID string
	Reason   OfflineReason
	HeardAt  time.Time // with OfflineLost: the last heartbeat that the first look saw
	Now      time.Time
}

// Views are for reading. They may be slightly behind the writes, but never behind one that was acknowledged before they
// were asked. Payloads of runs are left out of lists.
type Views interface {
	GetRun(ctx context.Context, namespace string, id ID) (Run, error) // RunNotFound
	// GetRunByExternalID is the newest run with that id, ended or not; ErrNotFound.
	GetRunByExternalID(ctx context.Context, namespace, externalID string) (Run, error)
	// ListRuns is newest first, by ID.
	ListRuns(ctx context.Context, f RunFilter, p Page) ([]Run, PageInfo, error)
	// ListSteps is all attempts of a run's steps, by sequence and attempt; with name of that step only. RunNotFound.
	ListSteps(ctx context.Context, namespace string, run ID, name string, p Page) ([]Step, PageInfo, error)
	GetStep(ctx context.Context, namespace string, step ID) (Step, error) // StepNotFound
	// History is what Claim delivers as Task.History, from p.From on; the second result is where the rest begins, 0 when there is none.
	History(ctx context.Context, p HistoryParams) ([]Step, int64, error)
	// CurrentLease is the lease that a run is held under now, for clients that know no token. LeaseLost when nobody holds it.
	CurrentLease(ctx context.Context, namespace string, run ID) (Lease, error)
	// HeldBy is the leases of a worker, in the order of their runs' ids.
	HeldBy(ctx context.Context, workerID string) ([]Lease, error)

	GetWorker(ctx context.Context, id string) (Worker, error) // ErrNotFound, also knows OFFLINE ones
	// ListWorkers is newest first, by RegisteredAt and then ID, both descending.
	ListWorkers(ctx context.Context, f WorkerFilter, p Page) ([]Worker, PageInfo, error)
	// QueueDepths is one row a queue that has open runs or workers that are not OFFLINE, by name; with queue of that one only.
	QueueDepths(ctx context.Context, namespace, queue string, now time.Time) ([]QueueDepth, error)
	// Stats counts everything, of one namespace or, when that is empty, of all. It may scan.
	Stats(ctx context.Context, namespace string, now time.Time) (Stats, error)
	// ListTypes is by name.
	ListTypes(ctx context.Context, namespace string, p Page) ([]TypeInfo, PageInfo, error)
}

// HistoryParams asks for part of a run's history.
type HistoryParams struct {
	Namespace string
	RunID     ID
	From      int64 // sequence
	Bytes     int   // about so much; always at least one step
}

// QueueDepth is what waits and runs in one queue.
type QueueDepth struct {
	Queue         string
	Pending       int64
	Running       int64
	Sleeping      int64
	OldestDue     time.Time // AvailableAt of the oldest run that is due and waits; unset: none
	OnlineWorkers int
	// Unserved is the due PENDING and SLEEPING runs, by type, that no ONLINE worker of the queue serves (by type and requirements).
	Unserved map[string]int64
}

// Stats is everything counted.
type Stats struct {
	ByStatus      map[RunStatus]int64
	ByType        map[string]int64
	Workers       int64 // OFFLINE ones included
	OnlineWorkers int64
	OldestDue     time.Time
}

// TypeInfo is one workflow type that has runs.
type TypeInfo struct {
	Type   string
	Total  int64
	Active int64
	Queues []string // in byte order
}

// Upkeep is what the passing of time needs. Every method may run on several servers at once.
type Upkeep interface {
	// LiveWorkers is every worker that is not OFFLINE, with when it was heard from.
	LiveWorkers(ctx context.Context) ([]LiveWorker, error)
	// FreeLost frees, as AfterLeaseLost says, the runs of workers taken OFFLINE as lost whose own Timeouts.Heartbeat is over by now. It
	// returns how many, and when the next will be (zero: none).
	FreeLost(ctx context.Context, now time.Time) (int, time.Time, error)
	// TimeoutSteps fails attempts that are RUNNING with TimeoutAt <= p.Now as FailStep would with StepTimedOutFailure and Hold: with a retry
	// the attempt is PENDING until RetryAt, the run's lease is over and the run is parked; without, the attempt is FAILED and the lease is over
	// too, the run due at once, so that another worker takes the error into the code. At most p.Limit, oldest first; it returns how
	// many, and when the next is due (zero: none). The worker is rung.
	TimeoutSteps(ctx context.Context, p TimeoutStepsParams) (int, time.Time, error)
	// Prune deletes runs that ended before p.Before, with everything of theirs, oldest first, at most p.Limit; and workers that went
	// OFFLINE before it. It returns how many runs.
	Prune(ctx context.Context, p PruneParams) (int, error)
}

// LiveWorker is what the look for lost workers needs.
type LiveWorker struct {
	ID      string
	HeardAt time.Time
}

// TimeoutStepsParams bounds one sweep. Roll serves all of it.
type TimeoutStepsParams struct {
	Now   time.Time
	Limit int
	Roll  float64
}

// PruneParams bounds one sweep.
type PruneParams struct {
	Before time.Time
	Limit  int
}

// Bell tells whoever listens that something may have changed. The store that commits rings it, after the commit. A ring is a
// hint: it may be lost, repeated or merged, and nothing is ever sent in it but a name.
type Bell interface {
	// Listen calls ring for each hint until ctx ends, from one goroutine at a time and without waiting for anything but ring, which
	// must not block. After a gap in listening it rings RingAll once.
	Listen(ctx context.Context, ring func(Ring)) error
}

// RingKind says what a ring is about.
type RingKind uint8

const (
	RingAll    RingKind = iota // anything may have changed
	RingQueue                  // Namespace, Name: the queue has a run that is, or will be, due
	RingSlot                   // Namespace, Name: a lease of the queue has ended, which may free a slot under a limit
	RingRun                    // ID: the run or one of its steps changed
	RingEnd                    // ID: the run has ended; rung besides RingRun, for those whom nothing else concerns
	RingWorker                 // Name: the worker registered, lost leases, or is to drain
	RingTimer                  // upkeep has something new to wait for: an attempt with a timeout
)

// Ring is one hint.
type Ring struct {
	Kind      RingKind
	Namespace string
	Name      string
	ID        ID
}
