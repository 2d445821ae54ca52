package engine

import (
	"context"
	"time"
)

// Workers is the register of workers. Their leases live and die with them.
type Workers interface {
	// RegisterWorker makes the worker known and ONLINE, its namespace too if that is new, notifies
	// it, and returns it as it stands. w.ID is what it asks for or, with Chosen false, a fresh one;
	// InstanceID decides:
	//
	//   - the same instance is in the register: it gets its id back (whatever w.ID says), with its
	//     profile renewed and its leases kept; ONLINE, or DRAINING if it was. It counts as a
	//     heartbeat, also where the clock was set back.
	//   - the id is taken by another instance that is not OFFLINE: ErrExists.
	//   - the id belonged to an instance that is OFFLINE: the new one takes it over with its totals
	//     at zero; runs that the old one still held are freed as lost (AfterLeaseLost). Where these
	//     are very many, most are freed in transactions of their own before.
	RegisterWorker(ctx context.Context, p RegisterWorkerParams) (Worker, error)
	// Heartbeat notes that the worker lives, in one row, and says which of the leases that it names
	// it does not hold. With Whole, leases of the worker that it does not name, claimed at least
	// NameWithin before Now, are freed: due at once, no loss counted; where these are very many,
	// the rest in transactions of its own, and what these do not come to, the next heartbeat that
	// is Whole frees. A worker that is unknown or OFFLINE is WorkerNotFound, and nothing changes.
	// Repeating it adds the deltas again. The last heartbeat is Now; where Now is before the one
	// before, because the clock was set back, it is a microsecond after that one, so that whoever
	// looks sees that the worker lives. A call with MaxWait may be carried out that much later, so
	// that it shares its commit with others.
	Heartbeat(ctx context.Context, p HeartbeatParams) (Beat, error)
	// DrainWorker makes an ONLINE worker DRAINING and notifies it. DRAINING is fine again; OFFLINE
	// or unknown is WorkerNotFound. With an AuditID, a worker that was ONLINE leaves the AuditEvent
	// "DrainWorker" in the same transaction.
	DrainWorker(ctx context.Context, p DrainWorkerParams) error
	// OfflineWorker makes a worker OFFLINE, with the reason, and frees its runs.
	// OfflineDeregistered and OfflineForced: due at once, no loss counted. OfflineLost: as
	// AfterLeaseLost says, but a run whose own Timeouts.Heartbeat since the last heartbeat is not
	// yet over keeps its lease (FreeLost comes for it), and nothing happens at all when the worker
	// was heard from after HeardAt (the second look failed). A last heartbeat after Now, because
	// the clock was set back, becomes Now, so that its runs are not kept until then. OFFLINE
	// already is fine, and nothing happens; unknown is WorkerNotFound. With an AuditID, a worker
	// that was not OFFLINE leaves the AuditEvent "ForceOfflineWorker" in the same transaction. The
	// runs of one that holds very many are freed in several, the first of which takes it off:
	// whatever the others do not come to, because of an error or the end of the process, FreeLost
	// comes for, and a worker of that instance that comes back meanwhile keeps.
	ForceOfflineWorker(ctx context.Context, p OfflineWorkerParams) (Deregistered, error)
}

// RegisterWorkerParams is a registration. Of Worker the fields from Status on that the store keeps itself are ignored.
type RegisterWorkerParams struct {
	Worker Worker
	Chosen bool // the worker chose its id itself
	Now    time.Time
}

// New is the worker as the register holds it, of an instance that was not in it.
func (p *RegisterWorkerParams) New() Worker {
	w := p.Worker
	w.Status, w.Reason = WorkerOnline, 0
	w.Active, w.Completed, w.Failed, w.Stats = 0, 0, 0, WorkerStats{}
	w.RegisteredAt, w.LastHeartbeatAt, w.DeregisteredAt = p.Now, p.Now, time.Time{}
	return w
}

// Again is the worker as the register holds it, of an instance that is in it as known: it keeps its
// id, its totals and that it drains.
func (p *RegisterWorkerParams) Again(known *Worker) Worker {
	w := p.New()
	if known.Status == WorkerDraining {
		w.Status = WorkerDraining
	}
	w.ID, w.RegisteredAt, w.LastHeartbeatAt = known.ID, known.RegisteredAt, known.HeardAgain(p.Now)
	w.Active, w.Completed, w.Failed, w.Stats = known.Active, known.Completed, known.Failed, known.Stats
	return w
}

// HeardAgain is the last heartbeat of a worker that is heard from now: later than the one before,
// although the clock may have been set back.
func (w *Worker) HeardAgain(now time.Time) time.Time {
	if now.Before(w.LastHeartbeatAt) {
		return w.LastHeartbeatAt.Add(time.Microsecond)
	}
	return now
}

// HeartbeatParams is a sign of life.
type HeartbeatParams struct {
	WorkerID   string
	Active     int
	Completed  int // since the last accepted heartbeat
	Failed     int
	Stats      *WorkerStats // nil: as before
	Held       []Lease      // each any number of times
	Whole      bool         // Held names every run that the worker holds
	NameWithin time.Duration
	MaxWait    time.Duration // how long it may wait for others to share a commit with; 0: not at all
	Now        time.Time     // when the worker was heard
}

// Beat answers Heartbeat.
type Beat struct {
	Status     WorkerStatus
	Lost       []Lease // of Held, those that are the worker's no longer
	Cancelling []Held  // of Held, those whose code is to be told
}

// Held is a lease with what its worker may have to be told.
type Held struct {
	Lease        Lease
	GraceUntil   time.Time // set: cancellation was asked for
	CancelReason string
}

// DrainWorkerParams has a worker drain. The audit event has Subject "worker" and the worker's id and namespace.
type DrainWorkerParams struct {
	WorkerID string
	By       Actor
	AuditID  ID // zero when the worker itself asks: no event
	Now      time.Time
}

// Deregistered answers OfflineWorker.
type Deregistered struct {
	Off   bool // it was this call that made the worker OFFLINE
	Freed int  // how many runs it freed
}

// OfflineWorkerParams takes a worker off. The audit event is as that of DrainWorkerParams.
type OfflineWorkerParams struct {
	WorkerID string
	Reason   OfflineReason
	HeardAt  time.Time // with OfflineLost: the last heartbeat that the first look saw
	By       Actor
	AuditID  ID // zero when no person or key asks: no event
	Now      time.Time
}

// Off is a worker that was not OFFLINE, as it stands from then on.
func (p *OfflineWorkerParams) Off(known *Worker) Worker {
	w := *known
	w.Status, w.Reason, w.DeregisteredAt = WorkerOffline, p.Reason, p.Now
	if w.LastHeartbeatAt.After(p.Now) {
		w.LastHeartbeatAt = p.Now
	}
	return w
}
