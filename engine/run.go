package engine

import (
	"cmp"
	"maps"
	"time"
)

// RunStatus is the state of a run. The numbers are those of WorkflowStatus on the wire, and are
// stored.
type RunStatus uint8

const (
	RunPending    RunStatus = 1   // due, or waits for its start or its retry
	RunRunning    RunStatus = 2   // a worker holds its lease
	RunSleeping   RunStatus = 3   // parked: a timer, a signal or a child wakes it; no worker is held
	RunCompleted  RunStatus = 4   // ended with a result
	RunFailed     RunStatus = 5   // ended by a failure of its code, or by losing too many workers
	RunCancelled  RunStatus = 6   // ended by CancelRun: at once, when its code ended, or when the grace passed
	RunTimedOut   RunStatus = 100 // ended by its deadline
	RunTerminated RunStatus = 101 // ended by TerminateRun
)

// Ended says whether the run has ended. Nothing about it changes any more.
func (s RunStatus) Ended() bool { return s > RunSleeping }

func (s RunStatus) String() string {
	switch s {
	case RunPending:
		return "PENDING"
	case RunRunning:
		return "RUNNING"
	case RunSleeping:
		return "SLEEPING"
	case RunCompleted:
		return "COMPLETED"
	case RunFailed:
		return "FAILED"
	case RunCancelled:
		return "CANCELLED"
	case RunTimedOut:
		return "TIMED_OUT"
	case RunTerminated:
		return "TERMINATED"
	}
	return "UNKNOWN"
}

// Run is one execution of a workflow. Times are UTC with microseconds; a zero time, ID or string
// means unset.
type Run struct {
	ID         ID
	Namespace  string
	ExternalID string
	RequestID  string
	Queue      string
	Type       string
	Version    string
	Status     RunStatus
	Priority   int // -100 to 100, higher first

	// Attempts is 1 plus all failures that were retried: its steps' and those of the run itself.
	// People see Attempt and StepRetries, which are made from it.
	Attempts    int
	Failures    int // failures of the run itself (FailRun) that were retried
	LeaseLosses int // workers lost in a row while the run was their only suspect

	Steps int64 // distinct steps begun so far
	Bytes int64 // recorded payloads and failures, the input included

	Input  Payload  // left out of lists
	Output Payload  // left out of lists
	Error  *Failure // why it ended without a result; while it is open, why it is retried as a whole

	CreatedAt time.Time
	// AvailableAt is when a PENDING or SLEEPING run next needs a worker. It is unset while a worker
	// holds the run, after its end, and while no time makes it due: the run waits for a signal or a
	// child without a limit, is paused, or is Gated.
	AvailableAt time.Time
	StartedAt   time.Time // of the first claim
	FinishedAt  time.Time
	DeadlineAt  time.Time // the earlier of the deadline given at the start and Timeouts.Execution
	ScheduledAt time.Time // the tick that started it
	WorkerID    string    // the worker that holds it, or held it at its end
	WaitingFor  string    // while SLEEPING: "timer:NAME", "signal:NAME", "child:RUN_ID"
	Note        string    // progress line, set by its code

	// NamedDeadlineAt is the deadline given at the start if there is a Timeouts.Execution too,
	// which may make DeadlineAt earlier. It also holds for the run that this one continues as,
	// whose Execution limit starts again. Without an Execution limit it is unset and DeadlineAt is
	// the deadline given.
	NamedDeadlineAt time.Time

	// Pausing says that PauseRun was asked to keep it from workers while a worker held it. It becomes
	// Paused when that lease ends.
	Pausing  bool
	Paused   bool      // PauseRun keeps it from workers
	PausedAt time.Time // while Paused: since when; unset if an older version paused it
	Gated    bool      // all places of its concurrency key were taken when it was due
	// HeldAt is what AvailableAt would be if the run were neither Paused nor Gated. While Gated it
	// is the run's place in the line.
	HeldAt time.Time
	Pinned bool // retention does not delete it

	// CancelRequestedAt is when CancelRun asked its code to stop by GraceUntil.
	CancelRequestedAt time.Time
	CancelReason      string
	GraceUntil        time.Time

	// RetryPolicy is the default for steps. If RunRetryPolicy is nil, it is for the run itself, too;
	// without either the run is not retried.
	RetryPolicy    *RetryPolicy
	RunRetryPolicy *RetryPolicy // of the run itself
	Timeouts       Timeouts
	Tags           map[string]string
	Requirements   map[string]string

	OnFailureWorkflow string
	OnFailureQueue    string
	ConcurrencyKey    string
	ConcurrencyLimit  int
	ConcurrencyScope  ConcurrencyScope
	// HasPlace says that a run of ScopeOpen has a place of its key. It has it from its first claim,
	// or from the run that it continues, and gives it back at its end.
	HasPlace    bool
	ParentRunID ID
	// ParentStepID is the first attempt of the CHILD step that started it and ends with it, or the
	// attempt whose code started it (CloseUnset).
	ParentStepID ID
	ParentClose  ParentClose
	Traceparent  string

	Origin        Origin
	ScheduleID    string
	FailedRunID   ID // of a failure handler: the run whose failure it handles
	RetriedFrom   ID // the run that RetryRun made this one from
	ContinuedFrom ID
	ContinuedAs   ID

	// FirstRunID is the first run of the chain that this one continues; zero if it is the first.
	FirstRunID ID
	// BelowHandler says that a failure handler is among its ancestors. The failure of such a run
	// starts no global handler.
	BelowHandler bool

	// Suspect says that the run was in the hands of a worker that was lost, and may have killed it.
	Suspect Suspect

	// Divergences are the reports, one of each build, that its code does not match what the run has
	// recorded, since it recorded something. If the run is Paused, it is because of them.
	Divergences []Divergence
	// Unreached names recorded calls that the code had not made when it ended.
	Unreached []string

	// OwedFrom says what the code has to reach: not the steps whose BegunIn is below it. It counts
	// how often the run was retried in place or a step of it was overridden.
	OwedFrom int64
	// UnreadSignals is how many signals the run had not received when it ended.
	UnreadSignals int
}

