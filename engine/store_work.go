package engine

import (
	"context"
	"slices"
	"time"
)

// Work holds the operations of workers.
//
// # Leases
//
// Every method except Claim carries a Lease. It takes effect only while the lease's token is the
// run's current one; the time plays no part. Otherwise nothing changes, and the method returns
//
//   - the first answer again, if this write (same token, same content) took effect before, no
//     matter what happened to the run since;
//   - StepConflict, if a write of this token took effect for the same step or end with other
//     content;
//   - RunNotFound, if there is no such run in the namespace;
//   - LeaseLost with the run's status in all other cases.
//
// Only the lease's holder needs the answers of BeginStep and SetRunNote and, with Hold, of Sleep,
// AwaitSignal and AwaitChildren. If these are repeated after the lease has ended, they may return
// LeaseLost although they took effect.
//
// # Order of results
//
// A step gets Settled, the next number of its run, in the operation of the lease's holder that gives
// it its final result or first returns that result: CompleteStep, FailStep that is final, Sleep that
// is over, AwaitSignal that is answered, and StartChild and AwaitChildren that return an ended child.
// A result from outside (the end of a child, a timeout by TimeoutSteps) is Unsettled until then, or
// until the next claim. An attempt that is to run again has none.
//
// OverrideStep keeps the Settled of what it replaces; if that had no result, the new one is
// Unsettled. Copies and imports keep it, too. So do they keep Branch, which an attempt has from the
// operation that began it, and BegunIn.
//
// # When a lease ends
//
// Whenever a method ends a lease:
//
//   - RUNNING attempts of FUNCTION steps become FAILED with InterruptedFailure, their Failures
//     unchanged.
//   - If the run ends, SLEEP steps that are due become COMPLETED and Unsettled, with FinishedAt at
//     their WakeAt. All other open steps become FAILED: a RUNNING one with RunEndedFailure, a
//     PENDING one with the failure and FinishedAt that it has. The RetryAt of the latter still shows
//     that a retry was due.
//
// The method notifies the run when it or one of its steps changed, the queue when the run became
// due for other workers, and the slot of the queue (NotifySlot) when a lease ended. At the run's
// end it also sends NotifyEnd.
//
// # When a run ends
//
// Every method that ends a run, here and in the other interfaces, does the following in the same
// transaction:
//
//   - Parent: the open CHILD step that started the run becomes COMPLETED with the run's output, or
//     FAILED with ChildFailure. The parent becomes due if Park says so. A result that would take
//     the parent past MaxRunBytes becomes the failure ChildTooLarge. If the run ContinuedAs
//     another, the parent waits for that one instead. The step's ChildRunID remains the first run;
//     the metadata of the step's output names the run that it comes from (ChildOutput). The run's
//     own output does not change.
//   - Children: its open children end as ParentClose says, and so do theirs. If the run was asked
//     to stop and ends before its GraceUntil, other than by TerminateRun or CancelRun without a
//     Grace, children with CloseCancel do not end: their code is asked to stop by that GraceUntil,
//     unless it was before. None of this happens when the run is retried by its policy. If the run
//     ContinuedAs another, the children that would have ended become children of that one, started
//     by none of its steps.
//   - Failure handlers, if it is FAILED or TIMED_OUT and not a handler itself (IsHandler):
//     HandlerOf is started for its OnFailureWorkflow, in OnFailureQueue or else in the run's queue.
//     HandlerOf is also started for GlobalHandler, in the first queue of the first ONLINE worker
//     (by id) that serves that type, or else in the namespace's FailureQueue. It is not started if
//     there is neither, if the run itself is of that type, or if the run is BelowHandler, as the
//     descendants of a handler are (ChildOf, Continuation, RetryOf).
//   - Signals: the run's UnreadSignals counts those that no step has consumed.
//   - Schedule: its schedule counts the run. If no other run of the schedule is open, its Buffered
//     tick starts, but not while the schedule is paused (UpdateSchedule) or its namespace is
//     disabled (UpdateNamespace).
//
// # Concurrency keys
//
// The runs of a type in a namespace share the places of their ConcurrencyKey. A run of ScopeSlot has
// a place while it has a lease. A run of ScopeOpen takes one at its first claim and has it until its
// end (HasPlace), whatever it waits for meanwhile and however it is retried or paused. Each run takes a
// place by its own scope, and only while fewer than its own ConcurrencyLimit are taken, by runs of
// either scope.
//
// A run that another continues as keeps the place, if it has the same type, key and scope: the chain
// is one piece of work, and nothing that waits for a place may start in its middle. Otherwise it
// takes one at its first claim, as retries by RetryRun and imported runs do. Copies keep places.
//
// Runs that are Gated wait in line for their ConcurrencyKey, in each lane and for each
// ConcurrencyLimit. Whenever a run of ScopeSlot loses its lease, and whenever a run with a key ends,
// or is paused without a place, the first run in every such line whose limit exceeds the number of
// the key's places that are taken is no longer Gated. It stays PENDING or SLEEPING, its AvailableAt
// becomes HeldAt, and its queue is notified.
type Work interface {
	// Claim assigns due runs to claim slots, both in order. The first ByAge runs are those that have
	// been due longest, by AvailableAt and ID, whatever their priority; the others go by priority,
	// AvailableAt and ID. A run that a limit or its key holds back is passed over. Claim takes only
	// runs of the namespace, queue and types that are PENDING or SLEEPING with AvailableAt <= Now,
	// and whose requirements the offers meet. It takes at most one run per slot, and keeps within
	// QueueLimit and TypeLimits. These limit the RUNNING runs of the queue, and of a type in it,
	// across all workers and servers. Slots of workers that are unknown or not ONLINE get nothing,
	// and nothing is claimed in a disabled namespace.
	//
	// Runs that are Apart come before all other runs, by priority, AvailableAt and ID; they count for
	// ByAge. A run that is DivergedIn the BuildID is passed over as if it did not wait. A suspect (see
	// Workers) gets the first slot whose worker may hold it (Suspects.May) and is passed over if there
	// is none. Then Limited is set and NextDue is at most SuspectRetry away. While more than 1000 runs
	// of a queue are due apart, only 1000 are considered. A claim reads nothing for such runs while
	// none waits.
	//
	// Concurrent claims never get the same run. While a queue has more due runs than are asked for,
	// a run that another server makes due may be claimed up to 16 claims later than its place in
	// the order says.
	//
	// A run that needs a place of its ConcurrencyKey is not taken if ConcurrencyLimit or more of them
	// are taken. It becomes Gated: AvailableAt moves to HeldAt, WaitingFor does not
	// change, and later claims pay nothing for it. Concurrent claims never exceed the limit.
	//
	// A claimed run becomes RUNNING under the slot's token; its first claim sets StartedAt. Then
	// the following steps of it are settled, in order of their ends and then of their sequences:
	//
	//   - Its due SLEEP steps become COMPLETED, with FinishedAt at their WakeAt, which is their end.
	//   - Its RUNNING SIGNAL steps that are Awaited consume the oldest signal of their name that was
	//     received by their WakeAt; its ReceivedAt is their end. Those without such a signal that are
	//     due become COMPLETED with TimedOut and FinishedAt at their WakeAt.
	//   - Unsettled results, at their FinishedAt.
	//
	// None of its steps is Awaited any more.
	//
	// If Kept names the slot's worker with the token of the run's last lease, and that lease was ended
	// by its holder because the code waits (a park), the task has this Base. While nobody holds a
	// parked run, its steps change only by getting results, which this claim settles, and by
	// OverrideStep, after which there is no Base until the next park. So Settled is the counter of the
	// changes, and the steps settled here are all that the worker does not know. More than HistoryBytes
	// of them are no Base but a whole History.
	//
	// With Prefer, a run that Kept says is kept by a worker gets the first slot of that worker
	// (Choose). If the worker has none here, but Room, the run is passed over until KeepTime after it
	// was due. Suspects get their slots whatever Kept says.
	//
	// The cost of a claim does not depend on how many runs
	// have ended, sleep, are paused or Gated, or wait for others.
	//
	// Claim may return when its commit is visible to all but not yet on disk. If it is lost, the
	// run is due as before and its token is refused. A write that is acknowledged under the token
	// has the claim on disk too.
	Claim(ctx context.Context, p ClaimParams) (Claimed, error)
	// BeginStep records that a step runs, or says that it need not run. The step's latest attempt
	// decides:
	//
	//   - COMPLETED: nothing to execute; Step has the output.
	//   - FAILED for good: nothing to execute; Step has the error.
	//   - RUNNING under this token: the same attempt (with its ID), to execute.
	//   - PENDING before RetryAt, because the execution with this StartedAt failed under this
	//     token: nothing to execute. The call was overtaken by its own FailStep.
	//   - PENDING otherwise, with RetryAt after Now and after the claim: ErrPrecondition.
	//   - PENDING in all other cases, interrupted, or no attempt: a new RUNNING attempt, to
	//     execute. It is the latest; a PENDING one before it becomes FAILED.
	//
	// A SLEEP is begun without WakeAt; Sleep sets it. If a step of another kind has the name, it is
	// a StepConflict. It is ErrTooLarge if the run would have more than MaxSteps steps or pass
	// MaxRunBytes.
	BeginStep(ctx context.Context, p BeginStepParams) (Begun, error)
	// CompleteStep records a step's result for good and returns the attempt. It completes the
	// RUNNING attempt, or makes a new attempt that is completed already: the latest one, and for a
	// new step with the next sequence. It starts the count of LeaseLosses again (AfterLeaseLost). A
	// step that is COMPLETED or FAILED for good under another lease is a StepConflict. A SLEEP
	// cannot be completed: ErrPrecondition. After CancelledStep no open step is Awaited, so later
	// signals are not consumed for waits that the cancellation has ended.
	CompleteStep(ctx context.Context, p CompleteStepParams) (Step, error)
	// FailStep records a failure of the step's code and returns what AfterStepFailed decides, by
	// the attempt's own policy or else the run's RetryPolicy.
	//
	// Retry: the attempt is PENDING until RetryAt, and the run's StepRetries grow by one. Unless Hold
	// is set, the run is parked (see Park) and the lease ends. Final: the attempt is FAILED and the
	// lease continues, so that the code gets the error.
	//
	// A report about a PENDING attempt is the failure of its retry if StartedAt differs from the
	// attempt's. It counts even before RetryAt, because the worker's clock may differ. The same
	// failure with the same StartedAt, or with none, is a repetition.
	FailStep(ctx context.Context, p FailStepParams) (Verdict, error)
	// Sleep sets a timer and returns its step. The step becomes a RUNNING SLEEP with WakeAt = Until,
	// or with StartedAt = Now and WakeAt = Now + Duration + Margin. Unless Hold is set, the run is
	// parked and the lease ends. A timer that was set before with the same Until or Duration keeps
	// its WakeAt. A PENDING SLEEP, which is to run again, is set again; before its RetryAt that is
	// ErrPrecondition. A step of another kind is a StepConflict.
	//
	// If WakeAt is not after Now, the step is COMPLETED in the same write. The lease then continues
	// with Hold or Stay; otherwise it ends, and the run is due now. With Over, a RUNNING SLEEP with a
	// WakeAt is COMPLETED in any case and the lease continues: its timer has ended at the holder. A
	// SLEEP that is COMPLETED already is returned with Over and, if the timer is the same, with Hold
	// or Stay. Any other SLEEP that has ended is a StepConflict, and Over of a step that was not begun
	// is StepNotFound.
	//
	// A Sleep without Hold and Over that is repeated after the lease has ended returns the step as
	// RUNNING, as when it parked the run, also if the step has a result by now: Settled would say that
	// the lease continues.
	Sleep(ctx context.Context, p SleepParams) (Step, error)
	// AwaitSignal consumes the oldest signal of that name for the step, or waits for one. If there
	// is one that was received by the step's WakeAt, the step is COMPLETED with its payload and the
	// lease continues. If there is none and WakeAt is not after Now, the step is COMPLETED with
	// TimedOut and FinishedAt at its WakeAt. Otherwise the step is RUNNING and Awaited, with WakeAt =
	// Now + Timeout + Margin if there is a Timeout; unless Hold is set, the run is parked and the
	// lease ends (Waiting). A step that has ended is returned unchanged; one that waits already keeps
	// its WakeAt. A step of another kind or for another signal is a StepConflict.
	AwaitSignal(ctx context.Context, p AwaitSignalParams) (AwaitedSignal, error)
	// StartChild records a CHILD step, RUNNING with ChildRunID, and makes the run p.Child as
	// StartRuns would, with ParentRunID and ParentStepID set. It returns the step. If a CHILD step
	// has that name already, it returns that step and starts nothing. A StepConflict is a step of
	// another kind, or one made under this token with another type, queue, external id or input. An
	// external id that an open run holds is ErrExists, and nothing is recorded. The same is
	// ErrPrecondition (PlaceOfAncestor) for a child with a ConcurrencyKey of which this run, or for a
	// child of ScopeOpen one of its ancestors, has a place until its end, unless it is CloseAbandon.
	StartChild(ctx context.Context, p StartChildParams) (Step, error)
	// AwaitChildren returns the CHILD steps of these children that have ended, if all of them have
	// or, with Any, at least one: the first to end, as many as have Bytes of output together and at
	// least one. Otherwise it returns no steps and the open ones become Awaited:
	// as one group, or each by itself with Any or if there is only one. Unless Hold is set, the run
	// is then parked and the lease ends. A run that is not a child of this run is RunNotFound.
	AwaitChildren(ctx context.Context, p AwaitChildrenParams) ([]Step, error)
	// SetRunNote sets the run's note, which lists show.
	SetRunNote(ctx context.Context, p SetNoteParams) error
	// CompleteRun ends the run as COMPLETED with its output. If cancellation was requested, the run
	// ends as CANCELLED, with the output and with EndedByFailure as its error. With ContinueAs it
	// also makes the next run as Continuation says, unless the run is CANCELLED: external id and
	// parent pass on to it. The signals that no step has consumed move to it. They keep their
	// sequences, and their bytes count for it and for the ended run no longer. If ContinueAs has an external
	// id of its own that another open run holds, it is ErrExists; with another key of its own, it may be
	// PlaceOfAncestor, as in StartChild. A repetition with a next run of
	// another type, queue, external id or input has other content.
	//
	// With Unreached, the run keeps the names. It is NotAlone, and the lease continues, if an ONLINE
	// worker serves the run (Worker.Serves) that has no build, or another build than the lease's worker
	// and not one that has reported a divergence. It may reach the records, so the caller has to release
	// the run with a Divergence.
	//
	// The signals that the Unreceived steps consumed are not consumed any more; the steps do not
	// change. The same holds for FailRun if the run ends.
	CompleteRun(ctx context.Context, p CompleteRunParams) (Completed, error)
	// FailRun records a failure of the run's code and returns what AfterRunFailed decides by the run's
	// OwnPolicy.
	//
	// Retry: the lease ends and the run is PENDING until RetryAt, with Failures and OwedFrom one
	// higher. It keeps this Error until it ends or fails again. Its steps that failed
	// for good become PENDING with the same RetryAt and no Failures, to be run again. Final: the run ends as
	// FAILED with this error, or as CANCELLED with EndedByFailure if cancellation was requested.
	// Unreached is as in CompleteRun.
	FailRun(ctx context.Context, p FailRunParams) (RunVerdict, error)
	// Release gives the run back unfinished. It is due at once or, with Park, when Park says. It
	// counts as neither an attempt nor a loss.
	//
	// With a Divergence, the run is due at once, and Divergences holds the report under the BuildID of
	// the worker; a worker without one is ErrInvalid. Claims then pass the run over for workers of
	// that build, NotifyDiverged is sent, and PauseDiverged decides whether the run is paused. All
	// Divergences of a run are forgotten when its worker begins, completes or fails a step, sets a
	// timer, waits for a signal for the first time or starts a child; when FailRun retries the run; and
	// when PauseRun, ResumeRun or OverrideStep changes it.
	Release(ctx context.Context, p ReleaseParams) error
}

