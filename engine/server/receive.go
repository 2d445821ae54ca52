package server

import (
	"context"
	"sync"

	"google.golang.org/grpc/metadata"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// receive reads operations until the stream ends. Those of one run are carried out in their order, everything else at once.
func (w *session) receive(ctx context.Context, stream kagziv1.WorkerService_SessionServer) {
	// Operations go on when the stream breaks: what has come in counts, and the worker learns so when it repeats it.
	// What came with the stream's own call (its trace context) is not about them.
	carry := metadata.NewIncomingContext(context.WithoutCancel(ctx), metadata.MD{})
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
	case *kagziv1.SessionRequest_AwaitSignal:
		return op.AwaitSignal.GetRunId()
	case *kagziv1.SessionRequest_StartChild:
		return op.StartChild.GetChild().GetParentRunId()
	case *kagziv1.SessionRequest_AwaitChildren:
		return op.AwaitChildren.GetRunId()
	case *kagziv1.SessionRequest_SetNote:
		return op.SetNote.GetRunId()
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

// errUnsupported answers operations that a newer contract has added.
var errUnsupported = &engine.Error{Kind: engine.KindUnsupported, Message: "this server does not know the operation"}

func ack(err error) (*kagziv1.SessionResponse, error) {
	return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_Ack{Ack: &kagziv1.Ack{}}}, err
}