// Attempt returns which run of the workflow function this is: 1 plus its failures that were retried.
func (r *Run) Attempt() int { return 1 + r.Failures }

// OwnPolicy returns the policy by which the run itself is retried; nil if it is not.
func (r *Run) OwnPolicy() *RetryPolicy { return cmp.Or(r.RunRetryPolicy, r.RetryPolicy) }

// StepRetries returns how many failures of its steps were retried.
func (r *Run) StepRetries() int { return max(0, r.Attempts-r.Attempt()) }

// Chain returns the first run of the chain of runs that continued as one another, which may be r.
func (r *Run) Chain() ID {
	if r.FirstRunID.IsZero() {
		return r.ID
	}
	return r.FirstRunID
}

// Tied says whether ending the run needs more than writing the run itself: other rows depend on its
// end, or its end removes an Error, as an imported run may have.
func (r *Run) Tied() bool {
	return r.Error != nil || r.ConcurrencyKey != "" || !r.ParentRunID.IsZero() || r.ScheduleID != "" ||
		!r.CancelRequestedAt.IsZero() || !r.ContinuedFrom.IsZero() || r.Pausing
}

// NeverRan says that no worker has run the code of the run, or of one whose results it keeps or
// that it continues. Nothing is to be cleaned up when it is cancelled.
func (r *Run) NeverRan() bool {
	return r.StartedAt.IsZero() && r.Steps == 0 && r.ContinuedFrom.IsZero()
}

// ExpiresAt returns when Kagzi ends the run by itself: DeadlineAt or GraceUntil, whichever is
// first. Deadlines do not run while the run is Paused.
func (r *Run) ExpiresAt() time.Time {
	if r.Paused || r.DeadlineAt.IsZero() || !r.GraceUntil.IsZero() && r.GraceUntil.Before(r.DeadlineAt) {
		return r.GraceUntil
	}
	return r.DeadlineAt
}

// LeaseKey returns the concurrency key of which each lease of the run takes a place; empty if none.
func (r *Run) LeaseKey() string {
	if r.ConcurrencyScope == ScopeOpen {
		return ""
	}
	return r.ConcurrencyKey
}

