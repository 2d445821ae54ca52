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
	// parkSettle is how long a run with plain goroutines must be idle before it is parked: a
	// goroutine that just got a result may be about to start a step. A timer that is due within it
	// is waited for.
	parkSettle = 20 * time.Millisecond
	// parkAfterNothing delays parking a run that did nothing since its claim, so that it is not
	// claimed in a loop: a timer that is due by the server's clock may not be due by ours.
	parkAfterNothing = time.Second
)

// parkedCall is a call that waits for a time, a signal or child runs.
type parkedCall struct {
	scope  context.Context
	due    time.Time     // end of the wait; zero if no time ends it
	loose  bool          // its branch uses plain goroutines
	number int           // order of parking
	wait   *serverWait   // nil if the call waits only for due
	woken  chan struct{} // closed when the wait is over
	going  bool          // woken is closed
}

// Sleep parks the run for d, in whole milliseconds. The run holds no worker meanwhile and survives
// restarts. The name follows the rules of step names. A d of 0 or less does not park; more than 10
// years fails the run. During a cancellation Sleep returns at once, and the next step returns
// ErrCancelled.
func Sleep(ctx Context, name string, d time.Duration) {
	b := ctx.workflow()
	b.sleep(ctx.scope(), name, d, &kagziv1.SleepRequest{Duration: durationpb.New(max(d, time.Millisecond))})
}

// SleepUntil is Sleep until a time. A time in the past does not park the run.
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

// setTimer lets the server record a sleep and returns its end. If that parks the run, it does not
// return.
func (b *branch) setTimer(name string, d time.Duration, request *kagziv1.SleepRequest) time.Time {
	e := b.e
	own := onBranchGoroutine()
	answers := make(chan time.Time, 1)
	e.lock()
	hold := !b.alone(own)
	request.Namespace, request.RunId, request.LeaseToken = e.task.GetNamespace(), e.info.RunID, e.task.GetLeaseToken()
	request.StepName, request.Hold = &name, hold
	e.send(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_Sleep{Sleep: request}},
		func(*kagziv1.SessionResponse) {
			if !hold {
				e.over(errSuspended)
			}
			if request.Until != nil { // else it counts from when the server received it
				answers <- request.Until.AsTime()
				return
			}
			answers <- e.now().Add(d)
		})
	e.mu.Unlock()
	return await(e, answers)
}

// parkUntil waits for a recorded time. If every other branch of the run waits, too, the run is
// released and the call does not return; else it just waits. It returns false, early, when the run
// is being cancelled.
func (b *branch) parkUntil(scope context.Context, due time.Time) bool {
	left := due.Sub(b.e.now())
	return left <= 0 || b.park(scope, &parkedCall{due: due}, left)
}

// park waits for up to d as a parked call. It returns false when the run is being cancelled.
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
	case <-scope.Done(): // cancelled, or the code has to end; then lock does not return
	}
	e.lock()
	reached = reached || call.over() // the server reports the end of the wait only once
	b.told = b.told || !reached
	delete(e.parked, call)
	b.blocked--
	b.settle()
	e.mu.Unlock()
	return reached
}

// idle releases the run until its earliest timer, because no branch can continue. Needs e.mu.
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

// goesOn reports whether a parked call is about to continue, and wakes calls whose wait is over.
// Needs e.mu.
func (e *execution) goesOn() bool {
	goes := false
	for call := range e.parked {
		call.wakeIfOver()
		goes = goes || call.going || call.scope.Err() != nil // Err: it is being cancelled
	}
	return goes
}

// deadlocked fails a run whose branches all wait for each other: it would occupy a slot for ever
// without being noticed. If plain goroutines are among those that wait, other code may still be
// active, so nothing happens. Needs e.mu.
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

// park releases the run until one of its waits is over. Waits that the server was not asked about
// are asked about first: what happened already is reported in the answer and does not wake the run.
// Needs e.mu.
func (e *execution) park() {
	if e.questions > 0 {
		return // the last answer calls idle again
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

// askParked asks the server about parked calls. All waits for a single child share one question.
// Needs e.mu.
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

// askFor sends one question. If the answer is not available yet, the server wakes the run for it.
// Needs e.mu.
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
