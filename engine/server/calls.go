package server

import (
	"context"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/async"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// call carries out an operation of the session, unless it builds on one that was refused.
func (w *session) call(ctx context.Context, request *kagziv1.SessionRequest) (answer *kagziv1.SessionResponse, err error) {
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
		return nil, engine.ErrBehindRefused
	}
	if err := wire.CheckOperation(request); err != nil {
		return nil, err
	}
	return w.route(ctx, request)
}

// route is the way from an operation of the session to the one of the unary call.
func (w *session) route(ctx context.Context, request *kagziv1.SessionRequest) (*kagziv1.SessionResponse, error) {
	s := w.server
	switch op := request.Operation.(type) {
	case *kagziv1.SessionRequest_Credit:
		return ack(w.credit(op.Credit))
	case *kagziv1.SessionRequest_Heartbeat:
		return w.beat(ctx, op.Heartbeat)
	case *kagziv1.SessionRequest_Goodbye:
		return w.goodbye(ctx, op.Goodbye)
	case *kagziv1.SessionRequest_BeginStep:
		op.BeginStep.Namespace = w.worker.Namespace
		r, err := s.beginStep(ctx, op.BeginStep)
		return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_BegunStep{BegunStep: r}}, err
	case *kagziv1.SessionRequest_CompleteStep:
		op.CompleteStep.Namespace = w.worker.Namespace
		_, step, err := s.completeStep(ctx, op.CompleteStep)
		return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_CompletedStep{CompletedStep: addedTo(&step)}}, err
	case *kagziv1.SessionRequest_FailStep:
		op.FailStep.Namespace = w.worker.Namespace
		r, err := s.failStep(ctx, op.FailStep)
		w.over(op.FailStep, err, r.GetScheduledRetry() && !op.FailStep.Hold)
		return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_FailedStep{FailedStep: r}}, err
	case *kagziv1.SessionRequest_Sleep:
		op.Sleep.Namespace = w.worker.Namespace
		r, err := s.sleep(ctx, op.Sleep)
		w.over(op.Sleep, err, !op.Sleep.Hold)
		return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_Sleeping{Sleeping: r}}, err
	case *kagziv1.SessionRequest_AwaitSignal:
		op.AwaitSignal.Namespace = w.worker.Namespace
		r, err := s.awaitSignal(ctx, op.AwaitSignal)
		w.over(op.AwaitSignal, err, r.GetPayload() == nil && !r.GetTimedOut() && !op.AwaitSignal.Hold)
		return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_AwaitedSignal{AwaitedSignal: r}}, err
	case *kagziv1.SessionRequest_StartChild:
		if op.StartChild.Child != nil {
			op.StartChild.Child.Namespace = w.worker.Namespace
		}
		r, err := s.startChild(ctx, op.StartChild)
		return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_StartedChild{StartedChild: r}}, err
	case *kagziv1.SessionRequest_AwaitChildren:
		op.AwaitChildren.Namespace = w.worker.Namespace
		r, err := s.awaitChildren(ctx, op.AwaitChildren)
		w.over(op.AwaitChildren, err, len(r.GetSteps()) == 0 && !op.AwaitChildren.Hold)
		return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_AwaitedChildren{AwaitedChildren: r}}, err
	case *kagziv1.SessionRequest_SetNote:
		r, err := s.setNote(ctx, w.worker.Namespace, op.SetNote)
		return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_Ack{Ack: r}}, err
	case *kagziv1.SessionRequest_CompleteWorkflow:
		op.CompleteWorkflow.Namespace = w.worker.Namespace
		r, err := s.completeWorkflow(ctx, op.CompleteWorkflow)
		w.over(op.CompleteWorkflow, err, true)
		return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_CompletedWorkflow{CompletedWorkflow: r}}, err
	case *kagziv1.SessionRequest_FailWorkflow:
		op.FailWorkflow.Namespace = w.worker.Namespace
		r, err := s.failWorkflow(ctx, op.FailWorkflow)
		w.over(op.FailWorkflow, err, true)
		return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_FailedWorkflow{FailedWorkflow: r}}, err
	case *kagziv1.SessionRequest_ReleaseTask:
		op.ReleaseTask.Namespace = w.worker.Namespace
		r, err := s.releaseTask(ctx, op.ReleaseTask)
		w.over(op.ReleaseTask, err, true)
		return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_ReleasedTask{ReleasedTask: r}}, err
	case *kagziv1.SessionRequest_Hello:
		return nil, engine.Invalid("hello", "can only be the first operation of a session")
	default:
		return nil, wire.ErrUnsupported
	}
}

