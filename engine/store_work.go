package engine

import (
	"context"
	"time"
)

// Work is what a lease allows. Every method but Claim carries a Lease and takes effect only while
// its token is the run's current one; the clock plays no part. Otherwise nothing changes and the
// answer is
//
//   - the first answer again, when this very write (same token, same content) has counted before,
//     whatever has become of the run since;
//   - StepConflict, when a write of this token has counted for the same step or end with other content;
//   - RunNotFound, when there is no such run in the namespace;
//   - LeaseLost with the run's status.
//
// BeginStep, SetNote and, with Hold, AwaitSignal and AwaitChildren are of use to the holder alone:
// repeated once the lease is over they may be LeaseLost although they have counted.
//
// Whenever a method ends a lease, SLEEPs and SIGNALs of the run that are due become COMPLETED with
// FinishedAt at their WakeAt (a SIGNAL with TimedOut), and its step attempts that still run as
// FUNCTION become FAILED with InterruptedFailure (their Failures unchanged), unless the run ends:
// then all that is still open becomes FAILED, with RunEndedFailure what is RUNNING, and with the
// failure and the FinishedAt that it has what is PENDING; that it was to be tried again is to be
// seen by its RetryAt. The method notifies the run whenever anything about it or its steps changed,
// the queue when the run became due for others, and the slot of the queue when a lease ended; at
// the run's end also NotifyEnd.
//
// Whatever ends a run, here and elsewhere, does in the same transaction all that its end concerns:
//
//   - The open CHILD step that started it becomes COMPLETED with its output, or FAILED with
//     ChildFailure, and the parent is due if Park says so. A result that would take the parent past
//     MaxRunBytes is the failure ChildTooLarge instead. A run that ContinuedAs another passes its
//     parent on to that one instead, and the step's output names in its metadata the run that it is
//     of (ChildOutput), since the step's ChildRunID is still the first; the run's own output stays
//     as it is.
//   - Its open children end as ParentClose says, and theirs in turn; not when it is tried again.
//     When it ContinuedAs another, those that would have ended become that one's children, started
//     by no step of it.
//   - FAILED or TIMED_OUT, unless it IsHandler: HandlerOf is started for its OnFailureWorkflow (in
//     OnFailureQueue, else its own queue), and for GlobalHandler in the queue of the first ONLINE
//     worker by id that serves that type (the first of its queues), else in the namespace's
//     FailureQueue, else not at all; nor is it when the run is of that type itself.
//   - Its schedule counts it, and starts the tick that it has Buffered when no other run of the
//     schedule is open; not while the schedule is paused (UpdateSchedule) or its namespace disabled
//     (UpdateNamespace).
//
// Whenever a run with a ConcurrencyKey loses its lease, or ends, or is paused, the first in the
// line of its key, of each lane and ConcurrencyLimit that is more than the leases of the key, is no
// longer Gated: it is PENDING or SLEEPING as before, with AvailableAt = HeldAt, and its queue is
// notified.
type Work interface {
	// Claim gives due runs to claim slots, in the order of both: first those due for
	// StarvationAfter or longer, then by priority, then by AvailableAt, then by ID. It takes only
	// runs of the namespace, queue and types whose requirements the offers meet, that are PENDING
	// or SLEEPING with AvailableAt <= Now; at most one a slot, and no more than QueueLimit and
	// TypeLimits leave free (the RUNNING runs of that queue, or of that type in it, across all
	// workers and servers). Slots of workers that are not ONLINE, or unknown, get nothing.
	// Concurrent claims never get the same run. While a queue has more due than is asked for, a run
	// that another server makes due behind this one's back may have its place up to 16 claims
	// later.
	//
	// A run whose ConcurrencyKey has ConcurrencyLimit leases or more, of runs of its type in its
	// namespace, is not taken but becomes Gated: AvailableAt moves to HeldAt, WaitingFor is
	// unchanged, and it costs no later claim anything. Concurrent claims never pass the limit.
	// Nothing is claimed in a namespace that is disabled.
	//
	// A claimed run becomes RUNNING under the slot's token, with StartedAt on its first claim; its
	// due SLEEP and SIGNAL steps become COMPLETED with FinishedAt at their WakeAt, and no step of
	// it is Awaited any more. Its cost does not depend on how many runs have ended, sleep, are
	// paused or gated, or wait for others.
	//
	// A Claim alone may answer when it is committed for all to see, but not on disk yet. Should it
	// be lost, the run is due as before and its token is refused; whatever is acknowledged under
	// the token takes the claim to the disk with it.
	Claim(ctx context.Context, p ClaimParams) (Claimed, error)
	// BeginStep records that a step runs, or says that it need not. Of the step's latest attempt:
	//
	//   - COMPLETED: nothing to execute, Step has the output. FAILED for good: nothing to execute, Step has the error.
	//   - RUNNING under this token: that attempt again (with its ID), to execute.
	//   - PENDING with RetryAt after Now, and after the claim: ErrPrecondition.
	//   - PENDING by a failure under this token of the execution with this very StartedAt, before
	//     RetryAt: the word came late. Nothing to execute.
	//   - PENDING, interrupted, or none: a new attempt RUNNING, to execute. A PENDING one becomes
	//     FAILED; neither is the latest any more.
	//
	// A SLEEP is begun without WakeAt; Sleep sets it. A step of another kind under that name is a StepConflict. The
	// MaxSteps+1st step is ErrTooLarge, as is whatever would take the run past MaxRunBytes.
	BeginStep(ctx context.Context, p BeginStepParams) (Begun, error)
	// CompleteStep records a step's result for good: it completes the RUNNING attempt, or makes a
	// new attempt already completed (its place in the sequence is the next one, when the step is
	// new; Latest moves to it, as with BeginStep). A step that is COMPLETED or FAILED for good by
	// another lease is a StepConflict. A SLEEP cannot be completed: ErrPrecondition. LeaseLosses
	// count anew.
	CompleteStep(ctx context.Context, p CompleteStepParams) (Step, error)
	// FailStep records a failure of the step's code and asks AfterStepFailed, with the attempt's
	// own policy if it has one, what follows. Retry: the attempt is PENDING until RetryAt, the
	// run's Attempts grow by one and, unless Hold, the run is parked (see Park) and the lease is
	// over. Final: the attempt is FAILED, the lease goes on, and its code gets the error. What is
	// reported of a PENDING attempt with another StartedAt than it has is the failure of its retry,
	// and counts also before RetryAt, for the worker had another clock; with the same StartedAt, or
	// none, and the same failure it is a repetition.
	FailStep(ctx context.Context, p FailStepParams) (Verdict, error)
	// Sleep sets a timer: the step becomes a RUNNING SLEEP with WakeAt = Until, or StartedAt = Now
	// and WakeAt = Now + Duration + Margin. Unless Hold, the run is parked and the lease is over; with an
	// Until that has passed it is due now, and no earlier. Where the timer stands already (same
	// Until or Duration), it keeps its WakeAt; a step of another kind, or a SLEEP that is over, is
	// a StepConflict. One that is PENDING, to be run again, is set anew, but before its RetryAt it
	// is ErrPrecondition.
	Sleep(ctx context.Context, p SleepParams) error
	// AwaitSignal has the step consume the oldest signal of that name, or wait for one. Consumed:
	// it is COMPLETED with the payload and the lease goes on. Otherwise it is RUNNING and Awaited,
	// with WakeAt = Now + Timeout + Margin if there is one, and unless Hold, the run is parked and the lease
	// is over (Waiting). A step that has ended is answered as it stands; one that waits already
	// keeps its WakeAt. A step of another kind or with another signal name is a StepConflict.
	AwaitSignal(ctx context.Context, p AwaitSignalParams) (AwaitedSignal, error)
	// StartChild records a CHILD step, RUNNING with ChildRunID, and makes the run p.Child as
	// StartRuns would, with ParentRunID and ParentStepID set here. A CHILD step of that name is
	// answered as it stands, and nothing is started; one of another kind is a StepConflict, and so
	// is one made under this token with another type, queue, external id or input. An external id
	// that an open run holds is ErrExists, and nothing is recorded.
	StartChild(ctx context.Context, p StartChildParams) (Step, error)
	// AwaitChildren answers the CHILD steps of these children that have ended, when that is all of
	// them, or with Any at least one. Otherwise the open ones become Awaited (by themselves with
	// Any or when it is only one, else as a group of their own) and, unless Hold, the run is parked
	// and the lease is over: no steps are answered. A run that is not a child of this one is
	// RunNotFound.
	AwaitChildren(ctx context.Context, p AwaitChildrenParams) ([]Step, error)
	// SetNote writes the run's own line for lists.
	SetRunNote(ctx context.Context, p SetNoteParams) error
	// CompleteRun ends the run as COMPLETED with its output; as CANCELLED, with the output kept and
	// EndedByFailure as its error, when cancellation had been asked for. With ContinueAs, unless it
	// is CANCELLED so, the next run is made as Continuation says, in the same transaction: external
	// id, parent and the signals that nothing has consumed pass on to it. An external id of its own
	// that another open run holds is ErrExists. Repeated with a next run of another type, queue,
	// external id or input it has other content.
	CompleteRun(ctx context.Context, p CompleteRunParams) (Completed, error)
	// FailRun asks AfterRunFailed what follows. Retry: the run is PENDING until RetryAt with
	// Attempts and Failures one higher and this Error, which it has until it ends or fails again,
	// the lease is over, and its steps that failed for good become PENDING with that RetryAt and no
	// Failures, to be run again. Final: the run ends as FAILED with this error. When cancellation
	// had been asked for, it ends as CANCELLED with EndedByFailure.
	FailRun(ctx context.Context, p FailRunParams) (RunVerdict, error)
	// Release hands the run back unfinished: due at once, or with Park as Park says of its steps.
	// It counts as nothing: no attempt, no loss.
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
	Slots        []ClaimSlot
	HistoryBytes int // of history a task, about; always at least one step
	Now          time.Time
}

