package engine

import (
	"context"
	"maps"
	"slices"
	"time"
)

// Views holds the operations that read. An answer may be slightly old, but it includes every write
// that was acknowledged before the call. Lists leave out the payloads of runs.
type Views interface {
	GetRun(ctx context.Context, namespace string, id ID) (Run, error) // RunNotFound
	// GetRuns returns those of the runs that are in the namespace, in no order, without payloads.
	// At most MaxPage ids.
	GetRuns(ctx context.Context, namespace string, ids []ID) ([]Run, error)
	// GetRunByExternalID returns the newest run with that external id, ended or not; ErrNotFound.
	GetRunByExternalID(ctx context.Context, namespace, externalID string) (Run, error)
	// ListRuns returns a page of runs, newest first, by ID.
	ListRuns(ctx context.Context, f RunFilter, p Page) ([]Run, PageInfo, error)
	// ListSteps returns a page of the attempts of a run's steps that the filter selects, by sequence
	// and attempt. PageInfo.Total counts those only. RunNotFound.
	ListSteps(ctx context.Context, namespace string, run ID, f StepFilter, p Page) ([]Step, PageInfo, error)
	GetStep(ctx context.Context, namespace string, step ID) (Step, error) // StepNotFound
	// GetHistory returns what Claim delivers as Task.History, from p.From on. The second result is
	// the sequence where the rest begins; 0: there is no more.
	GetHistory(ctx context.Context, p HistoryParams) ([]Step, int64, error)
	// CurrentLease returns the lease under which a run is held now, for clients that have no token.
	// LeaseLost if nobody holds the run.
	CurrentLease(ctx context.Context, namespace string, run ID) (Lease, error)
	// HeldBy returns the leases of a worker, by run id.
	HeldBy(ctx context.Context, workerID string) ([]Held, error)
	// ListSignals returns a page of a run's signals, by sequence. RunNotFound.
	ListSignals(ctx context.Context, namespace string, run ID, p Page) ([]Signal, PageInfo, error)
	// ListHandlers returns the runs that handle a run's failure, by ID.
	ListHandlers(ctx context.Context, namespace string, run ID) ([]Run, error)
	// ListRetries returns the runs that a run was retried as, by ID.
	ListRetries(ctx context.Context, namespace string, run ID) ([]Run, error)
	// LatestOfChain returns the newest run whose FirstRunID this is: the one that has not continued,
	// or the last that is kept; zero if there is none. So the id of a chain's first run works after
	// that run was deleted.
	LatestOfChain(ctx context.Context, namespace string, first ID) (ID, error)
	// ExplainInputs returns what Explain needs to know about a run, read at one moment. RunNotFound.
	ExplainInputs(ctx context.Context, namespace string, run ID) (Circumstances, error)

	// GetSchedule returns the schedule with the id ref or, if ref is not an id, with that name;
	// ErrNotFound.
	GetSchedule(ctx context.Context, namespace, ref string) (Schedule, error)
	// ListSchedules returns a page of schedules, newest first, by ID, without inputs.
	ListSchedules(ctx context.Context, f ScheduleFilter, p Page) ([]Schedule, PageInfo, error)
	GetNamespace(ctx context.Context, name string) (Namespace, error) // ErrNotFound
	// ListNamespaces returns a page of namespaces, by name.
	ListNamespaces(ctx context.Context, p Page) ([]Namespace, PageInfo, error)
	// ListAuditEvents returns a page of audit events, newest first, by ID.
	ListAuditEvents(ctx context.Context, f AuditFilter, p Page) ([]AuditEvent, PageInfo, error)

	GetWorker(ctx context.Context, id string) (Worker, error) // also OFFLINE ones; ErrNotFound
	// ListWorkers returns a page of workers, newest first: by RegisteredAt, then ID, both
	// descending.
	ListWorkers(ctx context.Context, f WorkerFilter, p Page) ([]Worker, PageInfo, error)
	// GetQueueDepth returns one row for each queue that has open runs or workers that are not
	// OFFLINE, by name; with queue, for that one only.
	GetQueueDepth(ctx context.Context, namespace, queue string, now time.Time) ([]QueueDepth, error)
	// GetStats counts everything in one namespace or, if that is empty, in all. It may scan.
	GetStats(ctx context.Context, namespace string, now time.Time) (Stats, error)
	// ListTypes returns a page of the workflow types that have runs, by name.
	ListTypes(ctx context.Context, namespace string, p Page) ([]TypeInfo, PageInfo, error)
}

// HistoryParams asks for part of a run's history.
type HistoryParams struct {
	Namespace string
	RunID     ID
	From      int64 // sequence
	Bytes     int   // approximate limit; always at least one step
}

// QueueDepth counts the open runs and the workers of one queue.
type QueueDepth struct {
	Queue         string
	Pending       int64
	Running       int64
	Sleeping      int64
	OldestDue     time.Time // AvailableAt of the oldest run that is due; unset: none
	OnlineWorkers int
	// Unserved is the due PENDING and SLEEPING runs, by type, that no ONLINE worker of the queue
	// serves (by type and requirements).
	Unserved map[string]int64
}

// Stats counts runs, workers and schedules.
type Stats struct {
	ByStatus         map[RunStatus]int64
	ByType           map[string]int64
	Workers          int64 // OFFLINE ones included
	OnlineWorkers    int64
	Schedules        int64
	EnabledSchedules int64
	OldestDue        time.Time
}

// NamedHolders limits how many runs with a place of a concurrency key an explanation names.
const NamedHolders = 5