// over forgets a run whose lease has ended: by this operation, or before it.
func (w *session) over(r leased, err error, ended bool) {
	if err != nil && engine.KindOf(err) != engine.KindLeaseLost || err == nil && !ended {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(r)
}

// naming is a message that names a lease: a request of the worker's, or what it is told.
type naming interface {
	GetRunId() string
	GetLeaseToken() string
}

// leaseIn is the lease that a message names; false where it can be none.
func leaseIn(m naming) (engine.Lease, bool) {
	id, idErr := engine.ParseID(m.GetRunId())
	token, tokenErr := engine.ParseToken(m.GetLeaseToken())
	return engine.Lease{RunID: id, Token: token}, idErr == nil && tokenErr == nil
}

// forget drops the lease that a message names from what the session holds, unless it holds the run under another. It needs w.mu.
func (w *session) forget(m naming) {
	if l, ok := leaseIn(m); ok && w.held[l.RunID].token == l.Token {
		delete(w.held, l.RunID)
	}
}

// credit lets the server push so many more tasks.
func (w *session) credit(c *kagziv1.Credit) error {
	if c.Tasks < 1 || c.Tasks > engine.MaxConcurrent {
		return engine.Invalid("credit.tasks", "must be between 1 and %d, got %d", engine.MaxConcurrent, c.Tasks)
	}
	w.seat.Grant(int(c.Tasks))
	return nil
}

// beat is a heartbeat of this session's worker.
func (w *session) beat(ctx context.Context, r *kagziv1.HeartbeatRequest) (*kagziv1.SessionResponse, error) {
	if r.WorkerId == "" {
		r.WorkerId = w.worker.ID
	}
	if r.WorkerId != w.worker.ID {
		return nil, engine.Invalid("worker_id", "is not the worker of this session")
	}
	w.server.guard.Used(auth.CallerOf(ctx)) // the stream may be open for days
	response, err := w.server.heartbeat(ctx, r, w.underWay(r), w.server.patience())
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
	if adopted { // the bell may have been rung for one of them before it was known here
		async.Notify(w.bell)
	}
	if response.ShouldDrain {
		w.seat.Leave()
	}
	w.seat.Look()
	return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_Heartbeat{Heartbeat: response}}, nil
}

// adopt notes what the first heartbeat of the session names: leases that the worker has from an earlier one. It says whether there are any.
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

// told notes what an answer tells the worker to stop, so that the bell does not tell it again.
func (w *session) told(cancelling []*kagziv1.CancelTask) {
	for _, c := range cancelling {
		if l, ok := leaseIn(c); ok {
			w.toldNow(engine.Held{Lease: l, GraceUntil: c.GraceUntil.AsTime()})
		}
	}
}

// goodbye takes the worker off and ends the session, or with drain only stops what it is given.
func (w *session) goodbye(ctx context.Context, r *kagziv1.DeregisterRequest) (*kagziv1.SessionResponse, error) {
	if r.WorkerId == "" {
		r.WorkerId = w.worker.ID
	}
	if r.WorkerId != w.worker.ID {
		return nil, engine.Invalid("worker_id", "is not the worker of this session")
	}
	w.seat.Leave()
	w.mu.Lock()
	w.draining = true // it knows: it has just said so
	w.leaving = w.leaving || !r.Drain
	w.mu.Unlock()
	response, err := w.server.deregister(ctx, r)
	if err != nil {
		w.mu.Lock()
		w.leaving = false // it is still there, and may say so again
		w.mu.Unlock()
		return nil, err
	}
	if !r.Drain {
		defer w.end(nil)
	}
	return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_Goodbye{Goodbye: response}}, nil
}
