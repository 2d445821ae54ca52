package engine

import "time"

// StepStatus is the state of one attempt of a step. The numbers are those of the wire, and are
// stored.
type StepStatus uint8

const (
	StepPending   StepStatus = 1 // failed, and waits for its next attempt
	StepRunning   StepStatus = 2 // its code, timer or child runs, or it waits for a signal
	StepCompleted StepStatus = 3
	StepFailed    StepStatus = 4 // for good; or interrupted, if Error.Code is FailureCrashed
)

func (s StepStatus) String() string {
	switch s {
	case StepPending:
		return "PENDING"
	case StepRunning:
		return "RUNNING"
	case StepCompleted:
		return "COMPLETED"
	case StepFailed:
		return "FAILED"
	}
	return "UNKNOWN"
}

// StepKind says what a step does. The numbers are those of the wire, and are stored.
type StepKind uint8

const (
	StepFunction StepKind = 1
	StepSleep    StepKind = 2
	StepChild    StepKind = 3
	StepSignal   StepKind = 100
)

func (k StepKind) String() string {
	switch k {
	case StepFunction:
		return "FUNCTION"
	case StepSleep:
		return "SLEEP"
	case StepChild:
		return "CHILD_WORKFLOW"
	case StepSignal:
		return "SIGNAL"
	}
	return "UNKNOWN"
}

const (
	// Unsettled is the Settled of a result from outside, such as the end of a child, until a worker
	// is told.
	Unsettled = -1
	// AwaitedByNone is the Awaited of an Unsettled result that the run's code does not wait for.
	AwaitedByNone = -1
)

// CancelledStep is the step with which an SDK records that a cancellation has taken effect.
const CancelledStep = OwnStepPrefix + "cancelled"

// OwnStepPrefix begins the names of steps that an SDK records by itself, such as kagzi:now.
const OwnStepPrefix = "kagzi:"

// Step is one attempt of one step of a run.
type Step struct {
	ID       ID
	RunID    ID
	Name     string // unique among the run's steps; all attempts share it
	Kind     StepKind
	Status   StepStatus
	Attempt  int   // from 1; counts every attempt, interrupted ones too
	Failures int   // failures of the step's code up to this attempt, counted by its retry policy
	Latest   bool  // no later attempt of this step exists
	Sequence int64 // order in which the run began its steps, from 1; all attempts share it

	Input  Payload
	Output Payload
	Error  *Failure

	Token    Token // of the lease under which the attempt's status was written last
	WorkerID string

	CreatedAt  time.Time
	StartedAt  time.Time
	FinishedAt time.Time
	TimeoutAt  time.Time     // when Kagzi fails it; set only while RUNNING with a start-to-close timeout
	RetryAt    time.Time     // when the next attempt may start; kept once set
	WakeAt     time.Time     // of a SLEEP, and of a SIGNAL whose wait has a limit
	Duration   time.Duration // of a SLEEP given by its length; 0: given by its end

	RetryPolicy *RetryPolicy // of the step; nil: that of the run

	SignalName string // of a SIGNAL
	ChildType  string // of a CHILD: the type of the run that the code started; empty in older records
	TimedOut   bool   // of a COMPLETED SIGNAL: its limit passed before a signal came
	ChildRunID ID     // of a CHILD: the run that it started
	// Awaited is above 0 if the run's code waits for this SIGNAL or CHILD. With 1, the end of the
	// step wakes the run. A larger number marks a group of steps, all of which have to end. It is
	// AwaitedByNone if nobody waits for a result that is Unsettled. The next claim resets it to 0.
	Awaited int64

	// Settled is the place of the result in the order in which results reached the run's code, from
	// 1; Unsettled if the step has ended but no worker was told yet; 0 if it has not ended for good,
	// and for results that older versions recorded.
	Settled int64
	Branch  string // of the code that made the call: ordinals of forks, such as 2.1; empty: the function itself
	BegunIn int64  // the run's OwedFrom when the attempt began; -1 for records of older versions

	OverriddenBy   string // the actor that recorded this with OverrideStep
	OverrideReason string
}

// Interrupted says whether a lost lease cut the attempt short. The step runs again, and the attempt
// does not count as a failure.
func (s *Step) Interrupted() bool {
	return s.Status == StepFailed && s.Error != nil && s.Error.Code == FailureCrashed
}

// Open says whether the attempt has not ended: it runs, sleeps, or waits for its retry.
func (s *Step) Open() bool { return s.Status == StepPending || s.Status == StepRunning }

// StepFilter selects attempts of a run's steps. Every field that is set must match; of a list, any entry.
type StepFilter struct {
	Name     string
	Statuses []StepStatus
	Latest   bool // only the latest attempt of each step
}

// StepRef names a step of a run, by the id that BeginStep returned or by name. If both are set the
// id is tried first, because older clients have one field for both.
type StepRef struct {
	ID   ID
	Name string
}

func (r StepRef) String() string {
	if r.Name != "" {
		return r.Name
	}
	return r.ID.String()
}