// TakesPlace says whether the run's next claim has to take a place of its concurrency key.
func (r *Run) TakesPlace() bool { return r.ConcurrencyKey != "" && !r.HasPlace }

// SharesKey says whether both runs compete for the places of one concurrency key.
func (r *Run) SharesKey(other *Run) bool {
	return r.ConcurrencyKey != "" && r.ConcurrencyKey == other.ConcurrencyKey && r.Type == other.Type &&
		r.Namespace == other.Namespace
}

// RunFilter selects runs. Every field that is set must match; of a list, any entry.
type RunFilter struct {
	Namespace string
	Statuses  []RunStatus
	Types     []string
	Queues    []string
	// exclusive; a run whose id is older than its CreatedAt by more than an hour may be left out
	CreatedAfter  time.Time
	CreatedBefore time.Time // exclusive
	Tags          map[string]string
	ParentRunID   ID
	ScheduleID    string
	WorkerID      string
	Search        string // prefix of the run id or of the external id
}

// Everything says whether the filter selects all runs of its namespace.
func (f *RunFilter) Everything() bool {
	return len(f.Statuses)+len(f.Types)+len(f.Queues)+len(f.Tags) == 0 && f.CreatedAfter.IsZero() &&
		f.CreatedBefore.IsZero() &&
		f.ParentRunID.IsZero() && f.ScheduleID+f.WorkerID+f.Search == ""
}

// idLag limits how much older a run's id may be than its CreatedAt. Both hold the time of creation,
// but by clocks that may differ.
const idLag = time.Hour

// Span returns exclusive bounds of the ids of a page, so that no list reads runs older than
// CreatedAfter.
func (f *RunFilter) Span(p *Page) (above, below ID) {
	above, below = p.Span()
	if !f.CreatedAfter.IsZero() {
		if oldest := FirstID(f.CreatedAfter.Add(-idLag)); string(oldest[:]) > string(above[:]) {
			above = oldest
		}
	}
	return above, below
}

// Origin says who made a run. External ids of runs that Kagzi made by itself and those of users
// never collide. The numbers are stored.
type Origin uint8

const (
	OriginUser     Origin = 0 // a start or a child; continuations and retries keep their run's origin
	OriginSchedule Origin = 1
	OriginHandler  Origin = 2 // a failure handler
	OriginImport   Origin = 3
)

// ParentClose says what happens to an open child when its parent ends. The numbers are those of the
// wire, and are stored.
type ParentClose uint8

const (
	// CloseUnset is that of a run which is no child of a CHILD step: its parent neither waits for it
	// nor ends it, and is only where it comes from. Such are runs that a step's code started and
	// retried children. Servers before 2026-11-28 stored it for children whose policy was not given.
	CloseUnset     ParentClose = 0
	CloseAbandon   ParentClose = 1
	CloseCancel    ParentClose = 2 // it gets what is left of the parent's grace
	CloseTerminate ParentClose = 3
)

// ConcurrencyScope says when a run counts for the limit of its ConcurrencyKey. The numbers are
// stored.
type ConcurrencyScope uint8

const (
	ScopeSlot ConcurrencyScope = 0 // while a worker holds it
	ScopeOpen ConcurrencyScope = 1 // from its first claim to its end, waits and retries included
)

func (s ConcurrencyScope) String() string {
	if s == ScopeOpen {
		return "OPEN"
	}
	return "SLOT"
}

// Timeouts limit a run and its steps. Zero means the default.
type Timeouts struct {
	StartToClose time.Duration // one attempt of one step; default DefaultStepTimeout
	Heartbeat    time.Duration // a longer lease for this run; no effect if shorter than the server's lease
	Execution    time.Duration // the whole run over all attempts, from its first AvailableAt; default none
}

// ExternalIDReuse says what a start does if a run with the same external id exists.
type ExternalIDReuse uint8

const (
	ReuseWhenEnded ExternalIDReuse = iota // an active run is returned; after its end the id is free again
	ReuseNever                            // any retained run is returned, the newest one
	ReuseReject                           // the start fails with ErrExists if a run is active
)