// Claimed answers Claim: Tasks are in the order in which they were handed out, with Lease.Token
// telling which slot got which.
type Claimed struct {
	Tasks []Task
	// NextDue is when the next run that these slots could take becomes due, so that nobody needs to
	// poll: later than Now, or zero when no such run waits. It is set only when slots were left
	// over.
	NextDue time.Time
	// Limited says that slots were left over although runs are due, because of a limit: a
	// notification of the queue's slot is the moment to come again.
	Limited bool
	// Offline names the workers among the slots that got nothing because they are not ONLINE, each
	// once, in the slots' order.
	Offline []string
}

// BeginStepParams announces a step. ID is for the attempt, if it is a new one.
type BeginStepParams struct {
	Sequenced
	Lease        Lease
	ID           ID
	Name         string
	Kind         StepKind
	Input        Payload
	RetryPolicy  *RetryPolicy
	StartToClose time.Duration // TimeoutAt = Now + this; 0: the run's own, else DefaultStepTimeout. Not for a SLEEP.
	StartedAt    time.Time     // of the execution, which it tells from others of the step; unset: Now
	Now          time.Time
	Margin       time.Duration // see Store.Uncertainty; added to TimeoutAt
}

// Begun answers BeginStep.
type Begun struct {
	Step    Step
	Execute bool
}

