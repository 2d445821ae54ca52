package engine

import (
	"cmp"
	"maps"
	"time"
)

// RunStatus says where a run stands. The numbers are those of WorkflowStatus on the wire, and are what is stored.
type RunStatus uint8

const (
	RunPending    RunStatus = 1   // due, or waits for its start or its retry
	RunRunning    RunStatus = 2   // a worker holds its lease
	RunSleeping   RunStatus = 3   // parked: a timer, a signal or a child wakes it; no worker is held
	RunCompleted  RunStatus = 4   // ended well
	RunFailed     RunStatus = 5   // ended by its code's failure, or by losing too many workers
	RunCancelled  RunStatus = 6   // ended by CancelRun: at once, at the end of its code, or at the end of the grace
	RunTimedOut   RunStatus = 100 // ended by its deadline
	RunTerminated RunStatus = 101 // ended by TerminateRun
)

// Ended says that the run is over: nothing about it changes any more.
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

// Run is one execution of a workflow. Times are UTC with microseconds; a zero time, ID or string means unset.
type Run struct {
	ID         ID
	Namespace  string
	ExternalID string
	RequestID  string
	Queue      string
	Type       string
	Version    string
	Status     RunStatus
	Priority   int // -100 to 100, higher first, until one has been due for StarvationAfter

	Attempts    int // 1 plus the failures that were retried, a step's or the run's own
	Failures    int // of the run itself (FailRun), which its own RetryPolicy counts
	LeaseLosses int // how often in a row a worker was lost while it held the run

	Steps int64 // distinct steps begun so far
	Bytes int64 // recorded payloads and failures, the input included

	Input  Payload  // left out of lists
	Output Payload  // left out of lists
	Error  *Failure // how it ended without a result; while it is open, why it is tried again as a whole

	CreatedAt time.Time
	// AvailableAt is when a PENDING or SLEEPING run next needs a worker. It is unset while a worker
	// holds the run, after its end, and while no moment makes it due: it waits for a signal or a
	// child without a limit, is paused, or waits for a slot of its key.
	AvailableAt time.Time
	StartedAt   time.Time // of the first claim
	FinishedAt  time.Time
	DeadlineAt  time.Time // the earlier of what its starter named and of Timeouts.Execution
	ScheduledAt time.Time // the tick that fired it
	WorkerID    string    // who holds it, or held it at its end
	WaitingFor  string    // while SLEEPING: "timer:NAME", "signal:NAME", "child:RUN_ID"
	Note        string    // its own progress line

	// NamedDeadlineAt is the deadline that its starter named beside Timeouts.Execution, which may
	// have made DeadlineAt an earlier one: it holds for what the run continues as, where the limit
	// counts anew. Where there is no limit it is unset, and DeadlineAt is what was named.
	NamedDeadlineAt time.Time

	// Paused says that a person keeps it from the workers, and Gated that all slots of its
	// concurrency key were taken when it was due. HeldAt is what AvailableAt would be but for these
	// two; while Gated it is the run's place in the line.
	Paused bool
	Gated  bool
	HeldAt time.Time
	Pinned bool // kept, whatever the retention

	// CancelRequestedAt is when CancelRun told its code to stop, for CancelReason, by GraceUntil.
	CancelRequestedAt time.Time
	CancelReason      string
	GraceUntil        time.Time

	RetryPolicy  *RetryPolicy // the steps' default; the run itself is retried only when it is set
	Timeouts     Timeouts
	Tags         map[string]string
	Requirements map[string]string

	OnFailureWorkflow string
	OnFailureQueue    string
	ConcurrencyKey    string
	ConcurrencyLimit  int
	ParentRunID       ID
	ParentStepID      ID // the first attempt of the step that started it; a CHILD step ends with it
	ParentClose       ParentClose
	Traceparent       string

	Origin        Origin
	ScheduleID    string
	FailedRunID   ID // of a failure handler: the run whose failure it handles
	RetriedFrom   ID // the run that a person had retried as this one
	ContinuedFrom ID
	ContinuedAs   ID
}

