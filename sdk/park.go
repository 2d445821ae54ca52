package kagzi

import (
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
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

// parkedCall is a call that waits for a time which the server has recorded.
type parkedCall struct {
	due   time.Time
	loose bool // its branch's author uses goroutines of his own
}

// Sleep parks the run for d, to the millisecond: no worker is held meanwhile, and restarts do not
// matter. It is a step of its own, with a name under the same rules. A d of 0 or less does not park. When the run is being
// cancelled it returns at once.
func Sleep(ctx Context, name string, d time.Duration) {
	b := ctx.workflow()
	b.sleep(name, d, &kagziv1.SleepRequest{Duration: durationpb.New(max(d, time.Millisecond))})
}

// SleepUntil is Sleep until a point of time; one that has passed does not park.
func SleepUntil(ctx Context, name string, t time.Time) {
	b := ctx.workflow()
	b.sleep(name, t.Sub(b.e.now()), &kagziv1.SleepRequest{Until: timestamppb.New(t)})
}

func (b *branch) sleep(name string, d time.Duration, request *kagziv1.SleepRequest) {
	e := b.e
	name, recorded := b.claim(name, kagziv1.StepKind_STEP_KIND_SLEEP)
	defer b.release(name)
	timed := recorded.GetStatus() == kagziv1.StepStatus_STEP_STATUS_RUNNING && recorded.WakeUpAt != nil
	if settledSleep(recorded) || e.cancelling() || !timed && d <= 0 {
		return
	}
	b.begin()
	defer b.end()
	if timed {
		b.parkUntil(recorded.WakeUpAt.AsTime())
		return
	}
	own := onBranchGoroutine()
	answers := make(chan time.Time, 1)
	e.lock()
	hold := !b.alone(own)
	request.Namespace, request.RunId, request.LeaseToken = e.task.GetNamespace(), e.info.RunID, e.task.GetLeaseToken()
	request.StepId, request.Hold = name, hold
	e.send(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_Sleep{Sleep: request}}, func(*kagziv1.SessionResponse) {
		if !hold {
			e.over(errSuspended)
		}
		answers <- e.now().Add(d)
	})
	e.mu.Unlock()
	b.parkUntil(await(e, answers))
}

// settledSleep reports a sleep that is over: completed by the server, or set aside by a person.
func settledSleep(s *kagziv1.Step) bool {
	switch s.GetStatus() {
	case kagziv1.StepStatus_STEP_STATUS_COMPLETED:
		return true
	case kagziv1.StepStatus_STEP_STATUS_FAILED:
		return s.GetError().GetCode() != kagziv1.ErrorCode_ERROR_CODE_CRASHED
	}
	return false
}

// parkUntil waits for a time that the server has recorded. If everything else of the run waits as well, the run is
// handed back and the call does not return; if a sibling is still at work then, the branch just goes on. It returns false, early,
// when the run is being cancelled.
func (b *branch) parkUntil(due time.Time) bool {
	e := b.e
	left := due.Sub(e.now())
	if left <= 0 {
		return true
	}
	if e.cancelling() {
		return false
	}
	own := onBranchGoroutine()
	e.lock()
	if !own {
		b.loose = true
	}
	call := &parkedCall{due, b.loose}
	e.parked[call] = struct{}{}
	b.blocked++
	b.settle()
	e.mu.Unlock()

	timer := time.NewTimer(left)
	defer timer.Stop()
	reached := false
	select {
	case <-timer.C:
		reached = true
	case <-e.ctx.Done(): // cancelled, or the code has to end: then lock does not return
	}
	e.lock()
	delete(e.parked, call)
	b.blocked--
	b.settle()
	e.mu.Unlock()
	return reached
}

// idle hands the run back until its earliest timer, now that no branch can go on by itself. Needs e.mu.
func (e *execution) idle() {
	if len(e.parked) == 0 || e.quitted || e.closing {
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

func (e *execution) parkDelay() time.Duration {
	loose, first := false, time.Duration(1<<62)
	for call := range e.parked {
		first = min(first, call.due.Sub(e.now()))
		loose = loose || call.loose
	}
	switch {
	case e.issued == 0:
		return parkAfterNothing
	case loose, first <= parkSettle:
		return parkSettle
	}
	return 0
}

func (e *execution) park() {
	e.closing = true
	e.sendRelease(true, errSuspended)
}
