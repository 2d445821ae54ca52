package storelogic

import (
	"time"

	"github.com/kagzi/kagzi/engine"
)

// Tx is one transaction. What it reads is as the transaction's own writes have left it, and where
// others may write at the same time, what is read to be changed is locked until the end. An error
// of a Tx ends the operation and the transaction; operations return it as it is.
//
// A Run read twice is two values: operations read each run once (unitOfWork).
type Tx interface {
	// Run is the run with its lease, without its payloads; nil when there is none. An empty namespace is any.
	Run(namespace string, id engine.ID) (*Run, error)
	// Payloads is a run's input and output.
	Payloads(run engine.ID) (input, output engine.Payload, err error)
	// SaveRun writes what can change of a run: all of engine.Run from Status on but its payloads
	// and what a start decided, with ExpiresAt, FinalToken and TiedTo. When WasHeld is set and
	// Token is not, the lease is deleted; when Token is set, the lease's counts and TiedTo are
	// written too.
	SaveRun(r *Run) error
	SaveOutput(run engine.ID, output engine.Payload) error
	// InsertRun makes the run with its input, tags, lane and, when it is new, its namespace. The
	// caller has made sure that its external id and request id are free.
	InsertRun(start *engine.StartRun) error
	// ImportRun makes the run as it stands, with its input and output.
	ImportRun(r *engine.Run) error

	// OpenExternal is the open run of OriginUser that holds the external id; zero when none does.
	OpenExternal(namespace, externalID string) (engine.ID, error)
	// Requested is the run that a request_id has made or was answered with; zero when none.
	Requested(namespace, requestID string) (engine.ID, error)
	// LeaveRequest remembers the start's queue, type, external id and input for its RequestID, and
	// the run that it was answered with: one of before, or one that does not tell what was asked
	// for. LeftRequest is what was remembered of the request; nil when nothing.
	LeaveRequest(start *engine.StartRun, answer engine.ID) error
	LeftRequest(namespace, requestID string) (*engine.StartRun, error)
	// OpenRetry is the open run that was RetriedFrom this one, or that such a run continued as; zero when none.
	OpenRetry(run engine.ID) (engine.ID, error)
	// OpenChildren is the open runs whose parent this is and whose ParentClose is more than CloseAbandon, by id.
	OpenChildren(parent engine.ID) ([]engine.ID, error)
	// SetParent makes the run the child of parent, and the result of that step, or of none.
	SetParent(run, parent, step engine.ID) error
	// FirstGated is of each lane and limit the first in the line of a key, by HeldAt and then id,
	// where that limit is more than the leases of the key. It takes one look into an index for each
	// lane and limit that has any. Claims that count leases of the key wait until the end of the
	// transaction, or have come to their own end before, so that none gates a run for a lease that
	// is over.
	FirstGated(namespace, workflowType, key string) ([]engine.ID, error)
	// Expired is the open runs whose ExpiresAt is not after now, earliest first, at most limit; and
	// when the next of the others expires.
	Expired(now time.Time, limit int) ([]engine.ID, time.Time, error)
	// LeftBehind is what workers that are OFFLINE still hold and is to be freed by now, earliest
	// first and then by id, at most limit; and when the next of the others is. Of a worker that was
	// lost that is when the run's own heartbeat timeout since it was last heard from is over, else
	// at once.
	LeftBehind(now time.Time, limit int) ([]Left, time.Time, error)
	// Loss is the loss of a worker that is OFFLINE: its runs and suspects are counted when it becomes
	// so as lost, and are 0 otherwise. A suspect counts if it was claimed less than
	// engine.SuspectFor before the last heartbeat.
	Loss(worker string) (engine.Loss, error)

	// Attempt is the attempt with the ref's id or, when there is none, the latest of the step with
	// the ref's name, if it has one; nil when the run has begun neither.
	Attempt(run engine.ID, ref engine.StepRef) (*engine.Step, error)
	// AttemptOf is the newest attempt of the step whose Token is this one; nil when there is none.
	AttemptOf(run engine.ID, name string, token engine.Token) (*engine.Step, error)
	// Waiting is the steps that are open or Awaited, by sequence, without payloads.
	Waiting(run engine.ID) ([]engine.Step, error)
	// Results is the latest attempts of a run's steps that are COMPLETED or FAILED, whole, by sequence.
	Results(run engine.ID) ([]engine.Step, error)
	// NextOfGroup is the open step of a run with this Awaited that has the smallest id, without
	// payloads; nil when all have ended. Its cost does not grow with the steps that have.
	NextOfGroup(run engine.ID, group int64) (*engine.Step, error)
	// ChildSteps is the latest CHILD steps of a run that started these children, in no order.
	ChildSteps(run engine.ID, children []engine.ID) ([]engine.Step, error)
	// InsertSteps makes attempts as they stand.
	InsertSteps(steps []engine.Step) error
	// Supersede makes the attempt the latest no longer; one that is PENDING becomes FAILED.
	Supersede(step engine.ID) error
	// SaveStep writes what can change of an attempt: all from Status on but Latest, Attempt,
	// Sequence, Input, CreatedAt, and who has overridden it.
	SaveStep(s *engine.Step) error
	// InterruptSteps fails attempts that run as FUNCTION, EndSteps all that run, with this failure;
	// it has what is PENDING be FAILED as it is.
	InterruptSteps(run engine.ID, f engine.Failure, now time.Time) error
	EndSteps(run engine.ID, f engine.Failure, now time.Time) error
	// WakeSteps completes SLEEPs and SIGNALs whose WakeAt is not after now, as of their WakeAt.
	WakeSteps(run engine.ID, now time.Time) error
	// RetrySteps makes the latest attempts that FAILED for good PENDING until at, with no Failures.
	RetrySteps(run engine.ID, at time.Time) error
	// SetAwaited sets Awaited of these steps.
	SetAwaited(steps []engine.ID, group int64) error
	// LateSteps is the attempts that are RUNNING with TimeoutAt not after now, oldest first, at
	// most limit; and, with those set apart, when the next times out.
	LateSteps(now time.Time, limit int) ([]engine.Step, time.Time, error)

	// Receipt is what the token has ended its lease by without ending the run; its zero value when by nothing.
	Receipt(run engine.ID, token engine.Token) (Receipt, error)
	LeaveReceipt(run engine.ID, token engine.Token, r Receipt) error

	// NextSignal is the oldest signal of the name that nothing has consumed; nil when none waits.
	NextSignal(run engine.ID, name string) (*engine.Signal, error)
	// SignalByID is the signal that the run has had under that id; nil when none.
	SignalByID(run engine.ID, signalID string) (*engine.Signal, error)
	// Unconsumed is all signals that wait, by sequence, and CountSignals how many do and the
	// highest sequence that the run has given to one.
	Unconsumed(run engine.ID) ([]engine.Signal, error)
	CountSignals(run engine.ID) (waiting int, last int64, err error)
	InsertSignals(signals []engine.Signal) error
	ConsumeSignal(run engine.ID, sequence int64, step string) error

	// Schedule goes by id or, when ref is none, by name; an empty namespace is any. nil when there
	// is none. It has its input.
	Schedule(namespace, ref string) (*engine.Schedule, error)
	// ScheduleByRequest is the schedule that a request_id made.
	ScheduleByRequest(namespace, requestID string) (*engine.Schedule, error)
	InsertSchedule(s *engine.Schedule) error
	SaveSchedule(s *engine.Schedule) error // all but ID, Namespace, RequestID, CreatedAt
	DeleteSchedule(id engine.ID) error     // with its fires
	// WaitingSchedules is the schedules of a namespace with a tick that is Buffered, by id.
	WaitingSchedules(namespace string) ([]engine.ID, error)
	// OpenOf is how many runs of a schedule are open, this one left out.
	OpenOf(schedule engine.ID, but engine.ID) (int, error)
	// InsertFire records the tick; false when it has its record already.
	InsertFire(schedule engine.ID, tick time.Time, run engine.ID, now time.Time) (bool, error)

	// Namespace is locked against being changed; nil when nothing has used it.
	Namespace(name string) (*engine.Namespace, error)
	InsertNamespace(n *engine.Namespace) error // makes it as it stands
	SaveNamespace(n *engine.Namespace) error
	// HandlerQueue is the first queue of the first ONLINE worker of the namespace, by id, that
	// serves the type; empty when none does.
	HandlerQueue(namespace, workflowType string) (string, error)

	// APIKey is the key with that id; nil when none was ever made. APIKeyNamed is the one that is
	// not revoked and has the name; nil when there is none. CountAPIKeys is how many are not
	// revoked, and how many of these are of an admin for all namespaces and never expire.
	// Operations that make or revoke keys happen one after another.
	APIKey(id engine.ID) (*engine.APIKey, error)
	APIKeyNamed(name string) (*engine.APIKey, error)
	CountAPIKeys() (all, lasting int, err error)
	InsertAPIKey(k *engine.APIKey) error // makes it as it stands
	RevokeAPIKey(id engine.ID, at time.Time) error

	InsertAudit(e engine.AuditEvent) error
	// Notify and ReportSideEffects are heard after the commit.
	Notify(n engine.Notification)
	ReportSideEffects(e *engine.SideEffects) // the caller goes on filling them until then
}

// Run is a run with its lease, while it has one. It is changed in memory and then saved.
type Run struct {
	engine.Run
	LaneID     int64
	FinalToken engine.Token // of the lease under which it ended
	TiedTo     bool         // runs.tied: its end concerns others

	// Of the lease; Run.Steps and Run.Bytes are its counts then.
	Token      engine.Token
	Holder     string // the worker
	ClaimedAt  time.Time
	Progressed bool // a step's result was recorded under it; saved with whether the run is a Suspect
	WasHeld    bool // it had a lease when it was read
}

// Current says that the lease is the run's.
func (r *Run) Current(l engine.Lease) bool { return !r.Token.IsZero() && r.Token == l.Token }

// Left is a run that a worker holds which is OFFLINE.
type Left struct {
	RunID engine.ID
	Lost  bool // the worker was lost; otherwise it left or was deregistered
}

// Receipt is what a lease was ended by without ending the run, remembered for repetitions.
type Receipt struct {
	Verb    string
	Content string
	RetryAt time.Time
}
