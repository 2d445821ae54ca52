package session

import (
	"sync"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// inFlightOp is an operation that is not answered yet.
type inFlightOp struct {
	request *kagziv1.SessionRequest
	refusal error          // why it is not carried out; its payload is not kept then
	bytes   int            // of its payload, which are counted in
	run     string         // that it is about; empty: none, and then it has no ticket either
	ticket  *engine.Ticket // its place among the operations of the run
	before  *engine.Ticket // of the one before it, which is to have its place first; nil when there is none
	answer  *kagziv1.SessionResponse
}

// enter counts an operation in, behind those of its run; nil when the session is being closed,
// which waits for those counted.
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

// runQueue is the operations of one run that are not answered yet, in the order in which they came.
// Each is handed to the store as soon as the one before has its place there, so that they can share
// a commit, and they are answered in that order as well.
type runQueue []*inFlightOp

func (q runQueue) push(f *inFlightOp) runQueue {
	f.ticket = engine.NewTicket(q.builtOn(f.request.After))
	if n := len(q); n > 0 {
		f.before = q[n-1].ticket
	}
	return append(q, f)
}

// builtOn is the ticket of the operation with that number; nil when it is not under way, but
// answered: then refusals knows of it.
func (q runQueue) builtOn(seq int64) *engine.Ticket {
	for i := len(q) - 1; i >= 0 && seq > 0; i-- {
		if q[i].request.Seq == seq {
			return q[i].ticket
		}
	}
	return nil
}

// refusals are the latest operations of a session that were refused. As many as can be unanswered
// are enough: no operation builds on one whose answer the worker has had for long.
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
