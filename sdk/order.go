package kagzi

import (
	"cmp"
	"container/heap"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/session"
)

// Results reach workflow code one at a time, in the order in which the server recorded them
// (Step.settled). Between two of them the code runs until every branch waits in a call of the SDK.
// So whatever depends on the order (which branch ended first, where a cancellation took effect) is
// the same in every replay.
//
// A call whose name has no record is new. It takes effect at once if the code has made all recorded
// calls that it owes. Otherwise it is held, because another branch may still make them; if none can,
// the code has diverged (divergence.go).

// handing is what an execution knows about the order of results. Guarded by e.mu.
type handing struct {
	recorded    int64           // highest settled of the history; results of this activation come after it
	current     int64           // how many results the code got; of equal places only the first counts
	last        queued          // the result that it got last
	results     resultQueue     // that wait to be handed over
	endings     []*call         // calls that the cancellation ends, to be handed over one by one
	held        []*call         // new calls that wait for owed ones
	open        map[*call]bool  // calls that are not over
	uncalled    map[string]bool // recorded calls that the code has not made yet; true for those that it owes
	owing       int             // how many it owes
	ownLeft     int             // how many of the uncalled are the SDK's own records
	asking      int             // unanswered operations whose answer may be a result
	answered    int64           // index of the one whose answer is being taken; 0 for none
	answerPlace int64           // where the result that this answer brings is recorded; 0 for none
	again       int64           // index up to which operations were sent again on a new stream
	calling     int             // counter that numbers the calls
	coding      int             // branches whose code runs outside of SDK calls
	detached    int             // branches whose code is blocked there (stall.go)
	unsure      bool            // such code or plain goroutines may run, because of a result
	moving      bool            // handNext is being called
	stall       stall

	unreceived map[string]bool // waits that have a signal which the code has not got
}

// report queues the result that an operation recorded. Needs e.mu.
func (e *execution) report(c *call, op *session.Operation) {
	c.outcome = outcomeReported
	e.queue(c, e.recorded+op.Index, true, e.answeredAt(op))
	e.moved()
}

// hand gives the code the result of a call. Needs e.mu.
func (e *execution) hand(c *call, how outcome) {
	if c.state == callOver {
		return
	}
	if c.outcome != outcomeReported || how == outcomeCancelled {
		c.outcome = how
	}
	c.state, c.running = callOver, false
	e.unsure = e.unsure || !c.own || e.detached > 0
	delete(e.handing.open, c)
	c.unblock()
	c.b.calls--
	if c.own {
		c.b.inside--
		if !c.inCode {
			c.b.waits--
		}
	}
	if c.kind == kagziv1.StepKind_STEP_KIND_SIGNAL && how != outcomeCancelled {
		delete(e.unreceived, c.name)
	}
	c.b.settle()
	e.watchOutside()
	c.changed()
}

// asCode counts the branch as running code until the call is over: its result does not depend on
// others, and comes with the answer to its operation. Needs e.mu.
func (c *call) asCode() {
	c.inCode = true
	if c.own {
		c.b.waits--
	}
	c.b.settle()
}

// moved goes on after a change: it hands over the next result if all code waits, and parks the run
// if nothing can continue. Needs e.mu.
func (e *execution) moved() {
	if e.moving || e.quitted || e.closing || e.ended {
		return
	}
	e.moving = true
	for !e.quitted && !e.closing && e.handNext() {
	}
	e.moving = false
	switch {
	case e.quitted || e.closing:
	case e.coding > 0:
		e.watchStall()
	case e.atRest():
		e.rest()
	case e.busy == 0:
		e.idle()
	}
}

// handNext hands over the next result. It returns false if there is none, or if code may run that it has to
// wait for. Needs e.mu.
func (e *execution) handNext() bool {
	if len(e.endings) == 0 && !e.deliverable() {
		return false
	}
	plain, coding := e.plainNext(), e.coding
	if plain != nil && plain.b.coding { // the order of a plain goroutine and the branch's own has no meaning
		coding--
	}
	switch {
	case coding > 0:
		return false
	case e.unsure && plain == nil:
		e.watchStall()
		return false
	}
	if len(e.endings) > 0 {
		c := e.endings[0]
		e.endings = e.endings[1:]
		e.hand(c, outcomeCancelled)
		return true
	}
	next := heap.Pop(&e.results).(queued)
	if next.call == nil {
		e.handing.next(next)
		e.cancelPlace = next
		e.cancelNow()
		return true
	}
	if next.call.state == callOver { // the cancellation ended it
		return true
	}
	if plain == nil {
		e.handing.next(next)
	}
	e.hand(next.call, outcomeRecorded)
	return true
}