// Circumstances holds a run and what it may wait for.
type Circumstances struct {
	Run     Run      // without payloads
	Steps   []Step   // its steps that are open or Awaited, without payloads
	Workers []Worker // of its namespace that are not OFFLINE and serve its queue
	// NamespaceEnabled is false when nothing is claimed there.
	NamespaceEnabled bool
	// RunningInQueue and RunningOfType count leases: of the queue, and of the run's type in it.
	RunningInQueue int
	RunningOfType  int
	// PlacesOfKey counts the places of its ConcurrencyKey that are taken. HoldersOfKey are the runs
	// that have them, the first NamedHolders by ID.
	PlacesOfKey  int
	HoldersOfKey []ID
	// AheadInLine counts the runs Gated by the same key that come before this one, by priority,
	// HeldAt and ID.
	AheadInLine int
	// LastPause says who paused the run, when and why; nil: unknown. The store does not set it; its
	// caller does, from ListAuditEvents.
	LastPause *AuditEvent
	// WorkerLease is how long a worker that is not heard from keeps its runs; 0: unknown. The store
	// does not set it; its caller does.
	WorkerLease time.Duration
}

// TypeInfo is one workflow type that has runs.
type TypeInfo struct {
	Type   string
	Total  int64
	Active int64
	Queues []string // in byte order
}

// Page asks for part of a list. Each list has one fixed order. The page is what follows After or
// what precedes Before, always returned in the order of the list. At most one of the two may be
// set.
type Page struct {
	Limit  int // at least 1
	After  *Cursor
	Before *Cursor
	Count  bool // also count the whole list, which costs a scan
}

// Span returns exclusive bounds of the ids of a page, for a list that is newest first, by ID. A
// store starts reading there, however far the page is from the newest.
func (p *Page) Span() (above, below ID) {
	if p.After != nil {
		below = p.After.ID
	} else {
		for i := range below {
			below[i] = 0xff
		}
	}
	return p.Before.OrZero().ID, below
}

// Cursor is a position in a list: the sort key of one item. Each list uses some of the fields.
type Cursor struct {
	ID     ID        // runs, schedules, audit events, keys
	At     time.Time // workers: their registration
	Name   string    // workers: their id; workflow types and namespaces: their name
	Number int64     // steps and signals: their sequence
	Minor  int       // steps: their attempt
}

// OrZero returns the cursor, or the zero cursor if c is nil.
func (c *Cursor) OrZero() Cursor {
	if c == nil {
		return Cursor{}
	}
	return *c
}

// PageInfo says what lies before and after a page.
type PageInfo struct {
	HasNext bool
	HasPrev bool
	Total   int64 // with Page.Count
}

// Cut returns the page from the items that were read for it. The caller reads items from the page's
// position on, up to one more than Limit, and for a page with Before in reverse order. Cut sets
// HasNext and HasPrev of info. It may change items.
func Cut[V any](items []V, p *Page, info *PageInfo) []V {
	more := len(items) > p.Limit
	if more {
		items = items[:p.Limit]
	}
	if p.Before != nil {
		slices.Reverse(items)
		info.HasPrev, info.HasNext = more, true
	} else {
		info.HasNext, info.HasPrev = more, p.After != nil
	}
	return items
}

// Depths builds the result of Views.GetQueueDepth from the counts of a backend, for one namespace.
// The zero value is empty.
type Depths struct {
	queues map[string]*QueueDepth
	due    []LaneDepth // lanes with due runs
}

// LaneDepth counts the waiting runs of one lane. It has no priority, because the same workers serve
// every priority.
type LaneDepth struct {
	Queue        string
	Type         string
	Requirements map[string]string
	Pending      int64
	Sleeping     int64
	Due          int64
	OldestDue    time.Time // with Due
}

func (d *Depths) queue(name string) *QueueDepth {
	if d.queues == nil {
		d.queues = map[string]*QueueDepth{}
	}
	if d.queues[name] == nil {
		d.queues[name] = &QueueDepth{Queue: name}
	}
	return d.queues[name]
}

// AddLane adds a lane to the counts of its queue.
func (d *Depths) AddLane(l LaneDepth) {
	q := d.queue(l.Queue)
	q.Pending += l.Pending
	q.Sleeping += l.Sleeping
	if l.Due == 0 {
		return
	}
	d.due = append(d.due, l)
	if q.OldestDue.IsZero() || l.OldestDue.Before(q.OldestDue) {
		q.OldestDue = l.OldestDue
	}
}

// SetRunning sets how many runs of a queue are held by workers.
func (d *Depths) SetRunning(queue string, running int64) { d.queue(queue).Running = running }

// List returns the queues by name, including those that only have workers. workers are all workers
// of the namespace that are not OFFLINE. With only, just that queue was counted and is listed.
func (d *Depths) List(workers []Worker, only string) (list []QueueDepth) {
	for i := range workers {
		for _, name := range workers[i].Queues {
			if only != "" && name != only {
				continue
			}
			q := d.queue(name)
			if workers[i].Status == WorkerOnline {
				q.OnlineWorkers++
			}
		}
	}
	for i := range d.due {
		d.match(&d.due[i], workers)
	}
	for _, name := range slices.Sorted(maps.Keys(d.queues)) {
		list = append(list, *d.queues[name])
	}
	return list
}

// match counts the due runs of a lane as Unserved if no ONLINE worker serves it.
func (d *Depths) match(l *LaneDepth, workers []Worker) {
	served := slices.ContainsFunc(workers, func(w Worker) bool {
		return w.Status == WorkerOnline && slices.Contains(w.Queues, l.Queue) && slices.Contains(w.Types, l.Type) &&
			Meets(w.Offers(), l.Requirements)
	})
	if served {
		return
	}
	q := d.queue(l.Queue)
	if q.Unserved == nil {
		q.Unserved = map[string]int64{}
	}
	q.Unserved[l.Type] += l.Due
}
