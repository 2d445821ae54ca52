package engine

import (
	"time"
)

// Overlap says what a tick does while a run of its schedule is open. The numbers are those of the
// wire, and are what is stored.
type Overlap uint8

const (
	OverlapUnset     Overlap = 0 // as OverlapAllow
	OverlapAllow     Overlap = 1
	OverlapSkip      Overlap = 2 // the tick is counted as skipped
	OverlapBufferOne Overlap = 3 // one tick waits for the end of the open run; a further one is counted as skipped
)

// Schedule is the template of the runs that its ticks fire.
type Schedule struct {
	ID        ID
	Namespace string
	Name      string // unique within the namespace when set
	RequestID string // of its creation
	CronExpr  string
	TimeZone  string // IANA name; empty: UTC
	Enabled   bool

	Queue             string
	Type              string
	Version           string
	Input             Payload
	RetryPolicy       *RetryPolicy
	Timeouts          Timeouts
	OnFailureWorkflow string
	OnFailureQueue    string
	Tags              map[string]string

	MaxCatchup int // missed ticks that are replayed, the most recent ones
	Overlap    Overlap

	CreatedAt   time.Time
	UpdatedAt   time.Time
	NextFireAt  time.Time // the next tick that nothing has been decided about; unset: none comes any more, or Broken
	LastFiredAt time.Time // the newest tick that has fired
	Buffered    time.Time // the tick that waits for the open run to end
	Broken      string    // why it cannot fire any more

	Fired     int64 // runs, those that were triggered by hand included
	Completed int64 // of these
	Failed    int64 // of these, FAILED or TIMED_OUT
	Skipped   int64 // ticks passed over because of MaxCatchup or Overlap, or given up by a change of when it fires

	// Revision grows with each change by a person, so that ticks which were computed from an older one do not count.
	Revision int64
}

// ScheduleFilter selects schedules; every field that is set must hold.
type ScheduleFilter struct {
	Namespace string
	Queue     string
}

// TickID is the external id of the run that a tick fires.
func TickID(schedule ID, tick time.Time) string {
	return "schedule:" + schedule.String() + ":" + tick.UTC().Format(time.RFC3339)
}

// TriggerID is the external id of a run that a person fires beside the ticks.
func TriggerID(schedule, run ID) string {
	return "schedule:" + schedule.String() + ":trigger:" + run.String()
}

// Start is the run of a tick, or with the zero tick the one of a trigger.
func (s *Schedule) Start(id ID, tick, now time.Time) StartRun {
	external := TickID(s.ID, tick)
	if tick.IsZero() {
		external = TriggerID(s.ID, id)
	}
	start := StartRun{Run: Run{
		ID: id, Namespace: s.Namespace, ExternalID: external, Queue: s.Queue, Type: s.Type, Version: s.Version,
		Status: RunPending, Attempts: 1,
		Input: s.Input, Bytes: int64(s.Input.Size()), CreatedAt: now, AvailableAt: now, ScheduledAt: tick,
		RetryPolicy: s.RetryPolicy, Timeouts: s.Timeouts, OnFailureWorkflow: s.OnFailureWorkflow,
		OnFailureQueue: s.OnFailureQueue, Tags: s.Tags,
		Origin: OriginSchedule, ScheduleID: s.ID.String(),
	}}
	if s.Timeouts.Execution > 0 {
		start.DeadlineAt = now.Add(s.Timeouts.Execution)
	}
	return start
}

// ScheduleNotFound is the answer for a schedule that is not there.
func ScheduleNotFound(ref string) error {
	return &Error{Kind: KindNotFound, Subject: "schedule", SubjectID: ref,
		Message: "no schedule " + ref + " in this namespace"}
}

// DefaultNamespace is what a request means that names none. It is there before anything has used
// it, although no store then has it.
const DefaultNamespace = "default"

// Namespace is an isolation boundary of runs, workers and schedules.
type Namespace struct {
	Name        string
	ID          ID
	DisplayName string
	Description string
	Enabled     bool // otherwise nothing starts, is claimed or fires; what a worker holds may finish
	CreatedAt   time.Time
	UpdatedAt   time.Time

	Retention time.Duration               // of ended runs; 0: the server's setting
	Keep      map[RunStatus]time.Duration // by outcome, goes before Retention
	// where runs of the global failure handler go when no ONLINE worker serves it
	FailureQueue string
}

// RetentionOf is how long runs that ended so are kept; otherwise is the server's setting.
func (n *Namespace) RetentionOf(s RunStatus, otherwise time.Duration) time.Duration {
	if d, ok := n.Keep[s]; ok {
		return d
	}
	if n.Retention > 0 {
		return n.Retention
	}
	return otherwise
}

// NamespaceDisabled is the answer to what a disabled namespace does not allow.
func NamespaceDisabled(name string) error {
	return &Error{Kind: KindPrecondition, Subject: "namespace", SubjectID: name,
		Message: "namespace " + name + " is disabled: enable it with `kagzi namespace enable " + name + "`"}
}

// NamespaceNotFound is the answer for a namespace that nothing has ever used.
func NamespaceNotFound(name string) error {
	return &Error{Kind: KindNotFound, Subject: "namespace", SubjectID: name, Message: "no namespace " + name}
}
