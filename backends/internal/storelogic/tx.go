package storelogic

import (
	"time"

	"github.com/kagzi/kagzi/engine"
)

// Tx is one transaction. Reads see the transaction's own writes. Rows that are read in order to be
// changed are locked until the end, if others may write at the same time. An error of a Tx ends the
// operation and the transaction; operations return it unchanged.
//
// A Run that is read twice is two values; operations read each run once (unitOfWork).
type Tx interface {
	// Run returns the run with its lease, without payloads; nil if there is none. An empty
	// namespace matches any.
	Run(namespace string, id engine.ID) (*Run, error)
	// Payloads returns a run's input and output.
	Payloads(run engine.ID) (input, output engine.Payload, err error)
	// SaveRun writes the fields of a run that can change: all of engine.Run from Status on, except
	// the payloads and what the start decided, plus ExpiresAt, FinalToken and TiedTo. If WasHeld is
	// set and Token is not, it deletes the lease. If Token is set, it also writes the lease's
	// counts, TiedTo, Pausing and OwedFrom. If Ending is set, it sets UnreadSignals to the number of
	// waiting signals, or to 0 if the run has ContinuedAs, because they move to that run.
	SaveRun(r *Run) error
	SaveOutput(run engine.ID, output engine.Payload) error
	// InsertRun makes the run with its input, tags and lane, and its namespace if that is new. The
	// caller has checked that its external id and request id are free.
	InsertRun(start *engine.StartRun) error
	// ImportRun makes the run with the given fields, TiedTo and Settled, input and output.
	ImportRun(r *Run) error

	// OpenExternal returns the open run of OriginUser that holds the external id; zero if none
	// does.
	OpenExternal(namespace, externalID string) (engine.ID, error)
	// Requested returns the run that a request_id made or was answered with; zero if none.
	Requested(namespace, requestID string) (engine.ID, error)
	// LeaveRequest records the start's queue, type, external id and input for its RequestID, with
	// the run that answered it. It is needed if that run existed before, or does not show what was
	// asked for. LeftRequest returns what was recorded for a request; nil if nothing.
	LeaveRequest(start *engine.StartRun, answer engine.ID) error
	LeftRequest(namespace, requestID string) (*engine.StartRun, error)
	// OpenRetry returns the open run that was RetriedFrom this one, or that such a run continued
	// as; zero if none.
	OpenRetry(run engine.ID) (engine.ID, error)
	// OpenChildren returns the open runs with this parent and a ParentClose above CloseAbandon, by
	// id.
	OpenChildren(parent engine.ID) ([]engine.ID, error)
	// SetParent makes the run a child of parent, and the result of that step if it is not zero.
	SetParent(run, parent, step engine.ID) error
	// FirstGated returns the first waiting run of a concurrency key, by HeldAt and then id, for
	// each lane and limit whose limit is above the number of the key's places that are taken: by
	// leases with the key, and by open runs with HasPlace. It takes one index lookup per lane and
	// limit in use. Claims that count the key's places wait until this transaction ends, or have ended
	// before, so that no run stays gated because of a place that is free.
	FirstGated(namespace, workflowType, key string) ([]engine.ID, error)
	// Expired returns the open runs whose ExpiresAt is not after now, earliest first, at most
	// limit; and when the next of the others expires.
	Expired(now time.Time, limit int) ([]engine.ID, time.Time, error)
	// LeftBehind returns the runs that OFFLINE workers still hold and that must be freed by now,
	// earliest first and then by id, at most limit; and the time for the next of the others. For a
	// lost worker that time is its last heartbeat plus the run's own heartbeat timeout, otherwise
	// at once.
	LeftBehind(now time.Time, limit int) ([]Left, time.Time, error)
	// Loss returns the loss of a worker that is OFFLINE. Its runs and suspects were counted when the
	// worker was lost; they are 0 if it is OFFLINE for another reason. A suspect counts if it was
	// claimed less than engine.SuspectFor before the last heartbeat.
	Loss(worker string) (engine.Loss, error)

	// PausesRuns says whether a worker was registered with PausesRuns; false for an unknown one.
	PausesRuns(worker string) (bool, error)

	// InService returns the ONLINE workers of a namespace: their ids, queues, types, labels,
	// capabilities and builds. BuildOf returns a worker's build.
	InService(namespace string) ([]engine.Worker, error)
	BuildOf(worker string) (string, error)
	// DivergedKinds returns what differs among the runs that wait at a time and have Divergences, without
	// those that were asked to stop. DivergedRuns returns the runs of one kind, at most limit.
	DivergedKinds() ([]DivergedKind, error)
	DivergedRuns(kind DivergedKind, limit int) ([]engine.ID, error)

	// Attempt returns the attempt with the ref's id or, without an id, the latest of the step with
	// the ref's name; nil if there is none.
	Attempt(run engine.ID, ref engine.StepRef) (*engine.Step, error)
	// AttemptOf returns the newest attempt of the step with this Token; nil if there is none.
	AttemptOf(run engine.ID, name string, token engine.Token) (*engine.Step, error)
	// Waiting returns the steps that are open or Awaited, by sequence, without payloads.
	Waiting(run engine.ID) ([]engine.Step, error)
	// Results returns the latest attempts of a run's steps that are COMPLETED or FAILED, with
	// payloads, by sequence.
	Results(run engine.ID) ([]engine.Step, error)
	// NextOfGroup returns the open step of a run with this Awaited and the smallest id, without
	// payloads; nil if all have ended. Its cost does not grow with the number of ended steps.
	NextOfGroup(run engine.ID, group int64) (*engine.Step, error)
	// ChildSteps returns the latest CHILD steps of a run that started these children, unordered.
	ChildSteps(run engine.ID, children []engine.ID) ([]engine.Step, error)
	// InsertSteps makes attempts with the given fields.
	InsertSteps(steps []engine.Step) error
	// Supersede clears Latest of the attempt; a PENDING one becomes FAILED.
	Supersede(step engine.ID) error
	// SaveStep writes the fields of an attempt that can change: all from Status on, except Latest,
	// Attempt, Sequence, Input, CreatedAt, Branch, BegunIn and the override's fields.
	SaveStep(s *engine.Step) error
	// InterruptSteps fails RUNNING FUNCTION attempts with this failure. EndSteps fails all RUNNING
	// attempts with it; PENDING ones become FAILED and keep their error.
	InterruptSteps(run engine.ID, f engine.Failure, now time.Time) error
	EndSteps(run engine.ID, f engine.Failure, now time.Time) error
	// WakeSteps completes SLEEP steps whose WakeAt is not after now, as of their WakeAt. They become
	// Unsettled, and AwaitedByNone.
	WakeSteps(run engine.ID, now time.Time) error
	// RetrySteps makes the latest attempts that FAILED for good PENDING until at, with no Failures and
	// no Settled.
	RetrySteps(run engine.ID, at time.Time) error
	// SettleStep sets Settled of an attempt.
	SettleStep(step engine.ID, settled int64) error
	// SetAwaited sets Awaited of these steps.
	SetAwaited(steps []engine.ID, group int64) error
	// LateSteps returns the RUNNING attempts whose TimeoutAt is not after now, oldest first, at
	// most limit; and when the next times out after those and the skipped ones.
	LateSteps(now time.Time, limit int) ([]engine.Step, time.Time, error)

	// Receipt returns how the token ended its lease without ending the run; the zero value if it
	// did not.
	Receipt(run engine.ID, token engine.Token) (Receipt, error)
	LeaveReceipt(run engine.ID, token engine.Token, r Receipt) error

	// NextSignal returns the oldest unconsumed signal of the name; nil if none waits.
	NextSignal(run engine.ID, name string) (*engine.Signal, error)
	// SignalByID returns the signal that the run received under that id; nil if none.
	SignalByID(run engine.ID, signalID string) (*engine.Signal, error)
	// Unconsumed returns all waiting signals, by sequence. CountSignals returns how many wait, and
	// the highest sequence that the run has assigned.
	Unconsumed(run engine.ID) ([]engine.Signal, error)
	CountSignals(run engine.ID) (waiting int, last int64, err error)
	InsertSignals(signals []engine.Signal) error
	// MeasureUnconsumed returns the bytes of the waiting signals. MoveSignals moves them to another
	// run, which has none; they keep their sequences.
	MeasureUnconsumed(run engine.ID) (int64, error)
	MoveSignals(from, to engine.ID) error
	// SignalInChain says whether a run with this FirstRunID has received a signal of that id.
	SignalInChain(first engine.ID, signalID string) (bool, error)
	ConsumeSignal(run engine.ID, sequence int64, step string) error
	// ReturnSignals makes the signals that these steps of a run consumed unconsumed again.
	ReturnSignals(run engine.ID, steps []string) error

	// Schedule finds a schedule by id or, if ref is zero, by name; an empty namespace matches any.
	// nil if there is none. The input is included.
	Schedule(namespace, ref string) (*engine.Schedule, error)
	// ScheduleByRequest returns the schedule that a request_id made.
	ScheduleByRequest(namespace, requestID string) (*engine.Schedule, error)
	InsertSchedule(s *engine.Schedule) error
	SaveSchedule(s *engine.Schedule) error // all fields except ID, Namespace, RequestID, CreatedAt
	DeleteSchedule(id engine.ID) error     // and its fires
	// WaitingSchedules returns the schedules of a namespace that have a Buffered tick, by id.
	WaitingSchedules(namespace string) ([]engine.ID, error)
	// OpenOf returns how many runs of a schedule are open, not counting this one.
	OpenOf(schedule engine.ID, but engine.ID) (int, error)
	// InsertFire records the tick; false if it was recorded before.
	InsertFire(schedule engine.ID, tick time.Time, run engine.ID, now time.Time) (bool, error)
	// FiredRun returns the run of a recorded tick; zero if it is not recorded.
	FiredRun(schedule engine.ID, tick time.Time) (engine.ID, error)

	// Namespace returns the namespace and locks it against changes; nil if nothing has used it.
	Namespace(name string) (*engine.Namespace, error)
	InsertNamespace(n *engine.Namespace) error // with the given fields
	SaveNamespace(n *engine.Namespace) error
	// DeleteNamespace deletes the namespace with its lanes, OFFLINE workers and request ids of deleted
	// runs. Nothing else is left in it.
	DeleteNamespace(name string) error
	// Contents counts what the namespace holds, of each kind at most engine.MaxContents and one more.
	Contents(namespace string) (engine.Contents, error)
	// SchedulesOf and OpenRunsOf return some of the namespace, by id, at most limit.
	SchedulesOf(namespace string, limit int) ([]engine.ID, error)
	OpenRunsOf(namespace string, limit int) ([]engine.ID, error)
	// DeleteEndedRuns deletes ended runs with everything that belongs to them, and remembers none of
	// their requests: at most limit, fewer if they have very many rows, but at least one.
	// DeletePastRequests deletes request ids of deleted runs, at most limit. Both return how many.
	DeleteEndedRuns(namespace string, limit int) (int, error)
	DeletePastRequests(namespace string, limit int) (int, error)
	// DeleteWorkers deletes all workers of the namespace, and returns the ids of those that were not
	// OFFLINE.
	DeleteWorkers(namespace string) ([]string, error)
	// HandlerQueue returns the first queue of the first ONLINE worker of the namespace, by id, that
	// serves the type; empty if none does.
	HandlerQueue(namespace, workflowType string) (string, error)

	// APIKey returns the key with that id; nil if none was ever made. APIKeyNamed returns the key
	// with that name that is not revoked; nil if there is none. CountAPIKeys returns how many keys
	// are not revoked, and how many of these are admin keys for all namespaces that never expire.
	// Operations that make or revoke keys run one after another.
	APIKey(id engine.ID) (*engine.APIKey, error)
	APIKeyNamed(name string) (*engine.APIKey, error)
	CountAPIKeys() (all, lasting int, err error)
	InsertAPIKey(k *engine.APIKey) error // with the given fields
	RevokeAPIKey(id engine.ID, at time.Time) error
	// Keyring returns the keys that are not revoked, by id.
	Keyring() ([]engine.APIKey, error)
	SaveKeyNamespaces(id engine.ID, namespaces []string) error

	// Session returns the session with that id; nil if there is none. DeleteOldSessions deletes the
	// sessions of a key but the newest keep, by id. DeleteExpiredSessions deletes at most limit
	// sessions that expired at now or before, earliest first, then by id.
	Session(id engine.ID) (*engine.Session, error)
	InsertSession(s *engine.Session) error
	UseSession(id engine.ID, used, expires time.Time) error // unless it was used later
	DeleteSession(id engine.ID) error
	DeleteOldSessions(key engine.ID, keep int) error
	DeleteExpiredSessions(now time.Time, limit int) error

	// Hook and HookNamed return a hook; nil if there is none. Operations that change hooks run one
	// after another.
	Hook(id engine.ID) (*engine.Hook, error)
	HookNamed(namespace, name string) (*engine.Hook, error)
	CountHooks(namespace string) (int, error)
	InsertHook(h *engine.Hook) error // with the given fields
	SaveHookSecrets(h *engine.Hook) error
	DeleteHook(id engine.ID) error
	DeleteHooks(namespace string) (int, error) // all of the namespace; returns how many

	InsertAudit(e engine.AuditEvent) error
	// Notify and ReportSideEffects take effect after the commit.
	Notify(n engine.Notification)
	ReportSideEffects(e *engine.SideEffects) // the caller may add to them until then
}

