package engine

import (
	"context"
	"time"
)

// Workers is the register of workers. A worker that is ONLINE or DRAINING keeps its leases; a
// worker that becomes OFFLINE loses them.
//
// # Lost workers
//
// A worker that is lost with several runs in hand does not show which of them killed it. None of
// them counts a loss; all become suspects (Run.Suspect) and are due within LossJitter. Claims then
// keep suspects apart, so that further losses tell them apart:
//
//   - Of the n suspects of one loss at most n/2, but at least one, are in hand of one worker at a
//     time. The loss of a worker with k suspects in hand makes these k the suspects of a new loss,
//     which halves the group. The other runs that it held become suspects of that loss apart from
//     them, in a group of their own.
//   - While one of those k is in hand of a worker, its limit applies to all suspects that the worker
//     holds, whatever their loss. Otherwise suspects of other losses would fill the places that the
//     halving leaves empty.
//   - A run that was the only suspect in hand, or the only run, counts the loss (LeaseLosses).
//     LossLimit of its type in a row fail it.
//   - A run is no suspect any more when it records a result or a failure of its code, parks or ends,
//     or has been in hand for SuspectFor without a loss. A run that is given back, freed without a
//     loss or paused stays a suspect.
//
// So one crashing run is found after about log2(n) losses and fails after LossLimit more, its
// neighbours complete, and innocent runs wait for half of the capacity, not for one another.
// AfterLeaseLost and Suspects are these rules. Runs and suspects are counted when the worker becomes
// OFFLINE, so they do not change if the runs are freed in several transactions or later. A hand-off
// at a start is not affected: new runs are no suspects.
type Workers interface {
	// RegisterWorker makes the worker known and ONLINE, notifies it, and returns it as registered.
	// A new namespace is made. w.ID is the id that the worker asks for or, with Chosen false, a new
	// one. InstanceID decides:
	//
	//   - The same instance is registered: it gets its id back (w.ID is ignored), its profile is
	//     renewed and its leases are kept. It is ONLINE, or DRAINING if it was. The call counts as
	//     a heartbeat, even if the clock was set back.
	//   - The id belongs to another instance that is not OFFLINE: ErrExists.
	//   - The id belonged to an instance that is OFFLINE: the new instance takes it over with
	//     totals of zero. Runs that the old instance still held are freed as lost (AfterLeaseLost).
	//     If there are very many, most are freed in separate transactions before.
	RegisterWorker(ctx context.Context, p RegisterWorkerParams) (Worker, error)
	// Heartbeat records that the worker lives, in one row. It returns those of the leases in Held
	// that the worker does not hold (Lost). A worker that is unknown or OFFLINE is WorkerNotFound,
	// and nothing changes. Repeating a heartbeat adds its counts again.
	//
	// With Whole, leases of the worker that Held does not name and that were claimed at least
	// NameWithin before Now are freed: due at once, no loss counted. If there are very many, the
	// rest are freed in separate transactions; what these do not reach, the next Whole heartbeat
	// frees.
	//
	// LastHeartbeatAt becomes Now. If the clock was set back, so that Now is before the last
	// heartbeat, it becomes one microsecond after that one: readers still see that the worker
	// lives. A call with MaxWait may be carried out that much later, to share its commit with
	// others.
	Heartbeat(ctx context.Context, p HeartbeatParams) (Beat, error)
	// DrainWorker makes an ONLINE worker DRAINING and notifies it. A worker that is DRAINING is no
	// error; one that is OFFLINE or unknown is WorkerNotFound. With an AuditID, a worker that was
	// ONLINE leaves the AuditEvent "DrainWorker" in the same transaction.
	DrainWorker(ctx context.Context, p DrainWorkerParams) error
	// ForceOfflineWorker makes a worker OFFLINE with the reason and frees its runs. A worker that
	// is OFFLINE already is no error and nothing happens; an unknown one is WorkerNotFound. With an
	// AuditID, a worker that was not OFFLINE leaves the AuditEvent "ForceOfflineWorker" in the same
	// transaction. The reason decides about the runs:
	//
	//   - OfflineDeregistered, OfflineForced: they are due at once, no loss is counted.
	//   - OfflineLost: AfterLeaseLost decides. A run keeps its lease until its own
	//     Timeouts.Heartbeat has passed since the last heartbeat; then FreeLost frees it. Nothing
	//     happens if the worker was heard from after HeardAt, because then it is not lost.
	//
	// A last heartbeat after Now, because the clock was set back, becomes Now; otherwise the runs
	// would be kept until that time. If the worker holds very many runs, they are freed in several
	// transactions. The first makes the worker OFFLINE. If an error or the end of the process stops
	// the others, FreeLost frees the rest, or the worker keeps them if its instance registers again
	// before that.
	ForceOfflineWorker(ctx context.Context, p OfflineWorkerParams) (Deregistered, error)
}

