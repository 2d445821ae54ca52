package engine

import (
	"context"
	"time"
)

// Store keeps runs, steps, workers, schedules and namespaces. Its contract is written here and only here; backends/storetest is the same
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
	Schedules
	Namespaces
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
	//   - otherwise a new PENDING run, Attempts 1, due at AvailableAt, whose queue is rung; RingTimer too when it has a DeadlineAt.
	//
	// Only runs of OriginUser are found by their external id. In a namespace that is disabled each start is refused with
	// NamespaceDisabled, unless it repeats a RequestID. Starts of one call are applied in their order, so two of them may share an
	// external id.
	StartRuns(ctx context.Context, starts []StartRun) ([]Started, error)
	// CancelRun without a Grace ends a PENDING, RUNNING or SLEEPING run as CANCELLED, with EndedByFailure as its error, ends its lease
	// and rings its worker and its run. A run that is CANCELLED already is fine again (Changed false); one that ended otherwise is
	// RunEnded.
	//
	// With a Grace its code is told instead: CancelRequestedAt, CancelReason and GraceUntil are set, its worker is rung if it has one,
	// otherwise it becomes PENDING and due now (a pause is over, too), and RingTimer. Where cancellation has been asked for already, only
	// an earlier GraceUntil counts (Changed false otherwise). See CompleteRun, FailRun and EndExpired for how it ends.
	CancelRun(ctx context.Context, p EndRunParams) (RunEnd, error)
	// TerminateRun ends the run as CancelRun without a Grace does, with TERMINATED.
	TerminateRun(ctx context.Context, p EndRunParams) (RunEnd, error)
	// PauseRun keeps an open run from the workers: a lease is over (the worker is rung), AvailableAt moves to HeldAt, and whatever would
	// make the run due until ResumeRun sets HeldAt instead. Its status becomes PENDING if it was RUNNING. Deadlines go on. Paused
	// already is fine; an ended run is RunEnded. It returns the run as it stands.
	PauseRun(ctx context.Context, p SteerParams) (Run, error)
	// ResumeRun gives a paused run back: AvailableAt is HeldAt again, and its queue is rung. Not paused is fine; an ended run is RunEnded.
	ResumeRun(ctx context.Context, p SteerParams) (Run, error)
	// PinRun keeps a run from Prune, or lets it go.
	PinRun(ctx context.Context, p PinRunParams) (Run, error)
	// SignalRun keeps a signal for the run. The oldest open SIGNAL step of that name, Awaited or held, consumes it at once: the step
	// becomes COMPLETED with the payload and the run becomes due if Park says so. Otherwise the signal waits for AwaitSignal. A SIGNAL whose
	// WakeAt is not after Now has timed out first. A SignalID that the run has had is fine again (Repeated), whatever has become of the
	// run since; an ended run is RunEnded otherwise. More than MaxSignals that nothing has consumed, or a run past MaxRunBytes, is ErrTooLarge.
	SignalRun(ctx context.Context, p SignalRunParams) (Signalled, error)
	// RetryRun makes a new PENDING run out of one that has ended as FAILED, CANCELLED, TIMED_OUT or TERMINATED (otherwise
	// ErrPrecondition with its status), with RetryOf's fields and copies of the latest attempts of its steps that are COMPLETED: all, those
	// whose sequence is before FromStep's, or none with Restart. Copies have new ids, no token, and sequences from 1 without gaps; the signals that nothing
	// had consumed are copied as well. FromStep that the run has not begun is StepNotFound.
	//
	// RequestID known: the first answer again. An open run that is RetriedFrom this one: that one (Existed). The external id held by another
	// open run: ErrExists.
	RetryRun(ctx context.Context, p RetryRunParams) (Started, error)
	// OverrideStep records a result for a step of a run that is paused or has ended as FAILED, CANCELLED, TIMED_OUT or TERMINATED (otherwise
	// ErrPrecondition): a new attempt, COMPLETED with Output or FAILED for good with Failure, with OverriddenBy and OverrideReason and a
	// zero token. The attempt before it stays as it is, though no longer the latest; one that is open becomes FAILED with OverriddenFailure. A paused run is
	// due when it is resumed. The same result again is fine, and answers the attempt that stands. A step that was not begun is StepNotFound; what would take
	// the run past MaxRunBytes is ErrTooLarge.
	OverrideStep(ctx context.Context, p OverrideStepParams) (Step, error)
	// ImportRuns makes runs as they are given, ids included, in one commit, parents before their children. Open ones come PAUSED, PENDING and with HeldAt = Now. An id that is taken is
	// ErrExists and nothing is made. RequestID belongs to the first run, and known answers it again (Repeated).
	ImportRuns(ctx context.Context, p ImportRunsParams) (Started, error)
}

