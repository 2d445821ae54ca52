package server

import (
	"context"
	"sync"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// receive reads operations until the stream ends. Those of one run are carried out in their order, everything else at once.
func (w *session) receive(ctx context.Context, stream kagziv1.WorkerService_SessionServer) {
	// Operations go on when the stream breaks: what has come in counts, and the worker learns so when it repeats it.
	carry := context.WithoutCancel(ctx)
	for {
		request, err := stream.Recv()
		if err != nil {
			w.end(err)
			return
		}
		select {
		case w.room <- struct{}{}:
		case <-ctx.Done():
			return
		}
		if !w.enter() {
			return
		}
		do := func() {
			defer w.calls.Done()
			w.perform(carry, request)
		}
		if run := runOfOperation(request); run != "" {
			w.inOrder(run, do)
		} else {
			go do()
		}
	}
}

// enter counts an operation in, unless the session is being closed, which waits for those counted.
func (w *session) enter() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.calls.Add(1)
	}
	return !w.closed
}

// inOrder carries do out after everything that was given before for the same run.
func (w *session) inOrder(run string, do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if waiting, busy := w.pending[run]; busy {
		w.pending[run] = append(waiting, do)
		return
	}
	w.pending[run] = nil
	go func() {
		for do != nil {
			do()
			do = w.nextOf(run)
		}
	}()
}

func (w *session) nextOf(run string) func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	waiting := w.pending[run]
	if len(waiting) == 0 {
		delete(w.pending, run)
		if w.recheck {
			w.recheck = false
			ring(w.bell)
		}
		return nil
	}
	w.pending[run] = waiting[1:]
	return waiting[0]
}

// runOfOperation is the run that an operation is about; empty for the others.
func runOfOperation(r *kagziv1.SessionRequest) string {
	switch op := r.Operation.(type) {
	case *kagziv1.SessionRequest_BeginStep:
		return op.BeginStep.GetRunId()
	case *kagziv1.SessionRequest_CompleteStep:
		return op.CompleteStep.GetRunId()
	case *kagziv1.SessionRequest_FailStep:
		return op.FailStep.GetRunId()
	case *kagziv1.SessionRequest_Sleep:
		return op.Sleep.GetRunId()
	case *kagziv1.SessionRequest_CompleteWorkflow:
		return op.CompleteWorkflow.GetRunId()
	case *kagziv1.SessionRequest_FailWorkflow:
		return op.FailWorkflow.GetRunId()
	case *kagziv1.SessionRequest_ReleaseTask:
		return op.ReleaseTask.GetRunId()
	}
	return ""
}

// perform carries one operation out and queues its answer.
func (w *session) perform(ctx context.Context, request *kagziv1.SessionRequest) {
	response, err := w.call(ctx, request)
	if err != nil {
		w.refused.add(request.Seq)
		code, detail := w.server.errorDetail(err)
		if level := logLevelOf(code); w.server.log.Enabled(ctx, level) {
			w.server.log.Log(ctx, level, "operation refused", "worker", w.worker.ID, "code", code.String(), "error", err)
		}
		response = &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_Error{Error: detail}}
	}
	response.Seq = request.Seq
	w.out.push(outgoing{message: response, answered: true})
}

// call is the way from an operation of the session to the one of the unary call.
func (w *session) call(ctx context.Context, request *kagziv1.SessionRequest) (answer *kagziv1.SessionResponse, err error) {
	defer func() {
		if v := recover(); v != nil {
			answer, err = nil, panicked(v)
		}
	}()
	if request.Seq < 1 {
		return nil, engine.Invalid("seq", "must be at least 1, got %d", request.Seq)
	}
	if request.After < 0 || request.After >= request.Seq {
		return nil, engine.Invalid("after", "must be 0 or the seq of an earlier operation, got %d", request.After)
	}
	if request.After > 0 && w.refused.has(request.After) {
		return nil, errBehindRefused
	}
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
		r, err := s.completeStep(ctx, op.CompleteStep)
		return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_CompletedStep{CompletedStep: r}}, err
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
	case nil:
		return nil, engine.Invalid("operation", "must be set")
	}
	return nil, errUnsupported
}

// errBehindRefused answers an operation that was sent before the worker could know that the one it builds on was refused.
var errBehindRefused = &engine.Error{Kind: engine.KindUnavailable, Message: "the operation that this one builds on was refused; nothing was changed"}

// refusals are the latest operations of a session that were refused. As many as can be unanswered are enough: no operation builds on
// one whose answer the worker has had.
type refusals struct {
	mu     sync.Mutex
	seqs   map[int64]struct{}
	oldest []int64
}

func (r *refusals) add(seq int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seqs == nil {
		r.seqs = map[int64]struct{}{}
	}
	if len(r.oldest) >= maxUnanswered {
		delete(r.seqs, r.oldest[0])
		r.oldest = r.oldest[1:]
	}
	r.seqs[seq] = struct{}{}
	r.oldest = append(r.oldest, seq)
}

func (r *refusals) has(seq int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, refused := r.seqs[seq]
	return refused
}

// errUnsupported answers operations of the contract that this server does not have yet.
var errUnsupported = &engine.Error{Kind: engine.KindUnsupported, Message: "this server does not support the operation yet"}

func ack(err error) (*kagziv1.SessionResponse, error) {
	return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_Ack{Ack: &kagziv1.Ack{}}}, err
}

// over forgets a run whose lease has ended: by this operation, or before it.
func (w *session) over(r leased, err error, ended bool) {
	if err != nil && engine.KindOf(err) != engine.KindLeaseLost || err == nil && !ended {
		return
	}
	id, idErr := engine.ParseID(r.GetRunId())
	token, tokenErr := engine.ParseToken(r.GetLeaseToken())
	w.mu.Lock()
	defer w.mu.Unlock()
	if idErr == nil && tokenErr == nil && w.held[id] == token {
		delete(w.held, id)
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
	response, err := w.server.heartbeat(ctx, r)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	for _, l := range response.Lost {
		id, idErr := engine.ParseID(l.RunId)
		token, tokenErr := engine.ParseToken(l.LeaseToken)
		if idErr == nil && tokenErr == nil && w.held[id] == token {
			delete(w.held, id)
		}
	}
	w.mu.Unlock()
	if response.ShouldDrain {
		w.seat.Leave()
	}
	w.seat.Look()
	return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_Heartbeat{Heartbeat: response}}, nil
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
	if !r.Drain {
		w.closed = true
	}
	w.mu.Unlock()
	response, err := w.server.deregister(ctx, r)
	if err != nil {
		w.mu.Lock()
		w.closed = false // it is still there, and may say so again
		w.mu.Unlock()
		return nil, err
	}
	if !r.Drain {
		defer w.end(nil)
	}
	return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_Goodbye{Goodbye: response}}, nil
}