// StartRun is one run to make. The caller sets ID, CreatedAt and AvailableAt (now or later). Fields
// that are set later in a run's life (Status, StartedAt, Paused, …) are ignored.
type StartRun struct {
	Run
	Reuse ExternalIDReuse
}

// NewRun returns the run to store for this start: PENDING, on its first attempt, with times in
// microseconds. Fields that are set later in a run's life, and empty maps and payloads, are unset.
func (s *StartRun) NewRun() Run {
	r := s.Run
	r.Status, r.Attempts, r.Bytes = RunPending, 1, max(r.Bytes, int64(r.Input.Size()))
	r.Failures, r.LeaseLosses, r.Steps, r.Error, r.Output = 0, 0, 0, nil, Payload{}
	r.StartedAt, r.FinishedAt, r.HeldAt, r.CancelRequestedAt, r.GraceUntil = time.Time{}, time.Time{}, time.Time{},
		time.Time{}, time.Time{}
	r.WorkerID, r.WaitingFor, r.Note, r.CancelReason = "", "", "", ""
	r.Pausing, r.Paused, r.PausedAt = false, false, time.Time{}
	r.Gated, r.Pinned, r.ContinuedAs, r.Suspect = false, false, ID{}, Suspect{}
	r.Divergences, r.Unreached = nil, nil
	r.OwedFrom, r.UnreadSignals = 0, 0
	for _, at := range []*time.Time{&r.CreatedAt, &r.AvailableAt, &r.DeadlineAt, &r.NamedDeadlineAt, &r.ScheduledAt} {
		*at = Micros(*at)
	}
	for _, m := range []*map[string]string{&r.Tags, &r.Requirements, &r.Input.Metadata} {
		if len(*m) == 0 {
			*m = nil
		}
	}
	if len(r.Input.Data) == 0 {
		r.Input.Data = nil
	}
	return r
}

// Started answers one StartRun.
type Started struct {
	RunID   ID
	Existed bool // an earlier run was returned, because of its external id
	// OtherInput says that the run which existed has another input than this start asked for.
	OtherInput bool
	// Repeated says that this request_id was answered before. Existed and OtherInput are then those
	// of the first answer.
	Repeated bool
	Err      error // this start alone was refused: ErrExists, ErrConflict
}

// Continuation returns the run that run continues as. next is what its code asked for: the input,
// and any other field that it sets. All other fields come from run, including external id and
// parent. The Execution limit starts again; a deadline given at run's start holds for every
// continuation.
func Continuation(run *Run, next StartRun, now time.Time) StartRun {
	s := successor(run, next.ID, now)
	s.Input, s.Bytes = next.Input, int64(next.Input.Size())
	s.ExternalID = cmp.Or(next.ExternalID, run.ExternalID)
	s.Queue, s.Type, s.Version = cmp.Or(next.Queue, run.Queue), cmp.Or(next.Type, run.Type),
		cmp.Or(next.Version, run.Version)
	s.Priority = cmp.Or(next.Priority, run.Priority)
	if next.RetryPolicy != nil { // alone it is for both
		s.RetryPolicy, s.RunRetryPolicy = next.RetryPolicy, nil
	}
	if next.RunRetryPolicy != nil {
		s.RunRetryPolicy = next.RunRetryPolicy
	}
	if next.AvailableAt.After(next.CreatedAt) && next.AvailableAt.After(now) {
		// the code asked for a later start; otherwise AvailableAt is only when next was read
		s.AvailableAt = next.AvailableAt
	}
	if next.Timeouts != (Timeouts{}) {
		s.Timeouts = next.Timeouts
	}
	if s.DeadlineAt = next.DeadlineAt; s.DeadlineAt.IsZero() {
		s.DeadlineAt = namedDeadline(run)
	}
	s.SettleDeadline()
	if next.OnFailureWorkflow != "" {
		s.OnFailureWorkflow, s.OnFailureQueue = next.OnFailureWorkflow, next.OnFailureQueue
	}
	if len(next.Tags) > 0 {
		s.Tags = next.Tags
	}
	if len(next.Requirements) > 0 {
		s.Requirements = next.Requirements
	}
	if next.ConcurrencyKey != "" {
		s.ConcurrencyKey, s.ConcurrencyLimit, s.ConcurrencyScope = next.ConcurrencyKey, next.ConcurrencyLimit,
			next.ConcurrencyScope
	}
	// A chain is one piece of work: under the same key it keeps its place, whatever waits for one.
	s.HasPlace = run.HasPlace && s.SharesKey(run) && s.ConcurrencyScope == run.ConcurrencyScope
	s.ContinuedFrom, s.FirstRunID = run.ID, run.Chain()
	s.ParentRunID, s.ParentStepID, s.ParentClose = run.ParentRunID, run.ParentStepID, run.ParentClose
	s.Origin, s.ScheduleID, s.ScheduledAt, s.FailedRunID = run.Origin, run.ScheduleID, run.ScheduledAt, run.FailedRunID
	return s
}