// Run is a run with its lease, if it has one. It is changed in memory and then saved.
type Run struct {
	engine.Run
	LaneID     int64
	FinalToken engine.Token // of the lease under which it ended or, while it waits, was parked by its code
	TiedTo     bool         // runs.tied: its end affects other rows
	Settled    int64        // number of results that were settled

	// Fields of the lease. Under a lease, Run.Steps, Run.Bytes and Settled are the lease's counts.
	Token      engine.Token
	Holder     string // worker id
	ClaimedAt  time.Time
	Progressed bool // a step's result was recorded under it; saved with whether the run is a Suspect
	WasHeld    bool // it had a lease when read

	Ending bool // it ends in this operation
}

// Current says whether l is the run's current lease.
func (r *Run) Current(l engine.Lease) bool { return !r.Token.IsZero() && r.Token == l.Token }

// Left is a run that an OFFLINE worker still holds.
type Left struct {
	RunID engine.ID
	Lost  bool // the worker was lost; false: it left or was forced offline
}

// DivergedKind is what decides which workers may have a run that waits and has Divergences.
type DivergedKind struct {
	LaneID int64
	Lane   engine.Run // its namespace, queue, type and requirements
	Builds string     // as Run.Builds returns them
}

// Receipt records how a lease ended without ending the run, to recognize repetitions.
type Receipt struct {
	Verb    string
	Content string
	RetryAt time.Time
}
