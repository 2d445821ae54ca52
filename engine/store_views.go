package engine

import (
	"context"
	"maps"
	"slices"
	"time"
)

// Views are for reading. They may be slightly behind the writes, but never behind one that was acknowledged before they
// were asked. Payloads of runs are left out of lists.
type Views interface {
	GetRun(ctx context.Context, namespace string, id ID) (Run, error) // RunNotFound
	// GetRuns is those of the runs that are in the namespace, in no order, without payloads; it
	// asks for at most MaxPage.
	GetRuns(ctx context.Context, namespace string, ids []ID) ([]Run, error)
	// GetRunByExternalID is the newest run with that id, ended or not; ErrNotFound.
	GetRunByExternalID(ctx context.Context, namespace, externalID string) (Run, error)
	// ListRuns is newest first, by ID.
	ListRuns(ctx context.Context, f RunFilter, p Page) ([]Run, PageInfo, error)
	// ListSteps is all attempts of a run's steps, by sequence and attempt; with name of that step only. RunNotFound.
	ListSteps(ctx context.Context, namespace string, run ID, name string, p Page) ([]Step, PageInfo, error)
	GetStep(ctx context.Context, namespace string, step ID) (Step, error) // StepNotFound
	// History is what Claim delivers as Task.History, from p.From on; the second result is where
	// the rest begins, 0 when there is none.
	GetHistory(ctx context.Context, p HistoryParams) ([]Step, int64, error)
	// CurrentLease is the lease that a run is held under now, for clients that know no token.
	// LeaseLost when nobody holds it.
	CurrentLease(ctx context.Context, namespace string, run ID) (Lease, error)
	// HeldBy is the leases of a worker, in the order of their runs' ids.
	HeldBy(ctx context.Context, workerID string) ([]Held, error)
	// ListSignals is a run's, by sequence. RunNotFound.
	ListSignals(ctx context.Context, namespace string, run ID, p Page) ([]Signal, PageInfo, error)
	// ListHandlers is the runs that handle a run's failure, and ListRetries those that it was retried as, by ID.
	ListHandlers(ctx context.Context, namespace string, run ID) ([]Run, error)
	ListRetries(ctx context.Context, namespace string, run ID) ([]Run, error)
	// Circumstances is what Explain needs to know of a run, all at one moment. now decides about
	// its place in a line. RunNotFound.
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
	// QueueDepths is one row a queue that has open runs or workers that are not OFFLINE, by name;
	// with queue of that one only.
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
	// RunningOfKey counts leases of its ConcurrencyKey, and AheadInLine the runs that are Gated by
	// it and that Claim would take before this one, by HeldAt, if they were due: those held for
	// StarvationAfter or longer, then by priority, then by HeldAt, then by ID.
	RunningOfKey int
	AheadInLine  int
	// LastPause is who paused the run, when and why, if that is known. The store leaves it to its
	// caller, who has ListAudit.
	LastPause *AuditEvent
	// WorkerLease is how long a worker that is not heard from keeps its runs; 0: not known. The
	// store leaves it to its caller too.
	WorkerLease time.Duration
}

// TypeInfo is one workflow type that has runs.
type TypeInfo struct {
	Type   string
	Total  int64
	Active int64
	Queues []string // in byte order
}

// Page asks for part of a list. Lists have one fixed order each; a page is what follows After, or what precedes
// Before, always returned in the list's own order. At most one of the two is set.
type Page struct {
	Limit  int // at least 1
	After  *Cursor
	Before *Cursor
	Count  bool // also count the whole list, which costs a scan
}

// Span is the ids between which all items of a page have theirs, both left out, in a list that is
// newest first, by ID. However far from the newest a page is, a store begins there.
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

// Cursor is a place in a list: the sort key of one item. Each list says which fields it uses.
type Cursor struct {
	ID     ID        // runs, schedules, audit events, keys
	At     time.Time // workers: their registration
	Name   string    // workers: their id; workflow types and namespaces: their name
	Number int64     // steps and signals: their sequence
	Minor  int       // steps: their attempt
}

// OrZero is the place, or the zero one when there is none.
func (c *Cursor) OrZero() Cursor {
	if c == nil {
		return Cursor{}
	}
	return *c
}

// PageInfo tells what lies around a page.
type PageInfo struct {
	HasNext bool
	HasPrev bool
	Total   int64 // with Page.Count
}

// Cut makes the page out of what was read for it: items from its place on, one more than its Limit
// if there are as many, and for a page backwards in the reverse of the list's order. It notes in
// info what lies around the page, and may change items.
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

// Depths makes what Views.QueueDepths returns out of what a backend has counted in one namespace.
// The zero value has counted nothing.
type Depths struct {
	queues map[string]*QueueDepth
	due    []LaneDepth // those with due runs
}

// LaneDepth is what waits in one lane. Its priority is left out, for the same workers serve it whatever that is.
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

// AddLane counts a lane to its queue.
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

// SetRunning notes how many runs of a queue workers hold.
func (d *Depths) SetRunning(queue string, running int64) { d.queue(queue).Running = running }

// List is the queues by name, those of the workers included. workers is all of the namespace that
// are not OFFLINE; with only, the lanes and the runs were counted of that queue alone, and no other
// is listed for its workers.
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

// match counts the due runs of a lane as Unserved when no ONLINE worker serves it.
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
