package kagzi

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"slices"
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

// callState is where a call stands.
type callState int

const (
	callHeld   callState = iota // waits for the calls that the code owes
	callActive                  // takes effect: its code runs, or its operation is sent
	callQueued                  // its result waits to be handed over
	callOver                    // the code has its result
)

// outcome is how a call ended.
type outcome int

const (
	outcomeRecorded  outcome = iota // the result is in the record
	outcomeReported                 // this activation made the result
	outcomeCancelled                // the cancellation of the run ended it
)

// call is one call of workflow code that waits for a result. All fields but the first four are
// guarded by e.mu.
type call struct {
	b      *branch
	name   string // "" for a wait for child runs
	kind   kagziv1.StepKind
	record *kagziv1.Step // nil if it is new

	detail   string // the child's type or the signal's name
	clean    bool   // made under Cleanup: the cancellation does not end it
	own      bool   // made by the branch's own goroutine, not by a plain one
	number   int    // in the order of calling
	state    callState
	outcome  outcome
	blocked  bool // it counts in b.blocked
	running  bool // its step code runs or its result is on its way
	children []*startedChild
	change   chan struct{} // closed when it takes effect or is over; nil if nobody waits for that

	inCode  bool                 // its result is not handed over in order: the code goes on with the answer
	failing bool                 // the cancellation fails it: a worker that is lost ran its code then
	failure *kagziv1.ErrorDetail // of a step that was failing, or of a child that was refused
	server  *serverWait          // of a wait that the server ends
	parked  *parkedCall          // while it is parked
}

// queued is a result that waits to be handed over; without a call it is the cancellation.
type queued struct {
	key     int64
	live    bool  // reported by this activation: it may depend on answers that are still to come
	settled int64 // of a live one, where the server has recorded it; 0 as long as that is not known
	call    *call
}

// resultQueue is a heap of queued results, lowest key first; live ones go by where the server has
// recorded them, once that is known. Of equal keys, as several calls may wait for one child, it takes
// them by branch and then in the order of calling.
type resultQueue []queued

func (r resultQueue) Len() int      { return len(r) }
func (r resultQueue) Swap(i, j int) { r[i], r[j] = r[j], r[i] }
func (r *resultQueue) Push(x any)   { *r = append(*r, x.(queued)) }

func (r resultQueue) Less(i, j int) bool { return r[i].before(r[j]) }

func (q queued) before(other queued) bool {
	known := q.live && other.live && q.settled > 0 && other.settled > 0
	switch {
	case known && q.settled != other.settled:
		return q.settled < other.settled
	case !known && q.key != other.key, q.call == nil, other.call == nil:
		return q.key < other.key
	}
	return q.call.compare(other.call) < 0
}

func (r *resultQueue) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}

// compare orders calls by branch, then in the order of calling.
func (c *call) compare(other *call) int {
	return cmp.Or(slices.Compare(c.b.ordinals(), other.b.ordinals()), cmp.Compare(c.number, other.number))
}

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

// call makes a call with a name. It returns when the call takes effect or is over.
func (b *branch) call(scope context.Context, name string, kind kagziv1.StepKind, detail string) *call {
	c := b.open(scope, name, kind, detail)
	c.wait(func() bool { return c.state == callActive || c.state == callOver })
	return c
}