// RetryOf returns the run that RetryRun makes from run. It drops a deadline that has passed, and
// the Execution limit starts again. A retried child keeps its parent, but its result belongs to no
// step and it outlives the parent: the step that waited for the first run has its result already.
func RetryOf(run *Run, p *RetryRunParams) StartRun {
	s := successor(run, p.ID, p.Now)
	s.Input, s.RequestID = run.Input, p.RequestID
	if p.Input != nil {
		s.Input = *p.Input
	}
	s.Bytes = int64(s.Input.Size())
	// A retried failure handler is a handler too: its input is an event, and it has no handlers. A
	// retried run of a schedule keeps its tick, and counts for the schedule's overlap policy.
	s.RetriedFrom, s.FailedRunID = run.ID, run.FailedRunID
	s.ScheduleID, s.ScheduledAt = run.ScheduleID, run.ScheduledAt
	s.ParentRunID = run.ParentRunID
	if s.Origin = run.Origin; s.Origin == OriginImport {
		s.Origin = OriginUser // the retry of an imported run may hold the external id
	}
	if s.DeadlineAt = namedDeadline(run); !s.DeadlineAt.After(p.Now) {
		s.DeadlineAt = time.Time{}
	}
	s.SettleDeadline()
	return s
}

// namedDeadline returns the deadline given at run's start. Older versions did not store
// NamedDeadlineAt; for their runs, a deadline no earlier than creation plus the Execution limit is
// taken for that limit.
func namedDeadline(run *Run) time.Time {
	limit := run.Timeouts.Execution
	if !run.NamedDeadlineAt.IsZero() || limit > 0 && !run.DeadlineAt.Before(run.CreatedAt.Add(limit)) {
		return run.NamedDeadlineAt
	}
	return run.DeadlineAt
}

// SettleDeadline applies the Execution limit, which counts from AvailableAt. DeadlineAt becomes the
// earlier of the limit and the deadline given, which moves to NamedDeadlineAt.
func (s *StartRun) SettleDeadline() {
	limit := s.Timeouts.Execution
	if limit <= 0 {
		return
	}
	s.NamedDeadlineAt = s.DeadlineAt
	if end := s.AvailableAt.Add(limit); s.DeadlineAt.IsZero() || end.Before(s.DeadlineAt) {
		s.DeadlineAt = end
	}
}

// successor returns a new run with everything that was given at run's start, except its deadline.
func successor(run *Run, id ID, now time.Time) StartRun {
	return StartRun{Run: Run{
		ID: id, Namespace: run.Namespace, ExternalID: run.ExternalID, Queue: run.Queue, Type: run.Type,
		Version: run.Version,
		Status:  RunPending, Priority: run.Priority, Attempts: 1, CreatedAt: now, AvailableAt: now,
		RetryPolicy: run.RetryPolicy, RunRetryPolicy: run.RunRetryPolicy, Timeouts: run.Timeouts,
		Tags:              maps.Clone(run.Tags),
		Requirements:      maps.Clone(run.Requirements),
		OnFailureWorkflow: run.OnFailureWorkflow, OnFailureQueue: run.OnFailureQueue,
		ConcurrencyKey: run.ConcurrencyKey, ConcurrencyLimit: run.ConcurrencyLimit,
		ConcurrencyScope: run.ConcurrencyScope, Traceparent: run.Traceparent, BelowHandler: run.BelowHandler,
	}}
}