// RegisterWorkerParams holds a registration. The fields of Worker that the store sets itself, such
// as Status, are ignored.
type RegisterWorkerParams struct {
	Worker Worker
	Chosen bool // the worker chose its id itself
	// NamespaceMustExist: see StartRunsParams.
	NamespaceMustExist bool
	Now                time.Time
}

// New returns the worker to store for an instance that is not registered yet.
func (p *RegisterWorkerParams) New() Worker {
	w := p.Worker
	w.Status, w.Reason = WorkerOnline, 0
	w.Active, w.Completed, w.Failed, w.Stats = 0, 0, 0, WorkerStats{}
	w.RegisteredAt, w.LastHeartbeatAt, w.DeregisteredAt = p.Now, p.Now, time.Time{}
	return w
}

// Again returns the worker to store for an instance that is registered as known: it keeps its id,
// its totals and the status DRAINING.
func (p *RegisterWorkerParams) Again(known *Worker) Worker {
	w := p.New()
	if known.Status == WorkerDraining {
		w.Status = WorkerDraining
	}
	w.ID, w.RegisteredAt, w.LastHeartbeatAt = known.ID, known.RegisteredAt, known.HeardAgain(p.Now)
	w.Active, w.Completed, w.Failed, w.Stats = known.Active, known.Completed, known.Failed, known.Stats
	return w
}

// HeardAgain returns the last heartbeat of a worker that is heard from now. It is later than the
// one before even if the clock was set back.
func (w *Worker) HeardAgain(now time.Time) time.Time {
	if now.Before(w.LastHeartbeatAt) {
		return w.LastHeartbeatAt.Add(time.Microsecond)
	}
	return now
}

// HeartbeatParams holds a heartbeat.
type HeartbeatParams struct {
	WorkerID   string
	Active     int
	Completed  int // since the last accepted heartbeat
	Failed     int
	Stats      *WorkerStats // nil: as before
	Held       []Lease      // may contain duplicates
	Whole      bool         // Held names every run that the worker holds
	NameWithin time.Duration
	MaxWait    time.Duration // how long it may wait to share a commit with other calls; 0: not at all
	Now        time.Time     // when the worker was heard
}

// Beat answers Heartbeat.
type Beat struct {
	Status     WorkerStatus
	Lost       []Lease // those of Held that the worker does not hold any more
	Cancelling []Held  // those of Held whose code has to stop
	Pausing    []Lease // those of Held whose run is Pausing
}

// Held is a lease, with the requests to cancel and to pause its run if there are any.
type Held struct {
	Lease        Lease
	Pausing      bool
	GraceUntil   time.Time // set: cancellation was requested
	CancelReason string
}

// DrainWorkerParams names a worker to drain. The audit event has Subject "worker" and the worker's
// id and namespace.
type DrainWorkerParams struct {
	WorkerID string
	By       Actor
	AuditID  ID // zero when the worker itself asks: no event
	Now      time.Time
}

// Deregistered answers ForceOfflineWorker.
type Deregistered struct {
	Off   bool // this call made the worker OFFLINE
	Freed int  // how many runs it freed
}

// OfflineWorkerParams names a worker to make OFFLINE. The audit event has the same subject as that
// of DrainWorkerParams.
type OfflineWorkerParams struct {
	WorkerID string
	Reason   OfflineReason
	HeardAt  time.Time // with OfflineLost: the last heartbeat when the worker became a suspect
	By       Actor
	AuditID  ID // zero when no person or key asks: no event
	Now      time.Time
}

// Off returns the worker to store for one that was not OFFLINE before.
func (p *OfflineWorkerParams) Off(known *Worker) Worker {
	w := *known
	w.Status, w.Reason, w.DeregisteredAt = WorkerOffline, p.Reason, p.Now
	if w.LastHeartbeatAt.After(p.Now) {
		w.LastHeartbeatAt = p.Now
	}
	return w
}
