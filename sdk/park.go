package kagzi

import (
	"cmp"
	"context"
	"slices"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
	"github.com/kagzi/kagzi/sdk/internal/session"
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

// moment is when a wait ends: a time by the server's clock or, if it was reckoned from the answer that
// set it, by the local one. Readings of the server's clock lag differently in each stay, and no wait
// may end early.
type moment struct {
	at    time.Time
	local bool
}

// onServer returns a time of the server's clock; the zero moment for none.
func onServer(at time.Time) moment { return moment{at: at} }

// fromNow returns the moment after d.
func fromNow(d time.Duration) moment { return moment{time.Now().Add(d), true} }

func (m moment) isZero() bool { return m.at.IsZero() }

func (m moment) left(e *execution) time.Duration {
	if m.local {
		return time.Until(m.at)
	}
	return m.at.Sub(e.now())
}

// parkedCall is a call that waits for a time, a signal or child runs.
type parkedCall struct {
	call   *call         // nil in a comparison with a record, where a call waits for ever
	due    moment        // end of the wait; zero if no time ends it
	loose  bool          // its branch uses plain goroutines
	number int           // order of parking
	wait   *serverWait   // nil if the call waits only for due
	woken  chan struct{} // closed when the call has to look again
	going  bool          // woken is closed
}

// Sleep parks the run for d, in whole milliseconds. The run holds no worker meanwhile and survives
// restarts. The name follows the rules of step names. Every sleep is recorded; one with a d of 0 or
// less does not park. More than 10 years fails the run. During a cancellation Sleep returns at once,
// and the next step returns ErrCancelled.
func Sleep(ctx Context, name string, d time.Duration) {
	b := ctx.workflow()
	request := &kagziv1.SleepRequest{Duration: durationpb.New(max(d, time.Millisecond))}
	if d <= 0 {
		request = &kagziv1.SleepRequest{Until: timestamppb.New(b.e.now())}
	}
	b.sleep(ctx.scope(), name, d, request)
}

// SleepUntil is Sleep until a time. A time in the past does not park the run.
func SleepUntil(ctx Context, name string, t time.Time) {
	b := ctx.workflow()
	b.sleep(ctx.scope(), name, t.Sub(b.e.now()), &kagziv1.SleepRequest{Until: timestamppb.New(t)})
}

// sleepPassed is the detail of a sleep whose time has passed when it is called.
const sleepPassed = "passed"

func (b *branch) sleep(scope context.Context, name string, d time.Duration, request *kagziv1.SleepRequest) {
	detail := ""
	if d <= 0 {
		detail = sleepPassed
	}
	c := b.call(scope, name, kagziv1.StepKind_STEP_KIND_SLEEP, detail)
	defer b.release(c.name)
	if c.isOver() || c.halted() {
		return
	}
	due, timed := onServer(convert.When(c.record.GetWakeUpAt())), c.record.GetWakeUpAt() != nil
	if !timed {
		due, timed = c.setTimer(d, request)
	}
	if timed && c.parkUntil(due) {
		c.endTimer()
	}
	c.result()
}

// setTimer lets the server record a sleep and returns its end; false if its time had passed. If it
// parks the run, it does not return.
func (c *call) setTimer(d time.Duration, request *kagziv1.SleepRequest) (moment, bool) {
	e, b := c.b.e, c.b
	answers := make(chan bool, 1)
	e.lock()
	hold := !b.alone()
	request.Namespace, request.RunId, request.LeaseToken = e.task.GetNamespace(), e.info.RunID, e.token()
	request.StepName, request.Hold, request.Branch = &c.name, hold, b.path()
	op := e.send(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_Sleep{Sleep: request}}, nil)
	op.Answer = func(r *kagziv1.SessionResponse) {
		passed := r.GetSleeping().GetSettled() > 0
		switch {
		case passed:
			e.mu.Lock()
			e.report(c, op)
			e.mu.Unlock()
		case !hold:
			e.suspend()
		}
		answers <- !passed
	}
	e.mu.Unlock()
	if !await(e, answers) {
		return moment{}, false
	}
	if request.Until != nil { // else it counts from when the server received it
		return onServer(request.Until.AsTime()), true
	}
	return fromNow(d), true
}

