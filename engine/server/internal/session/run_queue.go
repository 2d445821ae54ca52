package session

import (
	"sync"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// inFlightOp is an operation that is not answered yet.
type inFlightOp struct {
	request *kagziv1.SessionRequest
	refusal error          // why it is not executed; its payload is dropped then
	bytes   int            // payload bytes to release
	run     string         // the run that it is about; empty: none, and it has no ticket
	ticket  *engine.Ticket // its place among the operations of the run
	before  *engine.Ticket // of the operation before it, which must be admitted first; nil: none
	answer  *kagziv1.SessionResponse
}

// enter adds an operation to those in flight, at the end of its run's queue. It returns nil if the
// session is being closed, which waits for the operations in flight.
func (w *session) enter(request *kagziv1.SessionRequest, refusal error) *inFlightOp {
	f := &inFlightOp{request: request, run: runOf(request), refusal: refusal}
	if refusal != nil {
		f.request = &kagziv1.SessionRequest{Seq: request.Seq, After: request.After}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.calls.Add(1)
	if f.run != "" {
		w.queues[f.run] = w.queues[f.run].push(f)
	}
	return f
}

// runQueue holds the operations of one run that are not answered yet, in order of arrival. Each is
// passed to the store as soon as the one before it is admitted there, so that they can share a
// commit. They are answered in the same order.
type runQueue []*inFlightOp

func (q runQueue) push(f *inFlightOp) runQueue {
	f.ticket = engine.NewTicket(q.builtOn(f.request.After))
	if n := len(q); n > 0 {
		f.before = q[n-1].ticket
	}
	return append(q, f)
}

// builtOn returns the ticket of the operation with that number; nil if it was answered. Then
// refusals knows whether it was refused.
func (q runQueue) builtOn(seq int64) *engine.Ticket {
	for i := len(q) - 1; i >= 0 && seq > 0; i-- {
		if q[i].request.Seq == seq {
			return q[i].ticket
		}
	}
	return nil
}

// refusals holds the latest maxUnanswered operations of a session that were refused. No operation
// builds on an older one, because the worker has its answer.
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
	if _, known := r.seqs[seq]; known {
		return
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