// Tied says that the end of the run concerns others than its starter, so that ending it takes a
// look at them, or that it has an error which its end takes away, as an import may.
func (r *Run) Tied() bool {
	return r.Error != nil || r.ConcurrencyKey != "" || !r.ParentRunID.IsZero() || r.ScheduleID != "" ||
		!r.CancelRequestedAt.IsZero() || !r.ContinuedFrom.IsZero()
}

// ExpiresAt is when Kagzi ends the run by itself: at its deadline or at the end of the grace, whichever is first.
func (r *Run) ExpiresAt() time.Time {
	if r.DeadlineAt.IsZero() || !r.GraceUntil.IsZero() && r.GraceUntil.Before(r.DeadlineAt) {
		return r.GraceUntil
	}
	return r.DeadlineAt
}

// RunFilter selects runs; every field that is set must hold, and within a list any.
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

// Everything says that the filter lets through all runs of its namespace.
func (f *RunFilter) Everything() bool {
	return len(f.Statuses)+len(f.Types)+len(f.Queues)+len(f.Tags) == 0 && f.CreatedAfter.IsZero() &&
		f.CreatedBefore.IsZero() &&
		f.ParentRunID.IsZero() && f.ScheduleID+f.WorkerID+f.Search == ""
}

// idLag bounds by how much a run's id may be older than its CreatedAt: both are of the moment in
// which it was made, by clocks that may differ.
const idLag = time.Hour

// Span is the ids between which all runs of a page have theirs, both left out: no list goes through
// those that are older than what it asks for.
func (f *RunFilter) Span(p *Page) (above, below ID) {
	above, below = p.Span()
	if !f.CreatedAfter.IsZero() {
		if oldest := FirstID(f.CreatedAfter.Add(-idLag)); string(oldest[:]) > string(above[:]) {
			above = oldest
		}
	}
	return above, below
}

// Origin says who made a run. The external ids of runs that Kagzi made by itself never stand in the
// way of a user's, nor a user's in theirs. The numbers are what is stored.
type Origin uint8

const (
	OriginUser     Origin = 0 // a start, a child, a continuation, a retry
	OriginSchedule Origin = 1
	OriginHandler  Origin = 2 // a failure handler
	OriginImport   Origin = 3
)

// ParentClose says what becomes of an open child when its parent ends. The numbers are those of the
// wire, and are what is stored.
type ParentClose uint8

const (
	CloseUnset     ParentClose = 0 // as CloseAbandon
	CloseAbandon   ParentClose = 1
	CloseCancel    ParentClose = 2
	CloseTerminate ParentClose = 3
)

// Timeouts bound a run and its steps. Zero means the default.
type Timeouts struct {
	StartToClose time.Duration // one attempt of one step; default DefaultStepTimeout
	Heartbeat    time.Duration // lengthens the lease for this run; shorter than the server's lease has no effect
	Execution    time.Duration // the whole run over all attempts, from when it may first start; default none
}

// ExternalIDReuse says what a start does when a run with the same external id is there.
type ExternalIDReuse uint8

const (
	ReuseWhenEnded ExternalIDReuse = iota // an active run is returned; after its end the id is free again
	ReuseNever                            // any retained run is returned, the newest one
	ReuseReject                           // an active run makes the start fail with ErrExists
)

// StartRun is one run to be made. ID and CreatedAt are the caller's; AvailableAt is now or later.
// Fields that only a later life gives (Status, StartedAt, Paused, …) are ignored.
type StartRun struct {
	Run
	Reuse ExternalIDReuse
}

// NewRun returns the run that the start makes, as a store holds it: PENDING, on its first attempt,
// with times in microseconds. Fields that only a later life gives are unset, and so is what is
// empty.
func (s *StartRun) NewRun() Run {
	r := s.Run
	r.Status, r.Attempts, r.Bytes = RunPending, 1, max(r.Bytes, int64(r.Input.Size()))
	r.Failures, r.LeaseLosses, r.Steps, r.Error, r.Output = 0, 0, 0, nil, Payload{}
	r.StartedAt, r.FinishedAt, r.HeldAt, r.CancelRequestedAt, r.GraceUntil = time.Time{}, time.Time{}, time.Time{},
		time.Time{}, time.Time{}
	r.WorkerID, r.WaitingFor, r.Note, r.CancelReason = "", "", "", ""
	r.Paused, r.Gated, r.Pinned, r.ContinuedAs = false, false, false, ID{}
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
	// Repeated says that this request_id had its answer before; Existed is then what it was told the first time.
	Repeated bool
	Err      error // this start alone was refused: ErrExists, ErrConflict
}