// ClaimParams holds the slots that wait at one queue, and what they have in common.
type ClaimParams struct {
	Namespace    string
	Queue        string
	Types        []string // at least one
	Offers       []Offer
	BuildID      string         // of the slots' workers; empty: none
	QueueLimit   int            // 0: none
	TypeLimits   map[string]int // for types without an entry none
	Slots        []ClaimSlot
	ByAge        int // so many of the runs are taken by age; see ClaimTurn
	HistoryBytes int // approximate limit of history per task; always at least one step
	// Kept says what is known about the memory of workers. It must not block; nil: nothing.
	Kept   func(run ID) KeptRun
	Prefer bool // a kept run may be due that one of several workers should get
	Now    time.Time
}

// Choose returns the place among the slots, of which there is at least one, of the slot that a due run
// should get. If the run is to be passed over for now, it returns until when.
func (p *ClaimParams) Choose(run ID, due time.Time, slots []ClaimSlot) (place int, until time.Time) {
	if !p.Prefer || p.Kept == nil {
		return 0, time.Time{}
	}
	kept := p.Kept(run)
	if kept.WorkerID == "" {
		return 0, time.Time{}
	}
	place = slices.IndexFunc(slots, func(g ClaimSlot) bool { return g.WorkerID == kept.WorkerID })
	if place >= 0 {
		return place, time.Time{}
	}
	if until = due.Add(KeepTime); kept.Room && until.After(p.Now) {
		return 0, until
	}
	return 0, time.Time{}
}

