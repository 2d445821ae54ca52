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
	TimedOut   bool   // of a COMPLETED SIGNAL: its limit passed before a signal came
	ChildRunID ID     // of a CHILD: the run that it started
	// Awaited is not 0 if the run's code waits for this SIGNAL or CHILD. With 1, the end of the
	// step wakes the run. A larger number marks a group of steps, all of which have to end. The
	// next claim resets it to 0.
	Awaited int64

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
