package engine

import "time"

// StepStatus says where one attempt of a step stands. The numbers are those of the wire, and are what is stored.
type StepStatus uint8

const (
	StepPending   StepStatus = 1 // failed, and waits for its next attempt
	StepRunning   StepStatus = 2 // its code runs, its timer or its child does, or it waits for a signal
	StepCompleted StepStatus = 3
	StepFailed    StepStatus = 4 // for good; or interrupted, when Error.Code is FailureCrashed
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

// StepKind says what a step does. The numbers are those of the wire, and are what is stored.
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
	Name     string // unique within the run, attempts aside
	Kind     StepKind
	Status   StepStatus
	Attempt  int   // 1 for the first; counts every attempt, interrupted ones too
	Failures int   // of the step's own code up to and including this attempt: what its budget counts
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
	TimeoutAt  time.Time     // when Kagzi fails it by itself; only while RUNNING with a start-to-close timeout
	RetryAt    time.Time     // when the next attempt may start; kept once set
	WakeAt     time.Time     // of a SLEEP, and of a SIGNAL whose wait has a limit
	Duration   time.Duration // of a SLEEP that was asked for by its length; 0 when by its end

	RetryPolicy *RetryPolicy // the step's own, when it has one

	SignalName string // of a SIGNAL
	TimedOut   bool   // of a COMPLETED SIGNAL: its limit passed before a signal came
	ChildRunID ID     // of a CHILD: the run that it started
	// Awaited says that the run's code waits for this SIGNAL or CHILD: 1 wakes the run when the
	// step ends; a larger number is shared by the steps all of which have to end. The next claim
	// sets it back to 0.
	Awaited int64

	OverriddenBy   string // who recorded this by OverrideStep
	OverrideReason string
}

// Interrupted says that the attempt was cut short by a lost worker: it is run again and costs nothing.
func (s *Step) Interrupted() bool {
	return s.Status == StepFailed && s.Error != nil && s.Error.Code == FailureCrashed
}

// Open says that the attempt has not come to its end: it runs, sleeps, or waits for its retry.
func (s *Step) Open() bool { return s.Status == StepPending || s.Status == StepRunning }

// StepRef names a step of a run: by the id that BeginStep gave, or by name. When both are set the id is tried first,
// for the wire has one field for either.
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