// KeptBy returns the token under which the slot's worker parked the run that it keeps; zero if it does
// not.
func (p *ClaimParams) KeptBy(worker string, run ID) Token {
	if p.Kept == nil {
		return Token{}
	}
	if kept := p.Kept(run); kept.WorkerID == worker {
		return kept.Token
	}
	return Token{}
}

// Claimed answers Claim.
type Claimed struct {
	// Tasks are in the order in which they were assigned; Lease.Token tells the slot.
	Tasks []Task
	// NextDue is when the next run that these slots could take becomes due, so that callers need
	// not poll: later than Now, or zero if no such run waits. It is set only if slots are left
	// over.
	NextDue time.Time
	// Limited says that slots are left over although runs are due, because of a limit. Claim again
	// after the queue's NotifySlot.
	Limited bool
	// Offline names the workers whose slots got nothing because the workers are not ONLINE, each
	// once, in the order of the slots.
	Offline []string
}

// BeginStepParams names a step to begin. ID and Branch are for the attempt, if it is a new one; so
// they are in all operations on steps.
type BeginStepParams struct {
	Sequenced
	Lease        Lease
	ID           ID
	Name         string
	Kind         StepKind
	Branch       string
	Input        Payload
	RetryPolicy  *RetryPolicy
	StartToClose time.Duration // TimeoutAt = Now + this; 0: the run's own, else DefaultStepTimeout. Not for a SLEEP.
	StartedAt    time.Time     // of the execution, identifies it among those of the step; unset: Now
	Now          time.Time
	Margin       time.Duration // see Store.Uncertainty; added to TimeoutAt
}

