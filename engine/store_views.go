package engine

import (
	"context"
	"time"
)

// Views are for reading. They may be slightly behind the writes, but never behind one that was acknowledged before they
// were asked. Payloads of runs are left out of lists.
type Views interface {
	GetRun(ctx context.Context, namespace string, id ID) (Run, error) // RunNotFound
	// GetRuns is those of the runs that are in the namespace, in no order, without payloads; it asks for at most MaxPage.
	GetRuns(ctx context.Context, namespace string, ids []ID) ([]Run, error)
	// GetRunByExternalID is the newest run with that id, ended or not; ErrNotFound.
	GetRunByExternalID(ctx context.Context, namespace, externalID string) (Run, error)
	// ListRuns is newest first, by ID.
	ListRuns(ctx context.Context, f RunFilter, p Page) ([]Run, PageInfo, error)
	// ListSteps is all attempts of a run's steps, by sequence and attempt; with name of that step only. RunNotFound.
	ListSteps(ctx context.Context, namespace string, run ID, name string, p Page) ([]Step, PageInfo, error)
	GetStep(ctx context.Context, namespace string, step ID) (Step, error) // StepNotFound
	// History is what Claim delivers as Task.History, from p.From on; the second result is where the rest begins, 0 when there
	// is none.
	GetHistory(ctx context.Context, p HistoryParams) ([]Step, int64, error)
	// CurrentLease is the lease that a run is held under now, for clients that know no token. LeaseLost when nobody holds it.
	CurrentLease(ctx context.Context, namespace string, run ID) (Lease, error)
	// HeldBy is the leases of a worker, in the order of their runs' ids.
	HeldBy(ctx context.Context, workerID string) ([]Held, error)
	// ListSignals is a run's, by sequence. RunNotFound.
	ListSignals(ctx context.Context, namespace string, run ID, p Page) ([]Signal, PageInfo, error)
	// ListHandlers is the runs that handle a run's failure, and ListRetries those that it was retried as, by ID.
	ListHandlers(ctx context.Context, namespace string, run ID) ([]Run, error)
	ListRetries(ctx context.Context, namespace string, run ID) ([]Run, error)
	// Circumstances is what Explain needs to know of a run, all at one moment. now decides about its place in a line. RunNotFound.
	ExplainInputs(ctx context.Context, namespace string, run ID, now time.Time) (Circumstances, error)

	// GetSchedule goes by id or, when ref is none, by name; ErrNotFound.
	GetSchedule(ctx context.Context, namespace, ref string) (Schedule, error)
	// ListSchedules is newest first, by ID, without inputs.
	ListSchedules(ctx context.Context, f ScheduleFilter, p Page) ([]Schedule, PageInfo, error)
	GetNamespace(ctx context.Context, name string) (Namespace, error) // ErrNotFound
	// ListNamespaces is by name.
	ListNamespaces(ctx context.Context, p Page) ([]Namespace, PageInfo, error)
	// ListAudit is newest first, by ID.
	ListAuditEvents(ctx context.Context, f AuditFilter, p Page) ([]AuditEvent, PageInfo, error)

	GetWorker(ctx context.Context, id string) (Worker, error) // ErrNotFound, also knows OFFLINE ones
	// ListWorkers is newest first, by RegisteredAt and then ID, both descending.
	ListWorkers(ctx context.Context, f WorkerFilter, p Page) ([]Worker, PageInfo, error)
	// QueueDepths is one row a queue that has open runs or workers that are not OFFLINE, by name; with queue of that one only.
	GetQueueDepth(ctx context.Context, namespace, queue string, now time.Time) ([]QueueDepth, error)
	// Stats counts everything, of one namespace or, when that is empty, of all. It may scan.
	GetStats(ctx context.Context, namespace string, now time.Time) (Stats, error)
	// ListTypes is by name.
	ListTypes(ctx context.Context, namespace string, p Page) ([]TypeInfo, PageInfo, error)
}

// HistoryParams asks for part of a run's history.
type HistoryParams struct {
	Namespace string
	RunID     ID
	From      int64 // sequence
	Bytes     int   // about so much; always at least one step
}

// QueueDepth is what waits and runs in one queue.
type QueueDepth struct {
	Queue         string
	Pending       int64
	Running       int64
	Sleeping      int64
	OldestDue     time.Time // AvailableAt of the oldest run that is due and waits; unset: none
	OnlineWorkers int
	// Unserved is the due PENDING and SLEEPING runs, by type, that no ONLINE worker of the queue serves (by type and
	// requirements).
	Unserved map[string]int64
}

// Stats is everything counted.
type Stats struct {
	ByStatus         map[RunStatus]int64
	ByType           map[string]int64
	Workers          int64 // OFFLINE ones included
	OnlineWorkers    int64
	Schedules        int64
	EnabledSchedules int64
	OldestDue        time.Time
}

// Circumstances is a run and what it may wait for.
type Circumstances struct {
	Run     Run      // without payloads
	Steps   []Step   // that are open or Awaited, without payloads
	Workers []Worker // of its namespace that are not OFFLINE and serve its queue
	// NamespaceEnabled is false when nothing is claimed there.
	NamespaceEnabled bool
	// RunningInQueue and RunningOfType count leases: of the queue, and of the run's type in it.
	RunningInQueue int
	RunningOfType  int
	// RunningOfKey counts leases of its ConcurrencyKey, and AheadInLine the runs that are Gated by it and that Claim would take before this
	// one, by HeldAt, if they were due: those held for StarvationAfter or longer, then by priority, then by HeldAt, then by ID.
	RunningOfKey int
	AheadInLine  int
	// LastPause is who paused the run, when and why, if that is known. The store leaves it to its caller, who has ListAudit.
	LastPause *AuditEvent
	// WorkerLease is how long a worker that is not heard from keeps its runs; 0: not known. The store leaves it to its caller too.
	WorkerLease time.Duration
}

// TypeInfo is one workflow type that has runs.
type TypeInfo struct {
	Type   string
	Total  int64
	Active int64
	Queues []string // in byte order
}