// Continuation is the run that run continues as. next is what its code asked for: the input, and
// whatever it names of its own; the rest is run's, its external id and its parent included. A limit
// on the whole run counts anew, and a deadline that run's starter has named holds for every run
// that it continues as.
func Continuation(run *Run, next StartRun, now time.Time) StartRun {
	s := successor(run, next.ID, now)
	s.Input, s.Bytes = next.Input, int64(next.Input.Size())
	s.ExternalID = cmp.Or(next.ExternalID, run.ExternalID)
	s.Queue, s.Type, s.Version = cmp.Or(next.Queue, run.Queue), cmp.Or(next.Type, run.Type),
		cmp.Or(next.Version, run.Version)
	s.Priority = cmp.Or(next.Priority, run.Priority)
	if next.RetryPolicy != nil {
		s.RetryPolicy = next.RetryPolicy
	}
	if next.AvailableAt.After(next.CreatedAt) && next.AvailableAt.After(now) {
		// it was asked for, and is not just when next was read
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
		s.ConcurrencyKey, s.ConcurrencyLimit = next.ConcurrencyKey, next.ConcurrencyLimit
	}
	s.ContinuedFrom = run.ID
	s.ParentRunID, s.ParentStepID, s.ParentClose = run.ParentRunID, run.ParentStepID, run.ParentClose
	s.Origin, s.ScheduleID, s.ScheduledAt, s.FailedRunID = run.Origin, run.ScheduleID, run.ScheduledAt, run.FailedRunID
	return s
}

// RetryOf is the run that a person has run tried again as. A deadline that has passed is left
// behind; a limit on the whole run counts anew. It is nobody's child: what waited for the first run
// has its answer.
func RetryOf(run *Run, p *RetryRunParams) StartRun {
	s := successor(run, p.ID, p.Now)
	s.Input, s.RequestID = run.Input, p.RequestID
	if p.Input != nil {
		s.Input = *p.Input
	}
	s.Bytes = int64(s.Input.Size())
	// a handler stays one: its input is an event, and it has no handlers
	s.RetriedFrom, s.FailedRunID = run.ID, run.FailedRunID
	if s.DeadlineAt = namedDeadline(run); !s.DeadlineAt.After(p.Now) {
		s.DeadlineAt = time.Time{}
	}
	s.SettleDeadline()
	return s
}

// namedDeadline is the moment by which run's starter wanted it to have ended. Of a run that a
// version made which kept no NamedDeadlineAt, a deadline that can be no more than its limit, which
// counts from its creation or from later, is taken for that.
func namedDeadline(run *Run) time.Time {
	limit := run.Timeouts.Execution
	if !run.NamedDeadlineAt.IsZero() || limit > 0 && !run.DeadlineAt.Before(run.CreatedAt.Add(limit)) {
		return run.NamedDeadlineAt
	}
	return run.DeadlineAt
}

// SettleDeadline puts a limit on the whole run, which counts from AvailableAt, beside the deadline
// that was named, if any: the earlier of the two becomes DeadlineAt.
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

// successor is a new run with all that a starter chose for run but its deadline.
func successor(run *Run, id ID, now time.Time) StartRun {
	return StartRun{Run: Run{
		ID: id, Namespace: run.Namespace, ExternalID: run.ExternalID, Queue: run.Queue, Type: run.Type,
		Version: run.Version,
		Status:  RunPending, Priority: run.Priority, Attempts: 1, CreatedAt: now, AvailableAt: now,
		RetryPolicy: run.RetryPolicy, Timeouts: run.Timeouts, Tags: maps.Clone(run.Tags),
		Requirements:      maps.Clone(run.Requirements),
		OnFailureWorkflow: run.OnFailureWorkflow, OnFailureQueue: run.OnFailureQueue,
		ConcurrencyKey: run.ConcurrencyKey, ConcurrencyLimit: run.ConcurrencyLimit, Traceparent: run.Traceparent,
	}}
}
