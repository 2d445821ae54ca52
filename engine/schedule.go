package engine

import (
	"time"
)

// Overlap says what a tick does while a run of its schedule is open. The numbers are those of the
// wire, and are stored.
type Overlap uint8

const (
	OverlapUnset     Overlap = 0 // as OverlapAllow
	OverlapAllow     Overlap = 1
	OverlapSkip      Overlap = 2 // the tick is counted as skipped
	OverlapBufferOne Overlap = 3 // one tick waits until the open run ends; further ones are counted as skipped
)

// Schedule is a template for runs, with the cron expression whose ticks start them.
type Schedule struct {
	ID        ID
	Namespace string
	Name      string // unique within the namespace when set
	RequestID string // of its creation
	CronExpr  string
	TimeZone  string // IANA name; empty: UTC
	Enabled   bool

	PauseReason string // of the pause, for people; empty while Enabled

	Queue             string
	Type              string
	Version           string
	Input             Payload
	RetryPolicy       *RetryPolicy
	RunRetryPolicy    *RetryPolicy
	Timeouts          Timeouts
	OnFailureWorkflow string
	OnFailureQueue    string
	Tags              map[string]string
	ConcurrencyKey    string
	ConcurrencyLimit  int
	ConcurrencyScope  ConcurrencyScope

	MaxCatchup int // how many missed ticks are replayed; the most recent ones
	Overlap    Overlap
	Jitter     time.Duration // a tick's run starts up to this much later, at most MaxJitter; 0: at once

	CreatedAt   time.Time
	UpdatedAt   time.Time
	NextFireAt  time.Time     // the next tick to decide about; unset: no more ticks, or Broken
	Delay       time.Duration // by Jitter, how long after NextFireAt to decide; 0 also if not computed yet
	LastFiredAt time.Time     // the newest tick that has fired
	Buffered    time.Time     // the tick that waits for the open run to end
	Broken      string        // why it cannot fire any more; empty: it can

	Fired     int64 // runs started, by ticks and by TriggerSchedule
	Completed int64 // runs that COMPLETED
	Failed    int64 // runs that are FAILED or TIMED_OUT
	Skipped   int64 // ticks skipped because of MaxCatchup, Overlap, or a change of the schedule

	// Revision grows with each UpdateSchedule. Ticks that were computed from an older one are
	// refused.
	Revision int64
}

// ScheduleFilter selects schedules. Every field that is set must match.
type ScheduleFilter struct {
	Namespace string
	Queue     string
}

// FiresAt returns when to decide about the tick of NextFireAt; unset if there is none.
func (s *Schedule) FiresAt() time.Time {
	if s.NextFireAt.IsZero() {
		return s.NextFireAt
	}
	return s.NextFireAt.Add(s.Delay)
}

// TickID returns the external id of the run that a tick starts.
func TickID(schedule ID, tick time.Time) string {
	return "schedule:" + schedule.String() + ":" + tick.UTC().Format(time.RFC3339)
}

// TriggerID returns the external id of a run that TriggerSchedule starts.
func TriggerID(schedule, run ID) string {
	return "schedule:" + schedule.String() + ":trigger:" + run.String()
}

// Start returns the run for a tick; with the zero tick, the run for TriggerSchedule.
func (s *Schedule) Start(id ID, tick, now time.Time) StartRun {
	external := TickID(s.ID, tick)
	if tick.IsZero() {
		external = TriggerID(s.ID, id)
	}
	start := StartRun{Run: Run{
		ID: id, Namespace: s.Namespace, ExternalID: external, Queue: s.Queue, Type: s.Type, Version: s.Version,
		Status: RunPending, Attempts: 1,
		Input: s.Input, Bytes: int64(s.Input.Size()), CreatedAt: now, AvailableAt: now, ScheduledAt: tick,
		RetryPolicy: s.RetryPolicy, RunRetryPolicy: s.RunRetryPolicy, Timeouts: s.Timeouts,
		OnFailureWorkflow: s.OnFailureWorkflow, OnFailureQueue: s.OnFailureQueue, Tags: s.Tags,
		ConcurrencyKey:   s.ConcurrencyKey,
		ConcurrencyLimit: s.ConcurrencyLimit, ConcurrencyScope: s.ConcurrencyScope,
		Origin: OriginSchedule, ScheduleID: s.ID.String(),
	}}
	if s.ConcurrencyKey != "" && s.ConcurrencyLimit == 0 {
		start.ConcurrencyLimit = 1
	}
	if s.Timeouts.Execution > 0 {
		start.DeadlineAt = now.Add(s.Timeouts.Execution)
	}
	return start
}

// ScheduleNotFound returns the error for a schedule that does not exist.
func ScheduleNotFound(ref string) error {
	return &Error{Kind: KindNotFound, Subject: "schedule", SubjectID: ref,
		Message: "no schedule " + ref + " in this namespace"}
}

// DefaultNamespace is the namespace of requests that name none. It counts as existing even before a
// store has a row for it.
const DefaultNamespace = "default"

// Namespace is an isolation boundary of runs, workers and schedules.
type Namespace struct {
	Name        string
	ID          ID
	DisplayName string
	Description string
	Enabled     bool // false: nothing starts, is claimed or fires; runs that a worker holds may finish
	CreatedAt   time.Time
	UpdatedAt   time.Time

	Retention time.Duration               // of ended runs; 0: the server's setting
	Keep      map[RunStatus]time.Duration // retention by status; takes precedence over Retention
	// queue for runs of the global failure handler if no ONLINE worker serves it
	FailureQueue string
}

// RetentionOf returns how long runs that ended with s are kept; otherwise is the server's setting.
func (n *Namespace) RetentionOf(s RunStatus, otherwise time.Duration) time.Duration {
	if d, ok := n.Keep[s]; ok {
		return d
	}
	if n.Retention > 0 {
		return n.Retention
	}
	return otherwise
}

// NamespaceDisabled returns the error for a call that a disabled namespace does not allow.
func NamespaceDisabled(name string) error {
	return &Error{Kind: KindPrecondition, Subject: "namespace", SubjectID: name,
		Message: "namespace " + name + " is disabled: enable it with `kagzi namespace enable " + name + "`"}
}

// NamespaceUnknown returns the error for a call in a namespace that does not exist. nearest is an
// existing name to suggest, if there is one.
func NamespaceUnknown(name, nearest string) error {
	message := "no namespace " + name
	if nearest != "" {
		message += " (did you mean " + nearest + "?)"
	}
	return &Error{Kind: KindNotFound, Subject: "namespace", SubjectID: name,
		Message: message + ": create it with `kagzi namespace create " + name + "`"}
}

// NamespaceNotFound returns the error for a namespace that does not exist.
func NamespaceNotFound(name string) error {
	return &Error{Kind: KindNotFound, Subject: "namespace", SubjectID: name, Message: "no namespace " + name}
}
