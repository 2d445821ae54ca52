package session

import (
	"context"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/async"
	"github.com/kagzi/kagzi/engine/server/internal/limit"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// operationsOf is the context of a session's operations. They go on when the stream breaks: what
// has come in counts, and the worker learns so when it repeats it. What came with the stream's own
// call (its trace context) is not about them.
func operationsOf(ctx context.Context) context.Context {
	return metadata.NewIncomingContext(context.WithoutCancel(ctx), metadata.MD{})
}

// receive waits for an operation and leaves it to a goroutine of the pool, which reads on. There
// may be many thousands of sessions that have long to wait: who waits has a small stack, and who
// has read a message one that is kept for the next.
func (w *session) receive(ctx, operations context.Context, stream kagziv1.WorkerService_SessionServer) {
	var next wire.Undecoded
	if err := stream.RecvMsg(&next); err != nil {
		w.end(err)
		return
	}
	w.service.pool.Go(func() { w.readOn(ctx, operations, stream, &next) })
}

// readOn reads the operation that has come, and those that come after it up to a heartbeat, behind
// which another waits for the next. Those of one run are carried out in their order, everything
// else at once.
func (w *session) readOn(ctx, operations context.Context, stream kagziv1.WorkerService_SessionServer,
	next *wire.Undecoded) {
	for {
		request, err := next.Decode()
		if err != nil {
			w.end(err)
			return
		}
		f := w.admit(ctx, request)
		if f == nil {
			return
		}
		if request.GetHeartbeat() != nil {
			go w.receive(ctx, operations, stream)
			w.carryOut(operations, f)
			return
		}
		w.service.pool.Go(func() { w.carryOut(operations, f) })
		if err := stream.RecvMsg(next); err != nil {
			w.end(err)
			return
		}
	}
}

// admit makes an operation one that is under way, as soon as there is room for it; nil when the session is over.
func (w *session) admit(ctx context.Context, request *kagziv1.SessionRequest) *inFlightOp {
	select {
	case w.room <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	if request.GetHeartbeat() != nil {
		w.heard = time.Now()
	}
	size := bytesOf(request)
	refusal := w.load(ctx, size)
	if refusal != nil {
		if ctx.Err() != nil {
			return nil
		}
		size = 0
	}
	if wire.CheckOperation(request) != nil {
		// before the next is read: one that builds on it does not find it in the queue of their run
		w.refused.add(request.Seq)
	}
	f := w.enter(request, refusal)
	if f == nil {
		w.service.inFlight.Release(size)
		return nil
	}
	f.bytes = size
	return f
}

// load counts the payload of an operation in as soon as there is room for it. Nothing more is read
// meanwhile, so that gRPC has the worker wait; but its heartbeats stand behind what is not read, so
// when the next is due the operation is refused, and the worker repeats it.
func (w *session) load(ctx context.Context, size int) error {
	if size <= limit.MinBytes {
		return nil
	}
	ctx, cancel := context.WithDeadline(ctx, w.heard.Add(w.service.options.HeartbeatInterval))
	defer cancel()
	if !w.service.inFlight.Acquire(ctx, size) {
		return limit.ErrTooManyBytes
	}
	return nil
}

// carryOut carries an operation out when its ticket is next.
func (w *session) carryOut(ctx context.Context, f *inFlightOp) {
	defer w.calls.Done()
	if f.before != nil {
		<-f.before.Admitted()
	}
	answer, err := w.perform(ctx, f)
	w.service.inFlight.Release(f.bytes)
	if f.ticket != nil {
		f.ticket.Close(err)
	}
	w.answer(f, answer)
}

// answer sends the answer to an operation, and those to later ones of its run that have waited for it.
func (w *session) answer(f *inFlightOp, answer *kagziv1.SessionResponse) {
	if w.queue(f, answer) {
		w.out.send(w.end)
	}
}

// queue says whether the caller is to send what is in the outbox.
func (w *session) queue(f *inFlightOp, answer *kagziv1.SessionResponse) (send bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.run == "" {
		return w.out.put(outgoing{message: answer, answered: true})
	}
	f.answer = answer
	l := w.queues[f.run]
	for len(l) > 0 && l[0].answer != nil {
		send = w.out.put(outgoing{message: l[0].answer, answered: true}) || send
		l = l[1:]
	}
	if len(l) > 0 {
		w.queues[f.run] = l
		return send
	}
	delete(w.queues, f.run)
	if w.recheck {
		w.recheck = false
		async.Notify(w.wake)
	}
	return send
}

// perform carries one operation out and makes its answer; the error says that it was refused.
func (w *session) perform(ctx context.Context, f *inFlightOp) (answer *kagziv1.SessionResponse, err error) {
	if err = f.refusal; err == nil {
		answer, err = w.call(ctx, engine.Sequenced{Ticket: f.ticket}, f.request)
	}
	if err != nil {
		w.refused.add(f.request.Seq) // before its ticket is closed: whoever finds it gone from its queue finds it here
		code, detail := w.service.errors.Detail(err)
		if level := wire.LogLevelOf(code); w.service.log.Enabled(ctx, level) {
			w.service.log.Log(ctx, level, "operation refused", "worker", w.worker.ID, "code", code.String(),
				"error", err)
		}
		answer = &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_Error{Error: detail}}
	}
	answer.Seq = f.request.Seq
	return answer, err
}
