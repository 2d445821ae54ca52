package kagzi

import (
	"cmp"
	"context"
	"slices"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const (
	// parkSettle is how long a run whose author uses goroutines of his own has to be idle before it is parked: one
	// that has just got a result may be about to begin its next step. A timer that is due within it is waited for.
	parkSettle = 20 * time.Millisecond
	// parkAfterNothing keeps a run that was handed out and did nothing from being handed out again at once:
	// a timer that is due by the server's clock may not be so by ours.
	parkAfterNothing = time.Second
)

// parkedCall is a call that waits for what the server has recorded: a time to come, a signal, child runs.
type parkedCall struct {
	scope  context.Context
	due    time.Time     // zero when no time ends it
	loose  bool          // its branch's author uses goroutines of his own
	number int           // in the order of their parking
	wait   *serverWait   // nil of a call that waits for nothing but due
	woken  chan struct{} // closed when the wait is over
	going  bool          // it is
}

// Sleep parks the run for d, to the millisecond: no worker is held meanwhile, and restarts do not
// matter. It is a step of its own, with a name under the same rules. A d of 0 or less does not
// park, one of more than 10 years fails the run. When the run is being cancelled it returns at
// once, and the next step returns ErrCancelled.
func Sleep(ctx Context, name string, d time.Duration) {
	b := ctx.workflow()
	b.sleep(ctx.scope(), name, d, &kagziv1.SleepRequest{Duration: durationpb.New(max(d, time.Millisecond))})
}

// SleepUntil is Sleep until a point of time; one that has passed does not park.
func SleepUntil(ctx Context, name string, t time.Time) {
	b := ctx.workflow()
	b.sleep(ctx.scope(), name, t.Sub(b.e.now()), &kagziv1.SleepRequest{Until: timestamppb.New(t)})
}

func (b *branch) sleep(scope context.Context, name string, d time.Duration, request *kagziv1.SleepRequest) {
	e := b.e
	name, recorded := b.claim(scope, name, kagziv1.StepKind_STEP_KIND_SLEEP)
	defer b.release(name)
	timed := recorded.GetStatus() == kagziv1.StepStatus_STEP_STATUS_RUNNING && recorded.WakeUpAt != nil
	due := convert.When(recorded.GetWakeUpAt())
	if b.endedByCancellation(name) || recordedAs(recorded, kagziv1.StepKind_STEP_KIND_SLEEP) || !timed && d <= 0 ||
		e.replay.lapsed(recorded) {
		return
	}
	b.arrive()
	switch {
	case !timed && b.cancelled(scope):
		return
	case b.cancelled(scope):
		e.endByCancellation(name)
		return
	}
	b.begin()
	defer b.end()
	if !timed {
		due = b.setTimer(name, d, request)
	}
	if !b.parkUntil(scope, due) {
		e.endByCancellation(name)
	}
}

// setTimer has the server record a sleep, and returns when it is over. It does not return when the sleep parks the run.
func (b *branch) setTimer(name string, d time.Duration, request *kagziv1.SleepRequest) time.Time {
	e := b.e
	own := onBranchGoroutine()
	answers := make(chan time.Time, 1)
	e.lock()
	hold := !b.alone(own)
	request.Namespace, request.RunId, request.LeaseToken = e.task.GetNamespace(), e.info.RunID, e.task.GetLeaseToken()
	request.StepId, request.Hold = name, hold
	e.send(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_Sleep{Sleep: request}},
		func(*kagziv1.SessionResponse) {
			if !hold {
				e.over(errSuspended)
			}
			if request.Until != nil { // else it counts from when the server has it
				answers <- request.Until.AsTime()
				return
			}
			answers <- e.now().Add(d)
		})
	e.mu.Unlock()
	return await(e, answers)
}

// parkUntil waits for a time that the server has recorded. If everything else of the run waits as
// well, the run is handed back and the call does not return; if a sibling is still at work then,
// the branch just goes on. It returns false, early, when the run is being cancelled.
func (b *branch) parkUntil(scope context.Context, due time.Time) bool {
	left := due.Sub(b.e.now())
	return left <= 0 || b.park(scope, &parkedCall{due: due}, left)
}

// park stands still for d, as a parked call; false when the run is being cancelled.
func (b *branch) park(scope context.Context, call *parkedCall, d time.Duration) bool {
	e := b.e
	if b.cancelled(scope) {
		return false
	}
	own := onBranchGoroutine()
	e.lock()
	if !own {
		b.loose = true
	}
	e.parkings++
	call.scope, call.loose, call.number, call.woken = scope, b.loose, e.parkings, make(chan struct{})
	e.parked[call] = struct{}{}
	b.blocked++
	b.settle()
	e.mu.Unlock()

	timer := time.NewTimer(d)
	defer timer.Stop()
	reached := false
	select {
	case <-timer.C:
		reached = true
	case <-call.woken:
	case <-scope.Done(): // cancelled, or the code has to end: then lock does not return
	}
	e.lock()
	reached = reached || call.over() // what the server has told it will not tell again
	b.told = b.told || !reached
	delete(e.parked, call)
	b.blocked--
	b.settle()
	e.mu.Unlock()
	return reached
}

