package engine

import (
	"context"
	"time"
)

// Runs is what clients may ask for. Every change of Runs but StartRuns and SignalRun leaves an
// AuditEvent with its Actor, AuditID and Reason, in the same transaction, when it changed
// something; so do those of Schedules and Namespaces.
type Runs interface {
	// StartRuns makes runs, in one commit, and answers each in its place; one that is refused fails
	// alone (Started.Err). The namespace comes into being if it is new. For each start, in this
	// order:
	//
	//   - RequestID known in the namespace: the first answer again (RunID, Existed, with Repeated
	//     set), whatever has become of the run, or ErrConflict when type, queue, external id or
	//     input differ from the first time.
	//   - ExternalID of an active run (with ReuseNever: of any retained run, the newest): that run,
	//     Existed; with ReuseReject and an active run: ErrExists, with SubjectID the run. Existed
	//     answers are remembered for their RequestID.
	//   - otherwise a new PENDING run, Attempts 1, due at AvailableAt, whose queue is notified;
	//     NotifyTimer too when it has a DeadlineAt.
	//
	// Only runs of OriginUser are found by their external id. In a namespace that is disabled each
	// start is refused with NamespaceDisabled, unless it repeats a RequestID. Starts of one call
	// are applied in their order, so two of them may share an external id.
	//
	// With a Handoff, a new run that is due may be claimed by a waiting worker in the same commit,
	// if that is what a Claim with the Match's Slot, Now and Types right after the commit would
	// have done: of all that is due for it in the queue this run comes first, and it has no
	// ConcurrencyKey. Its queue is notified as Claimed then, and the run is notified.
	StartRuns(ctx context.Context, p StartRunsParams) ([]Started, error)
	// CancelRun without a Grace ends a PENDING, RUNNING or SLEEPING run as CANCELLED, with
	// EndedByFailure as its error, ends its lease and notifies its worker and its run. A run that
	// is CANCELLED already is fine again (Changed false); one that ended otherwise is RunEnded.
	//
	// With a Grace its code is told instead: CancelRequestedAt, CancelReason and GraceUntil are
	// set, its worker is notified if it has one, otherwise it becomes PENDING and due now (a pause
	// is over, too), and NotifyTimer. Where cancellation has been asked for already, only an
	// earlier GraceUntil counts (Changed false otherwise). See CompleteRun, FailRun and EndExpired
	// for how it ends.
	CancelRun(ctx context.Context, p EndRunParams) (RunEnd, error)
	// TerminateRun ends the run as CancelRun without a Grace does, with TERMINATED.
	TerminateRun(ctx context.Context, p EndRunParams) (RunEnd, error)
	// PauseRun keeps an open run from the workers: a lease is over (the worker is notified),
	// AvailableAt moves to HeldAt, and whatever would make the run due until ResumeRun sets HeldAt
	// instead. Its status becomes PENDING if it was RUNNING. Deadlines go on. Paused already is
	// fine; an ended run is RunEnded. It returns the run as it stands.
	PauseRun(ctx context.Context, p SteerParams) (Run, error)
	// ResumeRun gives a paused run back: AvailableAt is HeldAt again, and its queue is notified.
	// Not paused is fine; an ended run is RunEnded.
	ResumeRun(ctx context.Context, p SteerParams) (Run, error)
	// PinRun keeps a run from Prune, or lets it go.
	PinRun(ctx context.Context, p PinRunParams) (Run, error)
	// SignalRun keeps a signal for the run. The oldest open SIGNAL step of that name, Awaited or
	// held, consumes it at once: the step becomes COMPLETED with the payload and the run becomes
	// due if Park says so. Otherwise the signal waits for AwaitSignal. A SIGNAL whose WakeAt is not
	// after Now has timed out first. A SignalID that the run has had is fine again (Repeated),
	// whatever has become of the run since; an ended run is RunEnded otherwise. More than
	// MaxSignals that nothing has consumed, or a run past MaxRunBytes, is ErrTooLarge.
	SignalRun(ctx context.Context, p SignalRunParams) (Signalled, error)
	// RetryRun makes a new PENDING run out of one that has ended as FAILED, CANCELLED, TIMED_OUT or
	// TERMINATED (otherwise ErrPrecondition with its status), with RetryOf's fields and copies of
	// the latest attempts of its steps that are COMPLETED: all, those whose sequence is before
	// FromStep's, or none with Restart. Copies have new ids, no token, and sequences from 1 without
	// gaps; the signals that nothing had consumed are copied as well. FromStep that the run has not
	// begun is StepNotFound.
	//
	// RequestID known: the first answer again, or ErrConflict when the run, FromStep, Restart or
	// Input differ from the first time. An open run that is RetriedFrom this one, or that such a
	// run continued as: that one (Existed). A disabled namespace is NamespaceDisabled. The external
	// id held by another open run: ErrExists.
	RetryRun(ctx context.Context, p RetryRunParams) (Started, error)
	// OverrideStep records a result for a step of a run that is paused or has ended as FAILED,
	// CANCELLED, TIMED_OUT or TERMINATED (otherwise ErrPrecondition): a new attempt, COMPLETED with
	// Output or FAILED for good with Failure, with OverriddenBy and OverrideReason and a zero
	// token. The attempt before it stays as it is, though no longer the latest; one that is open
	// becomes FAILED with OverriddenFailure. A paused run is due when it is resumed. The same
	// result again is fine, and answers the attempt that stands; by the same Actor and for the same
	// Reason whatever has become of the run since. A step that was not begun is StepNotFound; what
	// would take the run past MaxRunBytes is ErrTooLarge.
	OverrideStep(ctx context.Context, p OverrideStepParams) (Step, error)
	// ImportRuns makes runs as they are given, ids included, in one commit, parents before their
	// children. Open ones come PAUSED, PENDING and with HeldAt = Now, without an output, an end or
	// a continuation, and hold no external id. An id that is taken is ErrExists and nothing is
	// made. RequestID belongs to the first run, and known answers it again (Repeated); ErrConflict
	// when that has another type, queue, external id or input.
	ImportRuns(ctx context.Context, p ImportRunsParams) (Started, error)
}

// StartRunsParams is the runs to be made, and who may have them at once.
type StartRunsParams struct {
	Sequenced
	Runs    []StartRun
	Handoff Handoff // nil: nobody waits
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
	Margin    time.Duration // see Store.Uncertainty; added to GraceUntil
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