// plainNext returns the call that gets the next result if a plain goroutine made it. Needs e.mu.
func (e *execution) plainNext() *call {
	if len(e.endings) > 0 || len(e.results) == 0 {
		return nil
	}
	if c := e.results[0].call; c != nil && !c.own {
		return c
	}
	return nil
}

// deliverable reports whether the first queued result may be handed over. A result of this activation
// waits for the answers to earlier operations, which may be results, and while the code owes calls:
// these were made without it. Needs e.mu.
func (e *execution) deliverable() bool {
	if len(e.results) == 0 {
		return false
	}
	first := e.results[0]
	if !first.live {
		return true
	}
	if e.owing > 0 && len(e.held) > 0 || e.againOpen() {
		return false
	}
	if e.answered > 0 && e.recorded+e.answered < first.key {
		return false
	}
	if e.asking == 0 {
		return true
	}
	for _, op := range e.ops {
		switch {
		case e.recorded+op.Index >= first.key:
			return true
		case asks(op.Msg):
			return false
		}
	}
	return true
}

// next counts a result that is handed over. Results in one place, as of several calls that wait for one
// child, count once.
func (h *handing) next(q queued) {
	same := h.current > 0 && q.live == h.last.live && q.key == h.last.key && q.settled == h.last.settled
	if q.live && q.settled > 0 && q.settled == h.last.settled {
		same = true
	}
	if !same {
		h.current++
	}
	h.last = q
}

// againOpen reports whether operations are unanswered that a new stream sent again. The server may have
// recorded some of them on the old stream, before others that were sent earlier. So the order of their
// results is known when all are answered. Needs e.mu.
func (e *execution) againOpen() bool {
	return len(e.ops) > 0 && e.ops[0].Index <= e.again
}

// settledBy takes where the server has recorded the result of a live operation. Needs e.mu.
func (e *execution) settledBy(op *session.Operation, place int64) {
	if place == 0 {
		return
	}
	for i := range e.results {
		if q := &e.results[i]; q.live && q.settled == 0 && q.key == e.recorded+op.Index {
			q.settled = place
			heap.Init(&e.results)
			return
		}
	}
}

// answeredAt returns where the result of an operation is recorded whose answer is being taken; 0 if that
// is not known. Needs e.mu.
func (e *execution) answeredAt(op *session.Operation) int64 {
	if e.answered != op.Index {
		return 0
	}
	return e.answerPlace
}

// placeOf returns where the server has recorded the result that an answer brings; 0 for none.
func placeOf(r *kagziv1.SessionResponse) int64 {
	return cmp.Or(r.GetCompletedStep().GetStep().GetSettled(), r.GetFailedStep().GetSettled(),
		r.GetSleeping().GetSettled(), r.GetAwaitedSignal().GetSettled())
}

// asks reports whether the answer to an operation may be a result. Of a completed step the result is
// known when it is sent.
func asks(msg *kagziv1.SessionRequest) bool {
	switch msg.Operation.(type) {
	case *kagziv1.SessionRequest_FailStep, *kagziv1.SessionRequest_Sleep, *kagziv1.SessionRequest_AwaitSignal,
		*kagziv1.SessionRequest_AwaitChildren:
		return true
	}
	return false
}

// release lets held calls take effect once nothing is owed. Needs e.mu.
func (e *execution) release() {
	e.tryCancel()
	if e.owing > 0 || e.cancelling && !e.cancelled {
		return
	}
	held := e.held
	e.held, e.watch.heldSince = nil, time.Time{}
	for _, c := range held {
		e.activate(c)
	}
}

// made notes that the code made a recorded call. Needs e.mu.
func (e *execution) made(name string) {
	owed, recorded := e.uncalled[name]
	if !recorded {
		return
	}
	delete(e.uncalled, name)
	if isOwn(name) {
		e.ownLeft--
	}
	if owed {
		e.owing--
	}
}
