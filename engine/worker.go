package engine

import (
	"strings"
	"time"
)

// WorkerStatus says what a worker may do. The numbers are those of the wire, and are stored.
type WorkerStatus uint8

const (
	WorkerOnline   WorkerStatus = 1
	WorkerDraining WorkerStatus = 2 // finishes the runs it holds, gets no new ones
	WorkerOffline  WorkerStatus = 3
)

func (s WorkerStatus) String() string {
	switch s {
	case WorkerOnline:
		return "ONLINE"
	case WorkerDraining:
		return "DRAINING"
	}
	return "OFFLINE"
}

// OfflineReason says why a worker is OFFLINE. The numbers are those of the wire.
type OfflineReason uint8

const (
	OfflineDeregistered OfflineReason = 1 // it deregistered
	OfflineLost         OfflineReason = 2 // it became a suspect and was still not heard from
	OfflineForced       OfflineReason = 3 // a person forced it offline
)

// Worker is a process that runs workflow code.
type Worker struct {
	ID         string
	Namespace  string
	InstanceID string // random, one per process: the same instance gets its id back
	Status     WorkerStatus
	Reason     OfflineReason // while OFFLINE

	Queues       []string // in order of preference
	Types        []string
	Labels       map[string]string
	Capabilities map[string]string

	// BuildID names its code; workers of one build run the same. Empty: it reports no divergence.
	BuildID string

	Hostname string
	PID      int
	Version  string
	Platform string

	// PausesRuns says that it knows Held.Pausing: it then starts no step of the run, and releases the
	// run when the steps that run have been recorded.
	PausesRuns bool

	MaxConcurrent int            // runs at a time on this worker
	QueueLimit    int            // runs at a time in each of its queues, across all workers; 0: no limit
	TypeLimits    map[string]int // runs at a time of a type in a queue, across all workers

	Active    int // runs that it holds, as reported in its heartbeat
	Completed int64
	Failed    int64
	Stats     WorkerStats

	RegisteredAt    time.Time
	LastHeartbeatAt time.Time
	DeregisteredAt  time.Time
}

// Offers returns the labels and capabilities, against which requirements are matched.
func (w *Worker) Offers() []Offer {
	offers := make([]Offer, 0, len(w.Labels)+len(w.Capabilities))
	for k, v := range w.Labels {
		offers = append(offers, Offer{k, v})
	}
	for k, v := range w.Capabilities {
		offers = append(offers, Offer{k, v})
	}
	return offers
}

// WorkerStats holds what a worker measures about itself.
type WorkerStats struct {
	CPUPercent         float64 `json:"cpu_percent,omitempty"`
	MemoryBytes        int64   `json:"memory_bytes,omitempty"`
	DiskAvailableBytes int64   `json:"disk_available_bytes,omitempty"`
	UptimeSeconds      int64   `json:"uptime_seconds,omitempty"`
	AverageRunMS       float64 `json:"average_run_ms,omitempty"`

	// Blocked is code of held runs that keeps them from moving on, as of the last heartbeat.
	Blocked []BlockedCode `json:"blocked,omitempty"`
}

// Limits of what is kept of blocked code.
const (
	MaxBlocked      = 16
	MaxBlockedStack = 4 << 10 // bytes
	MaxBlockedCalls = 10
)

// BlockedCode is workflow code that has kept its run from moving on for a while: code outside of the
// SDK's calls, or new calls that are held because the code has not made recorded ones.
type BlockedCode struct {
	RunID  string    `json:"run_id"`
	Branch string    `json:"branch,omitempty"` // as in Call
	Since  time.Time `json:"since"`
	Stack  string    `json:"stack,omitempty"` // of code outside of calls
	Held   []Call    `json:"held,omitempty"`
	Owed   []Call    `json:"owed,omitempty"`
}

// WorkerFilter selects workers. Every field that is set must match.
type WorkerFilter struct {
	Namespace string // empty: all
	Queue     string
	Status    WorkerStatus
}

// Lease is the right to write about a run. A write with a token that is not the current one changes
// nothing.
type Lease struct {
	Namespace string // empty if it came from a worker, which belongs to one namespace
	RunID     ID
	Token     Token
}

// ClaimSlot offers one free slot of a worker to a claim, with the token for the new lease.
type ClaimSlot struct {
	WorkerID string
	Token    Token
}

// SetSince makes the task one for a worker that keeps the run in memory: steps are those that it does not
// know. It returns false if they are more than so many bytes.
func (t *Task) SetSince(base Token, steps []Step, bytes int) bool {
	size := 0
	for i := range steps {
		size += 200 + steps[i].Output.Size()
		if steps[i].Error != nil {
			size += steps[i].Error.Size()
		}
	}
	if size > bytes {
		return false
	}
	t.Base, t.History = base, steps
	return true
}

// KeptRun says which worker keeps the code of a parked run in memory, and the token of the lease under
// which it parked the run. Zero: none is known to. It is a hint.
type KeptRun struct {
	WorkerID string
	Token    Token
	Room     bool // the worker can take the run now, so it should get it
}

// KeepTime is how long a due run is kept for a worker with Room that keeps it in memory.
const KeepTime = 100 * time.Millisecond

// Offer is one capability or label of a worker.
type Offer struct{ Key, Value string }

// offers says whether the offer is one of the key.
func (o Offer) offers(key string) bool {
	head, all := strings.CutSuffix(o.Key, "*")
	return o.Key == key || all && strings.HasSuffix(head, ":") && strings.HasPrefix(key, head)
}

// Meets says whether a worker with these offers meets the requirements: each key is offered with
// that value. A requirement without a value is met by any. An offer whose key ends with :* is one of
// every key that begins like it: tool:* offers tool:jq and tool:sort.
func Meets(offers []Offer, requirements map[string]string) bool {
	for key, value := range requirements {
		met := false
		for _, o := range offers {
			if o.offers(key) && (value == "" || o.Value == value) {
				met = true
				break
			}
		}
		if !met {
			return false
		}
	}
	return true
}

// Task is a claimed run with all that a worker needs to continue it.
type Task struct {
	Run     Run // with its input
	Lease   Lease
	History []Step // the latest attempt of each step, in sequence order
	// NextSequence is where the rest of the history begins (HistoryParams.From); 0: History is
	// complete.
	NextSequence int64
	// Base is set if the slot's worker keeps the run in memory since it parked it under this token.
	// History then holds only the steps that were settled since, by this claim; it is complete.
	Base      Token
	ClaimedAt time.Time
}