// idle hands the run back until its earliest timer, now that no branch can go on by itself. Needs e.mu.
func (e *execution) idle() {
	switch {
	case e.quitted || e.closing:
		return
	case len(e.arriving) > 0:
		e.goLive()
		return
	case len(e.parked) == 0:
		e.deadlocked()
		return
	}
	if e.goesOn() {
		return
	}
	delay := e.parkDelay()
	if delay <= 0 {
		e.park()
		return
	}
	generation := e.generation
	time.AfterFunc(delay, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.generation == generation && !e.quitted && !e.closing {
			e.park()
		}
	})
}

func (c *parkedCall) over() bool { return c.wait != nil && c.wait.over() }

func (c *parkedCall) wakeIfOver() {
	if c.over() && !c.going {
		c.going = true
		close(c.woken)
	}
}

// goesOn says that a parked call is about to go on, and wakes those whose wait is over. Needs e.mu.
func (e *execution) goesOn() bool {
	goes := false
	for call := range e.parked {
		call.wakeIfOver()
		goes = goes || call.going || call.scope.Err() != nil // the latter is being cancelled
	}
	return goes
}

// deadlocked fails a run whose branches all wait for one another: it would hold its worker's slot
// for ever, and nobody would hear of it. With a goroutine of the author's own among those who wait,
// a branch's own may be at work all the same. Needs e.mu.
func (e *execution) deadlocked() {
	if e.outsiders > 0 {
		return
	}
	e.closing = true
	e.sendFailure(errorDetail(NonRetryable(&coded{
		kind: "deadlock",
		text: "every branch of the run waits for another one to end (Future.Wait), so that none ever does"})))
	e.quit(errFinished)
}

func (e *execution) parkDelay() time.Duration {
	loose, timed, first := false, false, time.Duration(1<<62)
	for call := range e.parked {
		loose = loose || call.loose
		if !call.due.IsZero() {
			timed, first = true, min(first, call.due.Sub(e.now()))
		}
	}
	switch {
	case e.replay != nil && loose:
		return replaySettle
	case e.replay != nil:
		return 0
	case timed && e.issued == 0:
		return parkAfterNothing
	case loose, first <= parkSettle:
		return parkSettle
	}
	return 0
}

// park hands the run back until what it waits for comes about. What the server was not asked for
// yet it is asked for first: what has come about meanwhile it tells once, in its answer, and does
// not wake the run for. Needs e.mu.
func (e *execution) park() {
	if e.questions > 0 {
		return // the last answer comes back here
	}
	var waits []*parkedCall
	for call := range e.parked {
		if call.wait != nil && !call.wait.asked {
			waits = append(waits, call)
		}
	}
	if len(waits) > 0 {
		e.askParked(waits)
		return
	}
	e.closing = true
	e.sendRelease(true, errSuspended)
}

// askParked asks the server for what parked calls wait for: in one question for all that wait for
// one child each. Needs e.mu.
func (e *execution) askParked(calls []*parkedCall) {
	slices.SortFunc(calls, func(a, b *parkedCall) int { return cmp.Compare(a.number, b.number) })
	var (
		children []*startedChild
		each     []*parkedCall
		seen     = make(map[*startedChild]bool)
	)
	for _, call := range calls {
		w := call.wait
		if len(w.children) != 1 {
			e.askFor(w.question(true), func(r *kagziv1.SessionResponse) (got bool) {
				got = w.answered(r)
				w.settled = got
				return got
			}, call)
			continue
		}
		each = append(each, call)
		if one := w.children[0]; !seen[one] {
			seen[one] = true
			children = append(children, one)
		}
	}
	if len(each) > 0 {
		e.askFor(awaitChildren(e, children, true, true), func(r *kagziv1.SessionResponse) bool {
			return e.childrenEnded(children, r.GetAwaitedChildren().GetSteps())
		}, each...)
	}
}

// askFor sends one question. Where there is nothing to go on with yet, the server wakes the run for
// it from then on. Needs e.mu.
func (e *execution) askFor(question *kagziv1.SessionRequest, answered func(*kagziv1.SessionResponse) bool,
	calls ...*parkedCall) {
	e.questions++
	e.send(question, func(r *kagziv1.SessionResponse) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.questions--
		got := answered(r)
		for _, call := range calls {
			call.wait.known = time.Now()
			call.wait.asked = call.wait.asked || !got
			call.wakeIfOver()
		}
		if e.questions == 0 && e.busy == 0 {
			e.idle()
		}
	})
}
