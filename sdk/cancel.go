package kagzi

import (
	"context"
	"strconv"
	"strings"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/session"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// cancellation is what an execution knows about the graceful cancellation of its run. It takes
// effect where the code is past all that is recorded: a run that is woken for it first comes back
// to where it was. But for the contexts, guarded by e.mu.
type cancellation struct {
	ctx      context.Context // what workflow code sees: ends with life, and when the cancellation takes effect
	cancel   context.CancelCauseFunc
	grace    *graceContext // for cleaning up: ends with life, and when the grace is over
	endGrace context.CancelCauseFunc

	cancelAsked bool
	graceUntil  time.Time // end of the grace, by the server's clock; zero for none that is known
	graceCounts bool      // the grace is measured from here on
	graceTimer  *time.Timer
	arriving    []arrival
	// it takes effect when the code, which had come to the end of one branch's record, is past all that is recorded
	settling bool
}

// arrival is a branch that is past what is recorded of it, while others may not be.
type arrival struct {
	b    *branch
	live chan struct{} // closed when the code is past all that is recorded
}

// arriveSettle is how long a branch whose author has it wait or compute, instead of coming further, keeps the others.
const arriveSettle = 50 * time.Millisecond

// graceContext has the end of the grace as its deadline, from when it is known.
type graceContext struct {
	context.Context
	e *execution
}

func (g *graceContext) Deadline() (time.Time, bool) {
	g.e.mu.Lock()
	defer g.e.mu.Unlock()
	return g.e.graceUntil.Add(-g.e.ahead), !g.e.graceUntil.IsZero()
}

// Cleanup returns a Context for undoing what a cancelled run has done: it does not end with the
// cancellation but with the grace that Run.CancelGracefully gave, which is its Deadline, and with
// the lease. Under it steps, sleeps, waits and branches do as always, so that a step may be
// retried. Without a cancellation it is like ctx.
//
//	if errors.Is(err, kagzi.ErrCancelled) {
//		_, undoErr := kagzi.Step(kagzi.Cleanup(ctx), "refund", refund)
//		return Receipt{}, errors.Join(err, undoErr)
//	}
func Cleanup(ctx Context) Context {
	b := ctx.workflow()
	b.enter()
	return &workflowContext{b.e.grace, b}
}

func (e *execution) prepareCancellation() {
	e.ctx, e.cancel = context.WithCancelCause(e.life)
	grace, end := context.WithCancelCause(e.life)
	e.grace, e.endGrace = &graceContext{grace, e}, end
}

// askCancel takes note that the run is being cancelled, and until when its code may clean up; true for the first time.
func (e *execution) askCancel(until time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	first := !e.cancelAsked
	e.cancelAsked, e.graceUntil = true, until
	switch {
	case !e.live:
	case e.unread == 0 || e.busy == 0:
		e.cancel(ErrCancelled)
	case first: // branches that are not past their record may be coming back
		e.settling = true
		go e.settleLive()
	}
	if e.graceCounts {
		e.armGrace()
	}
	return first
}

// goLive takes note that the code has come to the end of what is recorded. Needs e.mu.
func (e *execution) goLive() {
	e.live, e.settling = true, false
	if e.cancelAsked {
		e.cancel(ErrCancelled)
	}
	arrived := e.arriving
	e.arriving = nil
	for _, a := range arrived {
		a.b.calls--
		a.b.blocked--
		a.b.settle()
		close(a.live)
	}
}

// comeLive is goLive for a branch that is past what is recorded of it. Where the run is being
// cancelled that waits until the others are as well, or can go no further without it: else their
// Contexts would end before calls that have returned, and code that looks at its own would not come
// back to where it was. Needs e.mu, which it gives up meanwhile; if the code has to end, it ends
// the goroutine without it.
func (b *branch) comeLive() {
	e := b.e
	if e.live && !e.settling || !e.cancelAsked {
		e.goLive()
		return
	}
	live := make(chan struct{})
	e.arriving = append(e.arriving, arrival{b, live})
	b.calls++
	b.blocked++
	b.settle() // the last of them has all go on
	for further := true; further; {
		had := e.comeSoFar()
		e.mu.Unlock()
		further = !e.settled(live)
		e.lock()
		further = further && e.comesFurther(had)
	}
	e.goLive()
}

// settleLive is comeLive for an execution of which perhaps no branch comes past what is recorded of it.
func (e *execution) settleLive() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for further := true; further; {
		had := e.comeSoFar()
		e.mu.Unlock()
		e.settled(nil)
		e.mu.Lock()
		if e.quitted || e.closing || e.live && !e.settling {
			return
		}
		further = e.comesFurther(had)
	}
	e.goLive()
}