// Begun answers BeginStep.
type Begun struct {
	Step    Step
	Execute bool
}

// CompleteStepParams holds a step's result. ID is for the attempt, if it is a new one.
type CompleteStepParams struct {
	Sequenced
	Lease     Lease
	Step      StepRef
	ID        ID
	Branch    string
	Output    Payload
	StartedAt time.Time // for a step reported without BeginStep; unset: Now
	Now       time.Time
}

// FailStepParams holds a step's failure. ID is for the attempt, if it is a new one.
type FailStepParams struct {
	Sequenced
	Lease       Lease
	Step        StepRef
	ID          ID
	Branch      string
	Failure     Failure
	RetryPolicy *RetryPolicy // for a step reported without BeginStep
	StartedAt   time.Time    // as in BeginStepParams
	Hold        bool         // parallel steps still run: keep the lease in any case
	Now         time.Time
	Margin      time.Duration // see Store.Uncertainty; added to RetryAt
	Jitter      float64       // [0,1)
}

// SleepParams holds a timer: Until, or Duration if Until is unset. ID is for the attempt, if it is
// a new one.
type SleepParams struct {
	Sequenced
	Lease    Lease
	Step     StepRef
	ID       ID
	Branch   string
	Duration time.Duration
	Until    time.Time
	Hold     bool
	Over     bool // the timer has ended at the holder; Duration and Until do not count
	Stay     bool // the lease continues if the sleep is over
	Now      time.Time
	Margin   time.Duration // see Store.Uncertainty; added to WakeAt where Duration counts
}

