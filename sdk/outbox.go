package kagzi

import (
	"math/rand/v2"
	"slices"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// operation is one message to the server that wants an answer.
type operation struct {
	msg    *kagziv1.SessionRequest
	prev   *operation                       // the run's operation before it, if that was unanswered when this one was issued
	e      *execution                       // nil for operations of the worker itself
	answer func(r *kagziv1.SessionResponse) // nil when nobody waits; of the worker's own also called with a refusal, or with nil when the stream broke
	index  int64                            // position among the run's operations
	epoch  int64                            // of the stream that it was last queued on; 0 for none
	later  bool                             // to be repeated after a delay
	ending bool                             // its refusal is making the code end. Guarded by e.mu.
	// doubtful is the stream on which it was refused last: those behind it that are still to be sent on that must not count before it does.
	// 0: none, or they need not care. Guarded by session.mu.
	doubtful int64
	// refused is called when the server will never take the operation; nil: the run cannot go on without it.
	refused func(d *kagziv1.ErrorDetail)
}

// ends says that the run cannot go on here when the operation is refused like this.
func (op *operation) ends(d *kagziv1.ErrorDetail) bool {
	return leaseGone(d) || op.refused == nil && op.msg.GetBeginStep() == nil
}

func (op *operation) subject() string {
	switch m := op.msg.Operation.(type) {
	case *kagziv1.SessionRequest_BeginStep:
		return "the beginning of step " + m.BeginStep.GetStepName()
	case *kagziv1.SessionRequest_CompleteStep:
		return "the result of step " + m.CompleteStep.GetStepId()
	case *kagziv1.SessionRequest_FailStep:
		return "the failure of step " + m.FailStep.GetStepId()
	case *kagziv1.SessionRequest_Sleep:
		return "sleep " + m.Sleep.GetStepId()
	case *kagziv1.SessionRequest_AwaitSignal:
		return "the wait for signal " + m.AwaitSignal.GetSignalName()
	case *kagziv1.SessionRequest_StartChild:
		return "the start of child " + m.StartChild.GetStepName()
	case *kagziv1.SessionRequest_AwaitChildren:
		return "the wait for child runs"
	}
	return "the run's end"
}

// outbox holds the operations of a run that are not answered yet, in order. It is what a new stream
// sends again, so a run's operations reach the server in their order over every break.
type outbox struct {
	ops     []*operation
	issued  int64 // index of the last operation
	failed  int   // answers in a row that asked for a repetition
	waiters []durableWaiter

	repeating bool // a repetition is scheduled
}

type durableWaiter struct {
	index int64
	done  chan struct{}
}

// send appends an operation and queues it, unless those before it have to be sent first. Needs e.mu.
func (e *execution) send(msg *kagziv1.SessionRequest, answer func(*kagziv1.SessionResponse)) *operation {
	if e.replay != nil {
		e.replay.sent(msg)
		return &operation{msg: msg}
	}
	if mayEndLease(msg) {
		e.flushNote()
	}
	e.issued++
	op := &operation{msg: msg, e: e, answer: answer, index: e.issued}
	if n := len(e.ops); n > 0 {
		op.prev = e.ops[n-1]
	}
	if op.prev != nil && (op.prev.later || !e.w.session.current(op.prev)) {
		op.later = op.prev.later // whoever sends that one sends this one behind it
	} else {
		e.w.session.enqueue(op)
	}
	e.ops = append(e.ops, op)
	return op
}

// mayEndLease reports an operation after which nothing else may count.
func mayEndLease(msg *kagziv1.SessionRequest) bool {
	switch m := msg.Operation.(type) {
	case *kagziv1.SessionRequest_CompleteWorkflow, *kagziv1.SessionRequest_FailWorkflow, *kagziv1.SessionRequest_ReleaseTask:
		return true
	case *kagziv1.SessionRequest_FailStep:
		return !m.FailStep.GetHold()
	case *kagziv1.SessionRequest_Sleep:
		return !m.Sleep.GetHold()
	case *kagziv1.SessionRequest_AwaitSignal:
		return !m.AwaitSignal.GetHold()
	case *kagziv1.SessionRequest_AwaitChildren:
		return !m.AwaitChildren.GetHold()
	}
	return false
}

// post sends a write that the code does not wait for.
func (e *execution) post(msg *kagziv1.SessionRequest) {
	e.lock()
	e.send(msg, nil)
	e.mu.Unlock()
}

// resend queues all unanswered operations on a new stream.
func (e *execution) resend() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.flushNote()
	for _, op := range e.ops {
		op.later = false
		e.w.session.enqueue(op)
	}
}