// settled waits for arriveSettle; true when the code is past all that is recorded before.
func (e *execution) settled(live <-chan struct{}) bool {
	timer := time.NewTimer(arriveSettle)
	defer timer.Stop()
	select {
	case <-live:
		return true
	case <-e.life.Done():
	case <-timer.C:
	}
	return false
}

// comeSoFar is another number when branches have come further, and comesFurther says that they
// have, or that one is about to: a call that returns by its record may take long to decode it, and
// has come further when it is done, before the code's next call. Both need e.mu.
func (e *execution) comeSoFar() int { return e.generation + e.recalls - e.unread }

func (e *execution) comesFurther(since int) bool { return e.comeSoFar() != since || e.recalling > 0 }

// arrive is comeLive for a call that has no record of its own.
func (b *branch) arrive() {
	b.e.lock()
	b.comeLive()
	b.e.mu.Unlock()
}

// armGrace sets the grace's end, which in a replay never comes: there it is in the past. Needs e.mu.
func (e *execution) armGrace() {
	e.graceCounts = true
	if e.graceUntil.IsZero() || e.replay != nil || e.ended {
		return
	}
	left := e.graceUntil.Sub(e.now())
	if e.graceTimer != nil {
		e.graceTimer.Reset(left)
		return
	}
	e.graceTimer = time.AfterFunc(left, func() { e.endGrace(ErrCancelled) })
}

// graceIsOver says that the run has been cancelled for good, which may be heard from the server
// before the timer here has fired.
func (e *execution) graceIsOver() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.graceCounts && !e.graceUntil.IsZero() && !e.now().Before(e.graceUntil)
}

func (e *execution) stopGrace() {
	if e.graceTimer != nil {
		e.graceTimer.Stop()
	}
}

// cancelled reports whether a call with this scope has to end because the run is being cancelled.
func (e *execution) cancelled(scope context.Context) bool {
	return scope.Err() != nil && e.life.Err() == nil
}

// cancelled is that of a call of the branch, whose code is told so by it.
func (b *branch) cancelled(scope context.Context) bool {
	if !b.e.cancelled(scope) {
		return false
	}
	b.e.lock()
	b.told = true
	b.e.mu.Unlock()
	return true
}

// toldOfCancellation takes note that the code is told by the record of a call that the cancellation has taken effect.
func (b *branch) toldOfCancellation(call string) {
	b.e.lock()
	b.e.recalled(call)
	b.told = true
	b.comeLive()
	b.e.mu.Unlock()
}

// noteCancellation takes note of a call. The first one that cleans up without a call having told of
// the cancellation comes from code that looked at its Context. In a replay that has to have ended
// there as well, although what is recorded goes on: it does so behind the call before, which is
// recorded for that, or behind the wait for a branch. Branches that had ended by then because they
// looked have to end there again: it took effect behind the last call of each. seen says that the
// Context had ended when the call was made. It reports whether the cancellation took effect behind
// this call. Needs e.mu.
func (b *branch) noteCancellation(scope context.Context, call string, recorded *kagziv1.Step, seen bool) (ended bool) {
	e := b.e
	if scope == context.Context(e.grace) && recorded == nil && seen && !b.told && e.replay == nil {
		places := b.ends
		if len(places) == 0 {
			places = []string{b.place()}
		}
		for _, place := range places {
			e.sendVerdict(&kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_CANCELLED, NonRetryable: true,
				Type:    "cancelled",
				Message: "the cancellation of the run took effect", Metadata: map[string]string{verdictAfter: place}})
		}
		b.told = true
	}
	b.last, b.behind = call, nil
	if e.verdicts.after[call] {
		b.told, e.cancelAsked, ended = true, true, true
	}
	return ended
}

// place names what the branch did last: the call, or the wait for a branch. Needs e.mu.
func (b *branch) place() string {
	for b.last == "" && b.behind == nil && b.parent != nil {
		b = b.parent
	}
	if b.behind != nil {
		return b.placeBehind(b.behind)
	}
	return b.last
}

// placeBehind names the wait for another branch. No call has such a name.
func (b *branch) placeBehind(other *branch) string {
	return verdictName + ":" + b.path() + "/" + other.path()
}

// noteJoin takes note that the branch has waited for another, for the first time. If the
// cancellation took effect behind that, it does so now. Needs e.mu, which it may give up meanwhile.
func (b *branch) noteJoin(other *branch) {
	e := b.e
	switch {
	case !other.untold:
		b.behind = other
	case len(other.ends) > 0:
		b.ends = append(b.ends, other.ends...)
	case other.last != "" || other.behind != nil:
		b.ends = append(b.ends, other.place())
	}
	if len(e.verdicts.after) > 0 && e.verdicts.after[b.placeBehind(other)] {
		b.told, e.cancelAsked = true, true
		b.comeLive()
	}
}