// EndRunParams names a run that a person ends.
type EndRunParams struct {
	Namespace string
	RunID     ID
	Grace     time.Duration // CancelRun only; 0: at once
	Reason    string
	By        Actor
	AuditID   ID // of the audit event
	Now       time.Time
}

// RunEnd answers CancelRun and TerminateRun.
type RunEnd struct {
	Status     RunStatus
	Changed    bool      // it was this call that ended the run, or that told its code
	GraceUntil time.Time // set when its code was told, by this call or before
}

// SteerParams names a run that a person pauses or resumes.
type SteerParams struct {
	Namespace string
	RunID     ID
	Reason    string
	By        Actor
	AuditID   ID
	Now       time.Time
}

// PinRunParams names a run that a person keeps.
type PinRunParams struct {
	SteerParams
	Pinned bool
}

// SignalRunParams is one signal.
type SignalRunParams struct {
	Namespace string
	RunID     ID
	Name      string
	SignalID  string // empty: delivered as often as it is sent
	Payload   Payload
	Now       time.Time
}

// Signalled answers SignalRun.
type Signalled struct {
	Repeated bool
}

// RetryRunParams asks for a new life of a run. ID is the new run's.
type RetryRunParams struct {
	SteerParams
	ID        ID
	FromStep  string
	Restart   bool
	Input     *Payload // replaces the input; with Restart only
	RequestID string
}

// OverrideStepParams sets a step's result; exactly one of Output and Failure. ID is for the attempt.
type OverrideStepParams struct {
	SteerParams
	ID      ID
	Step    string
	Output  *Payload
	Failure *Failure
}

// ImportRunsParams is runs with all that is known of them.
type ImportRunsParams struct {
	Namespace string
	RequestID string
	Runs      []ImportedRun
	By        Actor
	AuditID   ID
	Now       time.Time
}

// ImportedRun is one of them. Run.ParentRunID, ContinuedFrom and their like name runs of the same import or are unset.
type ImportedRun struct {
	Run     Run
	Steps   []Step
	Signals []Signal
}

// Every change of Runs but StartRuns and SignalRun leaves an AuditEvent with its Actor, AuditID and Reason, in the same transaction, when it
// changed something; so do those of Schedules and Namespaces.