// open makes a call with a name, without waiting. A name that another goroutine uses at the same time
// fails the run.
func (b *branch) open(scope context.Context, name string, kind kagziv1.StepKind, detail string) *call {
	e, own := b.e, onBranchGoroutine()
	e.lock()
	var (
		record *kagziv1.Step
		err    error
	)
	if isOwn(name) {
		err = fmt.Errorf("step name %.300q: names that begin with %s are reserved for the SDK", name, ownPrefix)
	} else {
		name, record, err = b.claim(name, kind, detail)
	}
	if err != nil {
		e.mu.Unlock()
		e.failAndExit(NonRetryable(err))
	}
	c := b.newCall(scope, kind, own)
	c.name, c.detail, c.record = name, detail, record
	var lines []heldLine
	switch verdict := e.verdicts[name]; {
	case verdict.GetCode() == kagziv1.ErrorCode_ERROR_CODE_CANCELLED: // by an earlier version of the SDK
		e.hand(c, outcomeCancelled)
	case verdict != nil && record == nil: // the server refused to start a child
		c.failure = verdict
		e.hand(c, outcomeRecorded)
	case recordedAs(record, kind) && record.GetSettled() > 0 && kind != kagziv1.StepKind_STEP_KIND_CHILD_WORKFLOW:
		e.queue(c, record.GetSettled(), false, 0)
	case recordedAs(record, kind) || e.replay.lapsed(record) || e.replay.leftOut(record, detail):
		e.hand(c, outcomeRecorded)
	case e.cancelled && !c.clean:
		e.hand(c, outcomeCancelled)
	case record != nil:
		lines = b.fresh()
		e.activate(c)
	default:
		e.held = append(e.held, c)
	}
	e.release()
	if len(e.held) > 0 {
		e.watchOutside()
	}
	if c.state == callActive && record == nil {
		lines = b.fresh()
	}
	e.mu.Unlock()
	writeLines(lines)
	if e.replay != nil {
		e.replay.called(b, name, kind, detail)
	}
	return c
}

// newCall makes a call that waits for its result. own means that the branch's own goroutine makes it;
// then the branch waits. A call of a plain goroutine marks the branch as loose. Needs e.mu.
func (b *branch) newCall(scope context.Context, kind kagziv1.StepKind, own bool) *call {
	e := b.e
	e.calling++
	e.generation++
	c := &call{b: b, kind: kind, clean: scope == context.Context(e.grace), own: own, number: e.calling,
		blocked: true}
	e.handing.open[c] = true
	b.calls++
	b.blocked++
	if own {
		b.inside++
		b.waits++
	} else {
		b.loose = true
	}
	b.outside.since = time.Time{}
	return c
}

// activate lets a call take effect. Needs e.mu.
func (e *execution) activate(c *call) {
	c.state = callActive
	c.unblock()
	c.b.settle()
	c.changed()
}

// unblock counts the call as one that goes on by itself. Needs e.mu.
func (c *call) unblock() {
	if c.blocked {
		c.blocked = false
		c.b.blocked--
	}
}

func (c *call) changed() {
	if c.change != nil {
		close(c.change)
		c.change = nil
	}
}

// changes returns a channel that is closed when the state of the call changes. Needs e.mu.
func (c *call) changes() <-chan struct{} {
	if c.change == nil {
		c.change = make(chan struct{})
	}
	return c.change
}

// wait waits until done, which needs e.mu, holds.
func (c *call) wait(done func() bool) {
	e := c.b.e
	e.lock()
	c.b.settle()
	c.b.waitsToo()
	for !done() {
		changes := c.changes()
		e.mu.Unlock()
		select {
		case <-changes:
		case <-e.life.Done():
		}
		e.lock() // it ends the goroutine if the code has to end
	}
	e.mu.Unlock()
}

// result waits until the code may have the result of a call that took effect.
func (c *call) result() outcome {
	c.wait(func() bool {
		if !c.blocked && c.state != callOver {
			c.blocked = true
			c.b.blocked++
			c.b.settle()
		}
		return c.state == callOver
	})
	return c.outcome
}

// isOver reports whether the call has been ended, by the cancellation, while it was taking effect.
func (c *call) isOver() bool {
	c.b.e.lock()
	defer c.b.e.mu.Unlock()
	return c.state == callOver
}

// isActive reports whether the call has taken effect and has no result yet.
func (c *call) isActive() bool {
	c.b.e.lock()
	defer c.b.e.mu.Unlock()
	return c.state == callActive
}

// queue lets the call's result wait to be handed over. Needs e.mu.
func (e *execution) queue(c *call, key int64, live bool, settled int64) {
	if c.state == callOver || c.state == callQueued {
		return
	}
	c.state = callQueued
	heap.Push(&e.results, queued{key: key, live: live, settled: settled, call: c})
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