// cancelledError is what a call returns that the cancellation has ended. last is the failure of its
// last attempt, if any.
func cancelledError(step string, last *kagziv1.ErrorDetail, attempts int) *StepError {
	text := "the run is being cancelled"
	if m := last.GetMessage(); m != "" {
		text += "; last error: " + m
	}
	return &StepError{Step: step, Type: last.GetType(), Message: text, Code: CodeCancelled, Attempts: attempts,
		NonRetryable: true}
}

// asCancelled makes the failure of a step whose context the cancellation has ended final. One that
// is final by itself stays as it is.
func asCancelled(d *kagziv1.ErrorDetail) {
	if !d.GetNonRetryable() {
		d.Code, d.NonRetryable, d.RetryAfterMs = kagziv1.ErrorCode_ERROR_CODE_CANCELLED, true, 0
	}
}

// verdicts are the ends of calls that have no record of their own for it: that a sleep or a wait
// was ended by the cancellation, although its time or its signal may come later, and that the
// server refused to start a child. Each is recorded as a failed step of the SDK's own, so that
// every replay agrees. A run that is tried again has none of them.
type verdicts struct {
	calls map[string]*kagziv1.ErrorDetail // by the name of the call
	// the calls and waits behind which the cancellation took effect; "": at the beginning
	after map[string]bool
	count int
	early int64 // the sequence of the verdict that it did so at the beginning; 0: there is none
}

const (
	verdictName = "kagzi:ended" // kagzi:ended:2, ..
	verdictStep = "step"        // the key of the call's name in the metadata of the error

	verdictAfter = "after" // in its place: of the call, or wait for a branch, behind which the cancellation took effect
)

// isVerdict reports the name of a step that is a verdict on another call. The code's own calls cannot have it.
func isVerdict(name string) bool {
	number, ok := strings.CutPrefix(name, verdictName)
	return ok && (number == "" || number[0] == ':')
}

// read takes a verdict from the history; false when the step is none.
func (v *verdicts) read(s *kagziv1.Step) bool {
	if !isVerdict(s.GetName()) {
		return false
	}
	v.count++
	if d := s.GetError(); s.GetStatus() == kagziv1.StepStatus_STEP_STATUS_FAILED {
		if call, ok := d.GetMetadata()[verdictAfter]; ok {
			if v.after == nil {
				v.after = make(map[string]bool)
			}
			v.after[call] = true
			if call == "" {
				v.early = s.GetSequence()
			}
		} else {
			v.add(d.GetMetadata()[verdictStep], d)
		}
	}
	return true
}

func (v *verdicts) add(call string, d *kagziv1.ErrorDetail) {
	if v.calls == nil {
		v.calls = make(map[string]*kagziv1.ErrorDetail)
	}
	v.calls[call] = d
}

// judge records how a call ended. Needs e.mu.
func (e *execution) judge(call string, d *kagziv1.ErrorDetail) *session.Operation {
	e.verdicts.add(call, d)
	return e.sendVerdict(d)
}

// sendVerdict records one under the next name. Needs e.mu.
func (e *execution) sendVerdict(d *kagziv1.ErrorDetail) *session.Operation {
	e.verdicts.count++
	name := verdictName
	if e.verdicts.count > 1 {
		name += ":" + strconv.Itoa(e.verdicts.count)
	}
	return e.send(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_FailStep{
		FailStep: &kagziv1.FailStepRequest{
			Namespace: e.task.GetNamespace(), RunId: e.info.RunID, LeaseToken: e.task.GetLeaseToken(),
			StepId: name, Error: d, StartedAt: timestamppb.New(e.now()), Hold: true,
		}}}, nil)
}

// endedByCancellation reports whether the record says so of a call, which is where the cancellation took effect.
func (b *branch) endedByCancellation(call string) bool {
	e := b.e
	e.lock()
	ended := e.verdicts.calls[call].GetCode() == kagziv1.ErrorCode_ERROR_CODE_CANCELLED
	if ended {
		e.recalled(call)
		b.told, e.cancelAsked = true, true
		b.comeLive()
	}
	e.mu.Unlock()
	return ended
}

// endByCancellation records that the cancellation ends a call that the server has a record of, and
// which it may still settle. Should it refuse, only a replay could see a difference.
func (e *execution) endByCancellation(call string) {
	if e.replay != nil {
		return
	}
	e.lock()
	defer e.mu.Unlock()
	if e.verdicts.calls[call] != nil {
		return
	}
	e.judge(call, &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_CANCELLED, NonRetryable: true, Type: "cancelled",
		Message: call + " was ended by the cancellation of the run", Metadata: map[string]string{verdictStep: call}},
	).Refused = func(d *kagziv1.ErrorDetail) {
		e.w.log.Debug("end by cancellation not recorded", "run", e.info.RunID, "step", call, "error", d.GetMessage())
	}
}
