package session

import (
	"context"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/async"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// call executes an operation of the session, unless it builds on one that was refused.
func (w *session) call(ctx context.Context, at engine.Sequenced,
	request *kagziv1.SessionRequest) (answer *kagziv1.SessionResponse, err error) {
	defer func() {
		if v := recover(); v != nil {
			answer, err = nil, async.Recovered(v)
		}
	}()
	if request.Seq < 1 {
		return nil, engine.Invalid("seq", "must be at least 1, got %d", request.Seq)
	}
	if request.After < 0 || request.After >= request.Seq {
		return nil, engine.Invalid("after", "must be 0 or the seq of an earlier operation, got %d", request.After)
	}
	if request.After > 0 && w.refused.has(request.After) {
		return nil, engine.ErrPrevRefused
	}
	if err := wire.CheckOperation(request); err != nil {
		return nil, err
	}
	known, ok := operationOf(request)
	if !ok {
		return nil, wire.ErrUnsupported
	}
	return known.do(ctx, w, at, request)
}

// over removes a run from what the session holds if its lease has ended, by this operation or
// before.
func (w *session) over(r leased, err error, ended bool) {
	if err != nil && engine.KindOf(err) != engine.KindLeaseLost || err == nil && !ended {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(r)
}

// keep notes that the worker is about to park a run that it keeps in memory. It is noted before the run
// is parked, because it may be due again at once.
func (w *session) keep(r naming, parks bool) {
	if l, ok := leaseIn(r); ok && parks {
		w.poller.Keep(l)
	}
}

// naming is a message that names a lease: a request of the worker or a message to it.
type naming interface {
	GetRunId() string
	GetLeaseToken() string
}

// leaseIn returns the lease that a message names; false if it is malformed.
func leaseIn(m naming) (engine.Lease, bool) {
	id, idErr := engine.ParseID(m.GetRunId())
	token, tokenErr := engine.ParseToken(m.GetLeaseToken())
	return engine.Lease{RunID: id, Token: token}, idErr == nil && tokenErr == nil
}

// forget removes the lease that a message names from what the session holds, unless the session
// holds the run under another lease. w.mu is held.
func (w *session) forget(m naming) {
	if l, ok := leaseIn(m); ok && w.held[l.RunID].token == l.Token {
		delete(w.held, l.RunID)
	}
}

// credit allows the server to push that many more tasks.
func (w *session) credit(_ context.Context, c *kagziv1.Credit) (*kagziv1.SessionResponse, error) {
	if c.Tasks < 1 || c.Tasks > engine.MaxConcurrent {
		return nil, engine.Invalid("credit.tasks", "must be between 1 and %d, got %d", engine.MaxConcurrent, c.Tasks)
	}
	w.poller.AddCredit(int(c.Tasks))
	return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_Ack{Ack: &kagziv1.Ack{}}}, nil
}

// heartbeat handles a heartbeat of this session's worker.
func (w *session) heartbeat(ctx context.Context, r *kagziv1.HeartbeatRequest) (*kagziv1.SessionResponse, error) {
	if r.WorkerId == "" {
		r.WorkerId = w.worker.ID
	}
	if r.WorkerId != w.worker.ID {
		return nil, engine.Invalid("worker_id", "is not the worker of this session")
	}
	w.service.guard.Used(auth.CallerOf(ctx)) // the stream may be open for days
	response, err := w.service.heartbeat(ctx, r, w.inTransit(r), w.service.maxBeatWait())
	if err != nil {
		return nil, err
	}
	adopted := w.adopt(r.Held)
	w.mu.Lock()
	for _, l := range response.Lost {
		w.forget(l)
	}
	w.mu.Unlock()
	w.told(response.Cancelling)
	if w.pausesDiffer(r.Held, response.Pausing) || adopted { // one of them may have changed before the session knew it
		async.Notify(w.wake)
	}
	response.Pausing = nil
	if response.ShouldDrain {
		w.poller.Leave()
	}
	w.poller.Look()
	return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_Heartbeat{Heartbeat: response}}, nil
}

// adopt adds the leases that the first heartbeat of the session names: the worker has them from an
// earlier session. It says whether there are any.
func (w *session) adopt(named []*kagziv1.Lease) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.named {
		return false
	}
	w.named = true
	found := false
	for _, n := range named {
		l, ok := leaseIn(n)
		if _, known := w.held[l.RunID]; ok && !known {
			w.held[l.RunID], found = holding{token: l.Token}, true
		}
	}
	return found
}

// told records which runs an answer tells the worker to stop, so that it is not told again.
func (w *session) told(cancelling []*kagziv1.CancelTask) {
	for _, c := range cancelling {
		if l, ok := leaseIn(c); ok {
			w.toldNow(engine.Held{Lease: l, GraceUntil: c.GraceUntil.AsTime()})
		}
	}
}

// pausesDiffer says whether the worker must be told of runs to pause, or that one is not to be paused
// any more. It does not tell, because a later answer may have overtaken this one.
func (w *session) pausesDiffer(named, pausing []*kagziv1.Lease) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	told := 0
	for _, n := range named {
		if l, ok := leaseIn(n); ok && w.held[l.RunID].token == l.Token && w.held[l.RunID].pausing {
			told++
		}
	}
	for _, n := range pausing {
		if l, ok := leaseIn(n); ok && w.held[l.RunID].token == l.Token && !w.held[l.RunID].pausing {
			return w.worker.PausesRuns
		}
	}
	return told != len(pausing) && w.worker.PausesRuns
}

// goodbye deregisters the worker and ends the session or, with drain, only stops new tasks.
func (w *session) goodbye(ctx context.Context, r *kagziv1.DeregisterRequest) (*kagziv1.SessionResponse, error) {
	if r.WorkerId == "" {
		r.WorkerId = w.worker.ID
	}
	if r.WorkerId != w.worker.ID {
		return nil, engine.Invalid("worker_id", "is not the worker of this session")
	}
	w.poller.Leave()
	w.mu.Lock()
	w.draining = true // the worker asked for it, so it need not be told
	w.leaving = w.leaving || !r.Drain
	w.mu.Unlock()
	response, err := w.service.deregister(ctx, r)
	if err != nil {
		w.mu.Lock()
		w.leaving = false // it is still registered and may try again
		w.mu.Unlock()
		return nil, err
	}
	if !r.Drain {
		defer w.end(nil)
	}
	return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_Goodbye{Goodbye: response}}, nil
}