// endTimer reports that the time of a sleep which this worker held has passed.
func (c *call) endTimer() {
	e := c.b.e
	e.lock()
	defer e.mu.Unlock()
	if c.state != callActive {
		return // it got its result while the run was parked, or the cancellation has ended it
	}
	if !e.w.keepsOrder() {
		e.queue(c, e.recorded+e.issued, false, 0)
		e.moved()
		return
	}
	name := c.name
	op := e.send(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_Sleep{Sleep: &kagziv1.SleepRequest{
		Namespace: e.task.GetNamespace(), RunId: e.info.RunID, LeaseToken: e.token(), StepName: &name,
		Hold: true, Over: true, Branch: c.b.path(),
	}}}, nil)
	op.Answer = func(*kagziv1.SessionResponse) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.report(c, op)
	}
}

// parkUntil waits for a recorded time. If every other branch of the run waits, too, the run is
// released and the call returns when it comes back, if ever; else it just waits. It returns false,
// early, if the call has its result: the cancellation of the run has ended it, or its time was found to
// be over when the run came back.
func (c *call) parkUntil(due moment) bool {
	for {
		active := c.isActive() // first, as it waits while the run is parked
		left := due.left(c.b.e)
		if left <= 0 || !active {
			return active
		}
		c.park(&parkedCall{due: due}, left)
	}
}

// park waits for up to d as a parked call, or until it is woken or over. It returns at once if the run
// was parked meanwhile, as d is of the stay before.
func (c *call) park(p *parkedCall, d time.Duration) {
	e, b := c.b.e, c.b
	if e.lock() || c.state != callActive || p.wait != nil && p.wait.hinted {
		e.mu.Unlock()
		return
	}
	e.parkings++
	p.call, p.loose, p.number, p.woken = c, b.loose, e.parkings, make(chan struct{})
	e.parked[p] = struct{}{}
	c.parked = p
	c.blocked = true
	b.blocked++
	changes := c.changes()
	b.settle()
	e.mu.Unlock()

	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.woken:
	case <-changes:
	case <-e.life.Done(): // then lock does not return
	}
	e.lock()
	delete(e.parked, p)
	c.parked = nil
	c.unblock()
	b.settle()
	e.mu.Unlock()
}

// idle releases the run until its earliest timer, because no branch can continue. Needs e.mu.
func (e *execution) idle() {
	switch {
	case e.quitted || e.closing, len(e.results) > 0, len(e.endings) > 0, len(e.held) > 0:
		return
	case e.asking > e.questions || e.answered > 0: // an answer is to come, or being taken, that may be a result
		return
	case len(e.parked) == 0:
		e.deadlocked()
		return
	case e.goesOn():
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
		if e.generation == generation && !e.quitted && !e.closing && len(e.results) == 0 {
			e.park()
		}
	})
}

// goesOn reports whether a parked call is about to continue. Needs e.mu.
func (e *execution) goesOn() bool {
	for p := range e.parked {
		if p.going || p.call != nil && p.call.state != callActive {
			return true
		}
	}
	return false
}

// wake lets a parked call look again. Needs e.mu.
func (p *parkedCall) wake() {
	if !p.going {
		p.going = true
		close(p.woken)
	}
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
		if !call.due.isZero() {
			timed, first = true, min(first, call.due.left(e))
		}
	}
	switch {
	case e.replay != nil && (loose || e.replay.missed() != nil): // a plain goroutine may still call
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
			e.askFor(w.question(true), w.answered, call)
			continue
		}
		each = append(each, call)
		if one := w.children[0]; !seen[one] {
			seen[one] = true
			children = append(children, one)
		}
	}
	if len(each) > 0 {
		e.askFor(awaitChildren(e, children, true, true),
			func(r *kagziv1.SessionResponse, op *session.Operation) bool {
				return e.childrenEnded(r.GetAwaitedChildren().GetSteps(), children, op)
			}, each...)
	}
}

// askFor sends one question. If the answer is not available yet, the server wakes the run for it.
// Needs e.mu.
func (e *execution) askFor(question *kagziv1.SessionRequest,
	answered func(*kagziv1.SessionResponse, *session.Operation) bool, calls ...*parkedCall) {
	e.questions++
	op := e.send(question, nil)
	op.Answer = func(r *kagziv1.SessionResponse) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.questions--
		got := answered(r, op)
		for _, call := range calls {
			call.wait.known = time.Now()
			call.wait.asked = call.wait.asked || !got
		}
		e.moved()
	}
}