// AwaitSignalParams describes a wait for a signal. ID is for the attempt, if it is a new one.
type AwaitSignalParams struct {
	Sequenced
	Lease   Lease
	Step    string
	Signal  string
	ID      ID
	Branch  string
	Timeout time.Duration // 0: no limit
	Hold    bool
	Now     time.Time
	Margin  time.Duration // see Store.Uncertainty; added to WakeAt
}

// AwaitedSignal answers AwaitSignal.
type AwaitedSignal struct {
	Step    Step // COMPLETED unless Waiting
	Waiting bool
}

// StartChildParams describes a child to start. ID is for the attempt, if it is a new one.
type StartChildParams struct {
	Sequenced
	Lease  Lease
	Step   string
	ID     ID
	Branch string
	Child  StartRun
	Now    time.Time
}

// AwaitChildrenParams names the children to wait for.
type AwaitChildrenParams struct {
	Sequenced
	Lease    Lease
	Children []ID
	Any      bool
	Hold     bool
	Bytes    int // limit of the output that is returned; 0: none
	Now      time.Time
}

// SetNoteParams holds a run's note.
type SetNoteParams struct {
	Sequenced
	Lease Lease
	Note  string
	Now   time.Time
}

// CompleteRunParams holds a run's result.
type CompleteRunParams struct {
	Sequenced
	Lease      Lease
	Output     Payload
	ContinueAs *StartRun // nil: the run does not continue
	Unreached  []string  // recorded calls that the code has not made
	Unreceived []string  // SIGNAL steps whose results the code has not received
	Now        time.Time
}

// Completed answers CompleteRun.
type Completed struct {
	Status      RunStatus
	ContinuedAs ID
}

// FailRunParams holds a run's failure.
type FailRunParams struct {
	Sequenced
	Lease      Lease
	Failure    Failure
	Unreached  []string // recorded calls that the code has not made; kept if the run ends
	Unreceived []string // as in CompleteRunParams; without effect if the run is retried
	Now        time.Time
	Margin     time.Duration // see Store.Uncertainty; added to RetryAt
	Jitter     float64
}

// ReleaseParams names a run to give back.
type ReleaseParams struct {
	Sequenced
	Lease      Lease
	Park       bool
	Divergence *Divergence // without BuildID and ReportedAt; not with Park. nil: none
	Now        time.Time
}
