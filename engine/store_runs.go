package engine

import (
	"context"
	"time"
)

// Runs holds the operations of clients. Every operation except StartRuns and SignalRun writes an
// AuditEvent with its Actor, AuditID and Reason, in the same transaction, if it changed something.
// The same holds for Schedules and Namespaces.
type Runs interface {
	// StartRuns makes runs, all in one commit, and returns one Started for each, in the order of
	// p.Runs. A start that is refused fails alone (Started.Err). A new namespace is made, unless
	// p.NamespaceMustExist. For each start the first rule that applies counts:
	//
	//   - RequestID is known in the namespace: the first answer again (RunID, Existed, with
	//     Repeated set), no matter what happened to the run since. If type, queue, external id or
	//     input differ from the first time: ErrConflict. It is known as long as the run exists, and
	//     longer as Prune says; after the run was deleted, Existed is set and the input not compared.
	//   - The namespace is disabled: NamespaceDisabled.
	//   - ExternalID is that of an active run, or with ReuseNever of any retained run (the newest):
	//     that run, with Existed set, and OtherInput if its input differs. With ReuseReject and an
	//     active run, or if the active run has another type: ErrExists, with the run as SubjectID.
	//     Existed answers are recorded for their RequestID.
	//   - Otherwise a new PENDING run with Attempts 1, due at AvailableAt. Its queue is notified;
	//     with a DeadlineAt, NotifyTimer is sent too.
	//
	// The external id finds only runs of OriginUser. The starts of one call are applied in order,
	// so two of them may share an external id.
	//
	// With a Handoff, a waiting worker may claim a new run that is due in the same commit. This is
	// allowed only if a Claim right after the commit, with the Match's Slot, Now and Types, would
	// take the same run: it comes first among all due runs of its queue that the worker can take,
	// and it has no ConcurrencyKey. The queue is then notified with Claimed set, and the run is
	// notified.
	StartRuns(ctx context.Context, p StartRunsParams) ([]Started, error)
	// CancelRun without a Grace ends a PENDING, RUNNING or SLEEPING run as CANCELLED, with
	// EndedByFailure as its error. It ends the run's lease and notifies its worker and the run. A
	// run that is CANCELLED already is no error (Changed is false); one that ended in another way
	// is RunEnded.
	//
	// With a Grace, CancelRun asks the run's code to stop. It sets CancelRequestedAt, CancelReason
	// and GraceUntil, and sends NotifyTimer. It notifies the run's worker; a run without one
	// becomes PENDING and due now, and is no longer paused; a request to pause is dropped. If cancellation was
	// requested before, only an earlier GraceUntil has an effect (otherwise Changed is false). CompleteRun, FailRun
	// and EndExpired say how such a run ends. The code of its open children with CloseCancel, and
	// of theirs, is asked to stop by the same GraceUntil. A run or child that NeverRan has no code
	// to ask: it ends at once.
	CancelRun(ctx context.Context, p EndRunParams) (RunEnd, error)
	// TerminateRun ends the run as TERMINATED, in the same way as CancelRun without a Grace.
	TerminateRun(ctx context.Context, p EndRunParams) (RunEnd, error)
	// PauseRun keeps an open run from workers until ResumeRun, and returns the run. A run that nobody
	// holds, and with AtOnce any run, is Paused now: its lease ends, its worker is notified, and a
	// RUNNING run becomes PENDING. AvailableAt moves to HeldAt; while the run is Paused, events that
	// would make it due set HeldAt instead, and its DeadlineAt does not run (GraceUntil does). A run
	// that is paused already is no error; an ended run is RunEnded.
	//
	// Without AtOnce, a run that a worker holds becomes Pausing, and the worker is notified. A worker
	// with PausesRuns lets the steps that run finish, and then releases the run. From another worker
	// the run is taken once it has recorded something: after CompleteStep and StartChild, and after a
	// final FailStep or an AwaitSignal without Hold. In each case the run becomes Paused when its lease ends
	// without ending it, whatever ends the lease; HeldAt is then what AvailableAt would be. If the
	// run ContinuedAs another, that one is Paused. The pause request is dropped when the run ends in
	// another way. Asking again changes nothing, except that AtOnce takes effect.
	PauseRun(ctx context.Context, p PauseRunParams) (Run, error)
	// ResumeRun ends the pause and returns the run: HeldAt becomes AvailableAt again, DeadlineAt and
	// NamedDeadlineAt move by the time since PausedAt, and the queue is notified. If the run is only
	// Pausing, the request is dropped and its worker is notified. In any case the Divergences are
	// forgotten, so that each build may have the run again. With AcceptDivergence, OwedFrom grows by
	// one if there are any. A run with none of these is no error; an ended run is RunEnded.
	ResumeRun(ctx context.Context, p ResumeRunParams) (Run, error)
	// PinRun sets or clears Pinned, which keeps the run from Prune, and returns the run.
	PinRun(ctx context.Context, p PinRunParams) (Run, error)
	// SignalRun stores a signal for the run, which AwaitSignal or a claim consumes. If no worker
	// holds the run and a RUNNING SIGNAL step of that signal name is Awaited, the run becomes due;
	// but not if the step's WakeAt is before Now. If a worker holds the run, NotifyWait is sent
	// for each RUNNING SIGNAL step of that name.
	//
	// A SignalID that the run has received before is no error (Repeated), no matter what happened
	// to the run since, even if the signal moved to the run that it continued as. Otherwise an
	// ended run is RunEnded. It is ErrTooLarge if the run would pass MaxRunBytes, or if MaxSignals
	// signals wait already and none of the run's RUNNING SIGNAL steps waits for one of that name.
	SignalRun(ctx context.Context, p SignalRunParams) (Signalled, error)
	// RetryRun makes a new PENDING run from a run that ended as FAILED, CANCELLED, TIMED_OUT or
	// TERMINATED; any other status is ErrPrecondition with that status. The new run has the fields
	// of RetryOf, and copies of the latest attempts of the COMPLETED steps: all of them, those with
	// a sequence before FromStep's, or none with Restart. Copies get new ids, no token, and
	// sequences from 1 without gaps. The new run's OwedFrom is one more than their highest BegunIn. Signals that no step has consumed are copied too. A FromStep
	// that the run has not begun is StepNotFound. Without FromStep, Restart and KeepAll, a run that
	// began FUNCTION or CHILD steps after its first final failure, or after it was told to stop, is
	// RetryWouldKeep: those steps have probably undone what the retry would build on.
	//
	// A CHILD step that failed only because its run ended is copied too if the child has COMPLETED
	// since, or is still open; an open child becomes the new run's.
	//
	// A known RequestID gets the first answer again, or ErrConflict if the run, FromStep, Restart
	// or Input differ from the first time. If a run RetriedFrom this one is open, or a run that
	// such a retry continued as, RetryRun returns that run with Existed set. A disabled namespace
	// is NamespaceDisabled. An external id that another open run holds is ErrExists. The retry of a
	// run that a schedule or a failure started holds no external id, like that run.
	RetryRun(ctx context.Context, p RetryRunParams) (Started, error)
	// OverrideStep records a result for a step and returns the attempt that holds it. The run must
	// be paused, or have ended as FAILED, CANCELLED, TIMED_OUT or TERMINATED; otherwise
	// ErrPrecondition. The result is a new attempt with OverriddenBy, OverrideReason and a zero
	// token: COMPLETED with Output, or FAILED for good with Failure. The attempt before it is kept
	// but is no longer the latest; if it was open, it becomes FAILED with OverriddenFailure. The
	// run's OwedFrom grows by one. A paused run becomes due when it is resumed.
	//
	// If the step has the same result already, nothing changes and that attempt is returned; with
	// the same Actor and Reason too, no matter what happened to the run since. A step that was not
	// begun is StepNotFound. It is ErrTooLarge if the run would pass MaxRunBytes.
	OverrideStep(ctx context.Context, p OverrideStepParams) (Step, error)
	// ImportRuns makes runs with the ids and fields given, in one commit, parents before their
	// children, and returns the first. Open runs become paused and PENDING with HeldAt = Now,
	// without output, end or continuation, and hold no external id. OwedFrom is one more than the
	// highest BegunIn of the run's steps. If an id exists, it is
	// ErrExists and nothing is made. RequestID belongs to the first run: if it is known, the first
	// run is returned again (Repeated), or ErrConflict if that run has another type, queue,
	// external id or input.
	ImportRuns(ctx context.Context, p ImportRunsParams) (Started, error)
}

