package kagzi

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"slices"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

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