// repeatLater schedules an operation that the server could not settle, together with those behind it
// that meet the same fate. Needs e.mu.
func (e *execution) repeatLater(op *operation) {
	if !slices.Contains(e.ops, op) {
		return
	}
	op.later = true
	if e.repeating {
		return
	}
	e.repeating = true
	e.failed++
	delay := min(100*time.Millisecond<<min(e.failed, 10), 10*time.Second)
	time.AfterFunc(delay/2+rand.N(delay/2), e.repeat)
}

func (e *execution) repeat() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.repeating = false
	for _, op := range e.ops {
		if op.later {
			op.later, op.epoch = false, 0
			e.w.session.enqueue(op)
		}
	}
}

// remove takes an answered operation out and wakes those who waited for it. Needs e.mu.
func (o *outbox) remove(op *operation) bool {
	i := slices.Index(o.ops, op)
	if i < 0 {
		return false
	}
	o.ops = slices.Delete(o.ops, i, i+1)
	o.failed = 0
	keep := o.waiters[:0]
	for _, w := range o.waiters {
		if o.durable(w.index) {
			close(w.done)
		} else {
			keep = append(keep, w)
		}
	}
	o.waiters = keep
	return true
}

// dropAfter forgets the operations behind one that was refused for good. Needs e.mu.
func (o *outbox) dropAfter(op *operation) {
	o.ops = slices.DeleteFunc(o.ops, func(later *operation) bool { return later.index > op.index })
}

func (o *outbox) clear() { o.ops, o.waiters = nil, nil }

// durable reports whether the operations up to index are answered.
func (o *outbox) durable(index int64) bool { return len(o.ops) == 0 || o.ops[0].index > index }

// awaitTurn waits until code with consequences may begin: all results so far are durable, and the worker
// can believe that it still holds its leases.
func (e *execution) awaitTurn() {
	e.lock()
	var done chan struct{}
	if !e.durable(e.issued) {
		done = make(chan struct{})
		e.waiters = append(e.waiters, durableWaiter{e.issued, done})
	}
	e.mu.Unlock()
	if done != nil {
		await(e, done)
	}
	e.w.lease.await(e.life)
	e.lock()
	e.mu.Unlock()
}

// repeatable reports an answer which leaves open whether the operation counted.
func repeatable(d *kagziv1.ErrorDetail) bool {
	switch d.GetCode() {
	case kagziv1.ErrorCode_ERROR_CODE_UNAVAILABLE, kagziv1.ErrorCode_ERROR_CODE_INTERNAL, kagziv1.ErrorCode_ERROR_CODE_TIMEOUT:
		return true
	case kagziv1.ErrorCode_ERROR_CODE_RESOURCE_EXHAUSTED:
		return !d.GetNonRetryable() // a full disk passes, a limit does not
	}
	return false
}

func leaseGone(d *kagziv1.ErrorDetail) bool {
	switch d.GetCode() {
	case kagziv1.ErrorCode_ERROR_CODE_LEASE_LOST, kagziv1.ErrorCode_ERROR_CODE_NOT_FOUND, kagziv1.ErrorCode_ERROR_CODE_CANCELLED,
		kagziv1.ErrorCode_ERROR_CODE_UNAUTHORIZED:
		return true
	}
	return false
}
