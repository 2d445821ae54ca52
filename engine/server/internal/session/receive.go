package session

import (
	"context"
	"time"

	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/async"
	"github.com/kagzi/kagzi/engine/server/internal/limit"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// operationsOf returns the context for a session's operations. It is not cancelled when the stream
// fails: received operations take effect, and the worker learns that by repeating them. The
// metadata of the stream (its trace context) is removed.
func operationsOf(ctx context.Context) context.Context {
	return metadata.NewIncomingContext(context.WithoutCancel(ctx), metadata.MD{})
}

// receive waits for an operation and passes it to a goroutine of the pool, which reads on. Many
// thousands of sessions may be idle, so a waiting goroutine has a small stack; the stack that
// decoding needs is reused in the pool.
func (w *session) receive(ctx, operations context.Context, stream kagziv1.WorkerService_SessionServer) {
	var next wire.Undecoded
	if err := stream.RecvMsg(&next); err != nil {
		w.end(err)
		return
	}
	w.service.pool.Go(func() { w.readOn(ctx, operations, stream, &next) })
}

// readOn handles the received operation and further ones until a heartbeat; after that a new
// goroutine calls receive. The operations of one run are executed in order, all others at once.
func (w *session) readOn(ctx, operations context.Context, stream kagziv1.WorkerService_SessionServer,
	next *wire.Undecoded) {
	for {
		request, err := next.Decode()
		if err != nil {
			w.end(err)
			return
		}
		if len(request.Batch) > 0 {
			err = w.readBatch(ctx, operations, request.Batch)
		} else {
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
		}
		if err == nil {
			err = stream.RecvMsg(next)
		}
		if err != nil {
			w.end(err)
			return
		}
	}
}

// readBatch handles the operations of a batch in order, as if each had come alone.
func (w *session) readBatch(ctx, operations context.Context, batch [][]byte) error {
	for _, raw := range batch {
		one := wire.Undecoded{Raw: mem.SliceBuffer(raw)}
		request, err := one.Decode()
		if err != nil {
			return err
		}
		f := w.admit(ctx, request)
		if f == nil {
			return context.Cause(ctx)
		}
		w.service.pool.Go(func() { w.carryOut(operations, f) })
	}
	return nil
}

// admit waits until there is room for an operation and adds it to those in flight. It returns nil
// if the session has ended.
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
		// recorded before the next operation is read: one that builds on this does not find it in
		// its run's queue
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

// load waits until the payload of an operation fits into the in-flight bytes. Nothing is read
// meanwhile, so gRPC's flow control makes the worker wait. Its heartbeats wait too, so when the
// next one is due the operation is refused, and the worker repeats it.
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

// carryOut executes an operation once the operation before it has been admitted.
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

// answer sends the answer to an operation, and those of later operations of its run that waited for
// it.
func (w *session) answer(f *inFlightOp, answer *kagziv1.SessionResponse) {
	if w.queue(f, answer) {
		w.out.send(w.end)
	}
}

// queue puts into the outbox the answers that are next in order. It returns true if the caller has
// to call send.
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

// perform executes one operation and returns its answer. err is not nil if the operation was
// refused.
func (w *session) perform(ctx context.Context, f *inFlightOp) (answer *kagziv1.SessionResponse, err error) {
	if err = f.refusal; err == nil {
		answer, err = w.call(ctx, engine.Sequenced{Ticket: f.ticket}, f.request)
	}
	if err != nil {
		// added before its ticket is closed, so that an operation which no longer finds it in the
		// queue finds it here
		w.refused.add(f.request.Seq)
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