// CompleteStepParams is a step's result. ID is for the attempt, if it is a new one.
type CompleteStepParams struct {
	Sequenced
	Lease     Lease
	Step      StepRef
	ID        ID
	Output    Payload
	StartedAt time.Time // for a step reported without BeginStep; unset: Now
	Now       time.Time
}

// FailStepParams is a step's failure. ID is for the attempt, if it is a new one.
type FailStepParams struct {
	Sequenced
	Lease       Lease
	Step        StepRef
	ID          ID
	Failure     Failure
	RetryPolicy *RetryPolicy // for a step reported without BeginStep
	StartedAt   time.Time    // as with BeginStep
	Hold        bool         // parallel siblings are still at work: keep the lease in any case
	Now         time.Time
	Margin      time.Duration // see Store.Uncertainty; added to RetryAt
	Jitter      float64       // [0,1)
}

// SleepParams is a timer: Until, or Duration when that is unset. ID is for the attempt, if it is a new one.
type SleepParams struct {
	Sequenced
	Lease    Lease
	Step     StepRef
	ID       ID
	Duration time.Duration
	Until    time.Time
	Hold     bool
	Now      time.Time
	Margin   time.Duration // see Store.Uncertainty; added to WakeAt where Duration counts
}

// AwaitSignalParams is a wait for a signal. ID is for the attempt, if it is a new one.
type AwaitSignalParams struct {
	Sequenced
	Lease   Lease
	Step    string
	Signal  string
	ID      ID
	Timeout time.Duration // 0: no limit
	Hold    bool
	Now     time.Time
	Margin  time.Duration // see Store.Uncertainty; added to WakeAt
}

// AwaitedSignal answers AwaitSignal.
type AwaitedSignal struct {
	Step    Step // COMPLETED, unless Waiting
	Waiting bool
}

// StartChildParams is a child to be started. ID is for the attempt, if it is a new one.
type StartChildParams struct {
	Sequenced
	Lease Lease
	Step  string
	ID    ID
	Child StartRun
	Now   time.Time
}

// AwaitChildrenParams is a wait for children.
type AwaitChildrenParams struct {
	Sequenced
	Lease    Lease
	Children []ID
	Any      bool
	Hold     bool
	Now      time.Time
}

// SetNoteParams is a run's own line.
type SetNoteParams struct {
	Sequenced
	Lease Lease
	Note  string
	Now   time.Time
}

// CompleteRunParams is a run's result.
type CompleteRunParams struct {
	Sequenced
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
	Sequenced
	Lease   Lease
	Failure Failure
	Now     time.Time
	Margin  time.Duration // see Store.Uncertainty; added to RetryAt
	Jitter  float64
}

// ReleaseParams hands a run back.
type ReleaseParams struct {
	Sequenced
	Lease Lease
	Park  bool
	Now   time.Time
}