// StartRunsParams holds the runs to make, and the waiting workers that may claim them at once.
type StartRunsParams struct {
	Sequenced
	Runs    []StartRun
	Handoff Handoff // nil: no hand-off
	// NamespaceMustExist refuses what would make a namespace, except the default one, with
	// NamespaceUnknown. The decision is part of the transaction, so nothing brings back a namespace
	// that is deleted at the same time.
	NamespaceMustExist bool
}

// EndRunParams names a run to cancel or terminate.
type EndRunParams struct {
	Namespace string
	RunID     ID
	Grace     time.Duration // CancelRun only; 0: at once
	Reason    string
	By        Actor
	AuditID   ID // of the audit event
	Now       time.Time
	Margin    time.Duration // see Store.Uncertainty; added to GraceUntil
}

// RunEnd answers CancelRun and TerminateRun.
type RunEnd struct {
	Status     RunStatus
	Changed    bool      // this call ended the run or asked its code to stop
	GraceUntil time.Time // set if its code was asked to stop, by this call or before
}

// SteerParams names a run, and says who changes it and why.
type SteerParams struct {
	Namespace string
	RunID     ID
	Reason    string
	By        Actor
	AuditID   ID
	Now       time.Time
}

// PauseRunParams names a run to pause.
type PauseRunParams struct {
	SteerParams
	AtOnce bool // interrupts the steps that run
}

