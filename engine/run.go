package engine

import "time"

// RunStatus says where a run stands. The numbers are those of WorkflowStatus on the wire, and are what is stored.
type RunStatus uint8

const (
	RunPending    RunStatus = 1   // due, or waits for its start or its retry
	RunRunning    RunStatus = 2   // a worker holds its lease
	RunSleeping   RunStatus = 3   // parked: a timer wakes it; no worker is held
	RunCompleted  RunStatus = 4   // ended well
	RunFailed     RunStatus = 5   // ended by its code's failure, or by losing too many workers
	RunCancelled  RunStatus = 6   // ended by CancelRun
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
	Priority   int // -100 to 100, higher first

	Attempts    int // 1 plus the failures that were retried, a step's or the run's own
	Failures    int // of the run itself (FailRun), which its own RetryPolicy counts
	LeaseLosses int // how often in a row a worker was lost while it held the run

	Steps int64 // distinct steps begun so far
	Bytes int64 // recorded payloads and failures, the input included

	Input  Payload // left out of lists
	Output Payload // left out of lists
	Error  *Failure

	CreatedAt   time.Time
	AvailableAt time.Time // when a PENDING or SLEEPING run next needs a worker; otherwise unset
	StartedAt   time.Time // of the first claim
	FinishedAt  time.Time
	DeadlineAt  time.Time
	WorkerID    string // who holds it, or held it at its end
	WaitingFor  string // while SLEEPING: "timer:NAME"

	RetryPolicy  *RetryPolicy // the steps' default; the run itself is retried only when it is set
	Timeouts     Timeouts
	Tags         map[string]string
	Requirements map[string]string

	OnFailureWorkflow string
	OnFailureQueue    string
	ConcurrencyKey    string
	ConcurrencyLimit  int
	ParentRunID       ID
	ParentStepID      ID
	Traceparent       string
}

// Timeouts bound a run and its steps. Zero means the default.
type Timeouts struct {
	StartToClose time.Duration // one attempt of one step; default DefaultStepTimeout
	Heartbeat    time.Duration // lengthens the lease for this run; shorter than the server's lease has no effect
	Execution    time.Duration // the whole run over all attempts; default none
}

// ExternalIDReuse says what a start does when a run with the same external id is there.
type ExternalIDReuse uint8

const (
	ReuseAfterEnd ExternalIDReuse = iota // an active run is returned; after its end the id is free again
	ReuseNever                           // any retained run is returned, the newest one
	ReuseReject                          // an active run makes the start fail with ErrExists
)

// StartRun is one run to be made. ID and CreatedAt are the caller's; AvailableAt is now or later.
type StartRun struct {
	Run
	Reuse ExternalIDReuse
}

// Started answers one StartRun.
type Started struct {
	RunID   ID
	Existed bool // an earlier run was returned, because of its external id
	// Repeated says that this request_id had its answer before; Existed is then what it was told the first time.
	Repeated bool
	Err      error // this start alone was refused: ErrExists, ErrConflict
}