// Work is what a lease allows. Every method but Claim carries a Lease and takes effect only while its token is the run's
// current one; the clock plays no part. Otherwise nothing changes and the answer is
//
//   - the first answer again, when this very write (same token, same content) has counted before, whatever has become of
//     the run since;
//   - StepConflict, when a write of this token has counted for the same step or end with other content;
//   - RunNotFound, when there is no such run in the namespace;
//   - LeaseLost with the run's status.
//
// Whenever a method ends a lease, SLEEPs and SIGNALs of the run that are due become COMPLETED with FinishedAt at their WakeAt (a SIGNAL
// with TimedOut), and its step attempts that still run as FUNCTION become FAILED with InterruptedFailure (their Failures unchanged),
// unless the run ends: then all that is still open becomes FAILED with RunEndedFailure. The method
// rings the run whenever anything about it or its steps changed, the queue when the run became due for others, and the
// slot of the queue when a lease ended; at the run's end also RingEnd.
//
// Whatever ends a run, here and elsewhere, does in the same transaction all that its end concerns:
//
//   - The open CHILD step that started it becomes COMPLETED with its output, or FAILED with ChildFailure, and the parent is due if Park says so. A result that would take the parent past MaxRunBytes is the failure
//     ChildTooLarge instead. A run that ContinuedAs another passes its parent on to that one instead.
//   - Its open children end as ParentClose says, and theirs in turn; not when it ContinuedAs another, nor when it is tried again.
//   - FAILED or TIMED_OUT, unless it IsHandler: HandlerOf is started for its OnFailureWorkflow (in OnFailureQueue, else its own queue), and for
//     GlobalHandler in the queue of the first ONLINE worker by id that serves that type (the first of its queues), else in the namespace's
//     FailureQueue, else not at all; nor is it when the run is of that type itself.
//   - Its schedule counts it, and starts the tick that it has Buffered when no other run of the schedule is open.
//
// Whenever a run with a ConcurrencyKey loses its lease, or ends, or is paused, the run that is first in the line of its key in each lane is
// no longer Gated: it is PENDING or SLEEPING as before, with AvailableAt = HeldAt, and its queue is rung.
type Work interface {
	// Claim hands due runs to grants, in the order of both: first those due for StarvationAfter or longer, then by priority,
	// then by AvailableAt, then by ID. It takes only runs of the namespace, queue and types whose requirements the offers meet, that are
	// PENDING or SLEEPING with AvailableAt <= Now; at most one a grant, and no more than QueueLimit and TypeLimits leave free (the
	// RUNNING runs of that queue, or of that type in it, across all workers and servers). Grants of workers that are not ONLINE, or
	// unknown, get nothing. Concurrent claims never get the same run.
	//
	// A run whose ConcurrencyKey has ConcurrencyLimit leases or more, of runs of its type in its namespace, is not taken but becomes Gated: AvailableAt moves to
	// HeldAt, WaitingFor is unchanged, and it costs no later claim anything. Concurrent claims never pass the limit. Nothing is claimed in a namespace that is
	// disabled.
	//
	// A claimed run becomes RUNNING under the grant's token, with StartedAt on its first claim; its due SLEEP and SIGNAL steps become
	// COMPLETED with FinishedAt at their WakeAt, and no step of it is Awaited any more. Its cost does not depend on how many runs have ended,
	// sleep, are paused or gated, or wait for others.
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
	// AwaitSignal has the step consume the oldest signal of that name, or wait for one. Consumed: it is COMPLETED with the payload and the
	// lease goes on. Otherwise it is RUNNING and Awaited, with WakeAt = Now + Timeout if there is one, and unless Hold, the run is parked and the
	// lease is over (Waiting). A step that has ended is answered as it stands; one that waits already keeps its WakeAt. A step of another kind or
	// with another signal name is a StepConflict.
	AwaitSignal(ctx context.Context, p AwaitSignalParams) (AwaitedSignal, error)
	// StartChild records a CHILD step, RUNNING with ChildRunID, and makes the run p.Child as StartRuns would, with ParentRunID and ParentStepID set here. A
	// CHILD step of that name is answered as it stands, and nothing is started; one of another kind is a StepConflict. An external id that an open run
	// holds is ErrExists, and nothing is recorded.
	StartChild(ctx context.Context, p StartChildParams) (Step, error)
	// AwaitChildren answers the CHILD steps of these children that have ended, when that is all of them, or with Any at least one. Otherwise
	// the open ones become Awaited (by themselves with Any or when it is only one, else as a group of their own) and, unless Hold, the run is parked and the lease is over:
	// no steps are answered. A run that is not a child of this one is RunNotFound.
	AwaitChildren(ctx context.Context, p AwaitChildrenParams) ([]Step, error)
	// SetNote writes the run's own line for lists.
	SetNote(ctx context.Context, p SetNoteParams) error
	// CompleteRun ends the run as COMPLETED with its output; as CANCELLED, with the output kept and EndedByFailure as its error, when
	// cancellation had been asked for. With ContinueAs, unless it is CANCELLED so, the next run is made as Continuation says, in the same
	// transaction: external id, parent and the signals that nothing has consumed pass on to it. An external id of its own that another open run holds is ErrExists.
	CompleteRun(ctx context.Context, p CompleteRunParams) (Completed, error)
	// FailRun asks AfterRunFailed what follows. Retry: the run is PENDING until RetryAt with Attempts and Failures one higher, the lease is
	// over, and its steps that failed for good become PENDING with that RetryAt and no Failures, to be run again. Final: the
	// run ends as FAILED with this error. When cancellation had been asked for, it ends as CANCELLED with EndedByFailure.
	FailRun(ctx context.Context, p FailRunParams) (RunVerdict, error)
	// Release hands the run back unfinished: due at once, or with Park as Park says of its steps. It counts as nothing: no
	// attempt, no loss.
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

// AwaitSignalParams is a wait for a signal. ID is for the attempt, if it is a new one.
type AwaitSignalParams struct {
	Lease   Lease
	Step    string
	Signal  string
	ID      ID
	Timeout time.Duration // 0: no limit
	Hold    bool
	Now     time.Time
}

// AwaitedSignal answers AwaitSignal.
type AwaitedSignal struct {
	Step    Step // COMPLETED, unless Waiting
	Waiting bool
}

// StartChildParams is a child to be started. ID is for the attempt, if it is a new one.
type StartChildParams struct {
	Lease Lease
	Step  string
	ID    ID
	Child StartRun
	Now   time.Time
}

// AwaitChildrenParams is a wait for children.
type AwaitChildrenParams struct {
	Lease    Lease
	Children []ID
	Any      bool
	Hold     bool
	Now      time.Time
}

// SetNoteParams is a run's own line.
type SetNoteParams struct {
	Lease Lease
	Note  string
	Now   time.Time
}

// CompleteRunParams is a run's result.
type CompleteRunParams struct {
	Lease      Lease
	Output     Payload
	ContinueAs *StartRun // nil: the run just ends
	Now        time.Time
}

// Completed answers CompleteRun.
type Completed struct {
	Status      RunStatus
	ContinuedAs ID
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

// Schedules is the templates of runs that time fires.
type Schedules interface {
	// CreateSchedule makes a schedule, its namespace too if that is new, and rings RingTimer. A Name that is taken is ErrExists; a RequestID that is known answers the
	// schedule that it made (whatever has become of it). A disabled namespace is NamespaceDisabled.
	CreateSchedule(ctx context.Context, p ScheduleParams) (Schedule, error)
	// UpdateSchedule replaces all of a schedule that a person decides about: every field of p.Schedule but its counters, LastFiredAt, Buffered
	// (which it drops unless Overlap is OverlapBufferOne), CreatedAt. p.Schedule.Revision is the one that was read; another one is
	// ErrConflict, unless the schedule stands exactly so already. The revision grows, Broken is p.Schedule's, and RingTimer. Pausing and resuming are this, with Enabled.
	UpdateSchedule(ctx context.Context, p ScheduleParams) (Schedule, error)
	// DeleteSchedule deletes the schedule with its records of fired ticks; its runs stay. Gone already is ErrNotFound.
	DeleteSchedule(ctx context.Context, p DeleteScheduleParams) error
	// FireSchedule decides about ticks: it starts the runs of p.Ticks, in their order, counts p.Skipped, and sets NextFireAt, all only while the schedule is enabled, has p.Revision and its NextFireAt
	// is p.Expect; otherwise it answers Stale and nothing changes, so that of several servers one fires a tick, once. No two ticks
	// of a schedule are the same: a tick that has its record already is passed over.
	//
	// Of each tick, with a run of the schedule open: OverlapSkip counts it as skipped; OverlapBufferOne makes it Buffered, or counts it as skipped when one is.
	// Broken, when set, is kept and takes the schedule out of DueSchedules until it is updated.
	FireSchedule(ctx context.Context, p FireScheduleParams) (Fired, error)
	// TriggerSchedule starts one run now, beside the ticks and whatever Overlap says. A known RequestID answers the same run again. A disabled namespace is
	// NamespaceDisabled.
	TriggerSchedule(ctx context.Context, p TriggerScheduleParams) (Started, error)
}

// ScheduleParams is a schedule as a person wants it.
type ScheduleParams struct {
	Schedule Schedule
	Method   string // for the audit: "PauseWorkflowSchedule", …
	Reason   string
	By       Actor
	AuditID  ID
	Now      time.Time
}

// DeleteScheduleParams names a schedule, by id or name.
type DeleteScheduleParams struct {
	Namespace string
	Ref       string
	Reason    string
	By        Actor
	AuditID   ID
	Now       time.Time
}

// Tick is one that is to fire, and the id of its run.
type Tick struct {
	At    time.Time
	RunID ID
}

// FireScheduleParams is what was decided about the ticks from Expect up to Next.
type FireScheduleParams struct {
	ScheduleID ID
	Revision   int64
	Expect     time.Time
	Ticks      []Tick
	Skipped    int64
	Next       time.Time // unset: no tick comes any more
	Broken     string
	Now        time.Time
}

// Fired answers FireSchedule.
type Fired struct {
	Stale   bool
	Runs    int   // started
	Skipped int64 // counted as skipped, p.Skipped included
}

// TriggerScheduleParams fires by hand. RunID is the run's.
type TriggerScheduleParams struct {
	Namespace string
	Ref       string
	RunID     ID
	RequestID string
	By        Actor
	AuditID   ID
	Now       time.Time
}

// Namespaces is the boundaries between users.
type Namespaces interface {
	// CreateNamespace makes one that nothing has used yet; taken is ErrExists, unless it stands exactly so, which is fine again.
	CreateNamespace(ctx context.Context, p NamespaceParams) (Namespace, error)
	// UpdateNamespace replaces all of a namespace that a person decides about, Enabled included, and rings RingAll. ErrNotFound.
	UpdateNamespace(ctx context.Context, p NamespaceParams) (Namespace, error)
}

// NamespaceParams is a namespace as a person wants it; ID and times are the store's own.
type NamespaceParams struct {
	Namespace Namespace
	Method    string // for the audit
	Reason    string
	By        Actor
	AuditID   ID
	Now       time.Time
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
	Status     WorkerStatus
	Lost       []Lease // of Held, those that are the worker's no longer
	Cancelling []Held  // of Held, those whose code is to be told
}

// Held is a lease with what its worker may have to be told.
type Held struct {
	Lease        Lease
	GraceUntil   time.Time // set: cancellation was asked for
	CancelReason string
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
	HeldBy(ctx context.Context, workerID string) ([]Held, error)
	// ListSignals is a run's, by sequence. RunNotFound.
	ListSignals(ctx context.Context, namespace string, run ID, p Page) ([]Signal, PageInfo, error)
	// ListHandlers is the runs that handle a run's failure, and ListRetries those that it was retried as, by ID.
	ListHandlers(ctx context.Context, namespace string, run ID) ([]Run, error)
	ListRetries(ctx context.Context, namespace string, run ID) ([]Run, error)
	// Circumstances is what Explain needs to know of a run, all at one moment. RunNotFound.
	Circumstances(ctx context.Context, namespace string, run ID) (Circumstances, error)

	// GetSchedule goes by id or, when ref is none, by name; ErrNotFound.
	GetSchedule(ctx context.Context, namespace, ref string) (Schedule, error)
	// ListSchedules is newest first, by ID, without inputs.
	ListSchedules(ctx context.Context, f ScheduleFilter, p Page) ([]Schedule, PageInfo, error)
	GetNamespace(ctx context.Context, name string) (Namespace, error) // ErrNotFound
	// ListNamespaces is by name.
	ListNamespaces(ctx context.Context, p Page) ([]Namespace, PageInfo, error)
	// ListAudit is newest first, by ID.
	ListAudit(ctx context.Context, f AuditFilter, p Page) ([]AuditEvent, PageInfo, error)

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
	ByStatus         map[RunStatus]int64
	ByType           map[string]int64
	Workers          int64 // OFFLINE ones included
	OnlineWorkers    int64
	Schedules        int64
	EnabledSchedules int64
	OldestDue        time.Time
}

// Circumstances is a run and what it may wait for.
type Circumstances struct {
	Run     Run      // without payloads
	Steps   []Step   // that are open or Awaited, without payloads
	Workers []Worker // of its namespace that are not OFFLINE and serve its queue
	// NamespaceEnabled is false when nothing is claimed there.
	NamespaceEnabled bool
	// RunningInQueue and RunningOfType count leases: of the queue, and of the run's type in it.
	RunningInQueue int
	RunningOfType  int
	// RunningOfKey counts leases of its ConcurrencyKey, and AheadInLine the runs that are Gated by it before this one.
	RunningOfKey int
	AheadInLine  int
	// LastPause is who paused the run, when and why, if that is known. The store leaves it to its caller, who has ListAudit.
	LastPause *AuditEvent
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
	// EndExpired ends runs whose ExpiresAt is not after Now, wherever they stand: as CANCELLED with EndedByFailure when that is their GraceUntil, else as
	// TIMED_OUT with DeadlineFailure. Their workers are rung. At most p.Limit, earliest first; it returns how many, and when the next expires (zero: none).
	EndExpired(ctx context.Context, p EndExpiredParams) (int, time.Time, error)
	// DueSchedules is the enabled schedules of enabled namespaces, not Broken, whose NextFireAt is not after now, earliest first and then by id, at most limit, with their
	// inputs left out; and when the next of the others fires (zero: none).
	DueSchedules(ctx context.Context, now time.Time, limit int) ([]Schedule, time.Time, error)
	// Prune deletes runs of p.Namespace that ended with p.Status before p.Before, with everything of theirs, oldest first, at most p.Limit. A run stays that is
	// Pinned, or that an open run refers to (its child, parent, handler, retry or continuation), or that is the child of an open run. It returns how many.
	Prune(ctx context.Context, p PruneParams) (int, error)
	// PruneRecords deletes workers that went OFFLINE before p.Workers and records of fired ticks from before p.Fires, at most p.Limit of each.
	PruneRecords(ctx context.Context, p PruneRecordsParams) error
}

// EndExpiredParams bounds one sweep.
type EndExpiredParams struct {
	Now   time.Time
	Limit int
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
	Namespace string
	Status    RunStatus
	Before    time.Time
	Limit     int
}

// PruneRecordsParams bounds one sweep; a zero time spares its kind.
type PruneRecordsParams struct {
	Workers time.Time
	Fires   time.Time
	Limit   int
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
	RingTimer                  // upkeep has something new to wait for: an attempt with a timeout, a deadline, a schedule
)

// Ring is one hint.
type Ring struct {
	Kind      RingKind
	Namespace string
	Name      string
	ID        ID
}