// ResumeRunParams names a run to resume.
type ResumeRunParams struct {
	SteerParams
	AcceptDivergence bool // code need not reach what is recorded so far
}

// PinRunParams names a run to pin or to unpin.
type PinRunParams struct {
	SteerParams
	Pinned bool
}

// SignalRunParams holds one signal.
type SignalRunParams struct {
	Namespace string
	RunID     ID
	Name      string
	SignalID  string // empty: a repeated call delivers it again
	Payload   Payload
	Now       time.Time
}

// Signalled answers SignalRun.
type Signalled struct {
	Repeated bool
}

// RetryRunParams names a run to retry. ID is for the new run.
type RetryRunParams struct {
	SteerParams
	ID        ID
	FromStep  string
	Restart   bool
	KeepAll   bool     // keeps results that were begun after the first failure, too
	Input     *Payload // replaces the input; only with Restart
	RequestID string
}

// OverrideStepParams holds a step's result: exactly one of Output and Failure. ID is for the new
// attempt.
type OverrideStepParams struct {
	SteerParams
	ID      ID
	Step    string
	Output  *Payload
	Failure *Failure
}

// ImportRunsParams holds complete runs to import.
type ImportRunsParams struct {
	Namespace string
	// NamespaceMustExist: see StartRunsParams.
	NamespaceMustExist bool
	RequestID          string
	Runs               []ImportedRun
	By                 Actor
	AuditID            ID
	Now                time.Time
}

// ImportedRun is one run of an import with its steps and signals. The fields of Run that name other
// runs (ParentRunID, ContinuedFrom, …) name runs of the same import or are unset.
type ImportedRun struct {
	Run     Run
	Steps   []Step
	Signals []Signal
}
