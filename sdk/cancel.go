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

// cancellation is the state of a graceful cancellation. It takes effect when the code is past all
// recorded calls: a parked run that is woken for it is first replayed to where it was. All fields
// but the contexts are guarded by e.mu.
type cancellation struct {
	ctx      context.Context // what workflow code sees: ends with life, and when the cancellation takes effect
	cancel   context.CancelCauseFunc
	grace    *graceContext // for Cleanup: ends with life and with the grace period
	endGrace context.CancelCauseFunc

	cancelAsked bool
	graceUntil  time.Time // end of the grace period by the server's clock; zero if unknown
	graceCounts bool      // the end of the grace period is enforced
	graceTimer  *time.Timer
	arriving    []arrival
	// waits to take effect: one branch is past its record, others may not be
	settling bool
}

// arrival is a branch that is past its recorded calls while others may not be.
type arrival struct {
	b    *branch
	live chan struct{} // closed when the code is past all recorded calls
}

// arriveSettle is how long other branches wait for one that computes or waits outside the SDK.
const arriveSettle = 50 * time.Millisecond

// graceContext has the end of the grace period as its deadline, once it is known.
type graceContext struct {
	context.Context
	e *execution
}

func (g *graceContext) Deadline() (time.Time, bool) {
	g.e.mu.Lock()
	defer g.e.mu.Unlock()
	return g.e.graceUntil.Add(-g.e.ahead), !g.e.graceUntil.IsZero()
}

// Cleanup returns a Context for undoing the effects of a cancelled run. It does not end with the
// cancellation but with the grace period of Run.Cancel or Run.CancelGracefully, which is its
// Deadline, and with the lease. Steps, retries, sleeps, waits and branches work normally under it. Without a
// cancellation it behaves like ctx.
//
//	if errors.Is(err, kagzi.ErrCancelled) {
//		undoErr := kagzi.Do(kagzi.Cleanup(ctx), "refund", refund)
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

// askCancel records that the run is being cancelled and when its grace period ends. It returns true
// the first time.
func (e *execution) askCancel(until time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	first := !e.cancelAsked
	e.cancelAsked, e.graceUntil = true, until
	switch {
	case !e.live:
	case e.unread == 0 || e.busy == 0:
		e.cancel(ErrCancelled)
	case first: // branches before the end of their records may still be replaying
		e.settling = true
		go e.settleLive()
	}
	if e.graceCounts {
		e.armGrace()
	}
	return first
}

// goLive records that the code is past all recorded calls. Needs e.mu.
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

// comeLive is goLive for one branch that is past its recorded calls. During a cancellation it first
// waits until the other branches are, too, or cannot continue. Otherwise their Contexts would end
// before calls that have already returned, and code that checks its Context would not replay to
// where it was. Needs e.mu and releases it while waiting; if the code has to end, it ends the
// goroutine.
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
	b.settle() // the last branch to arrive releases all
	for further := true; further; {
		had := e.comeSoFar()
		e.mu.Unlock()
		further = !e.settled(live)
		e.lock()
		further = further && e.comesFurther(had)
	}
	e.goLive()
}

// settleLive is comeLive for an execution in which perhaps no branch gets past its recorded calls.
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

// settled waits for arriveSettle. It returns true if the code got past all recorded calls before.
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

// comeSoFar changes whenever a branch makes progress. comesFurther reports progress since an
// earlier value, or that some is imminent: a recorded call may take long to decode its result. Both
// need e.mu.
func (e *execution) comeSoFar() int { return e.generation + e.recalls - e.unread }

func (e *execution) comesFurther(since int) bool { return e.comeSoFar() != since || e.recalling > 0 }

// arrive is comeLive for a call that has no record of its own.
func (b *branch) arrive() {
	b.e.lock()
	b.comeLive()
	b.e.mu.Unlock()
}

// armGrace starts the timer of the grace period. In a replay the period never ends. Needs e.mu.
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

// graceIsOver reports whether the run has been cancelled for good. The server may report that
// before the local timer fires.
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

// cancelled reports whether a call in this scope has to end because the run is being cancelled.
func (e *execution) cancelled(scope context.Context) bool {
	return scope.Err() != nil && e.life.Err() == nil
}

// cancelled is execution.cancelled for a call of the branch; if true, the call reports the
// cancellation to the code.
func (b *branch) cancelled(scope context.Context) bool {
	if !b.e.cancelled(scope) {
		return false
	}
	b.e.lock()
	b.told = true
	b.e.mu.Unlock()
	return true
}

// toldOfCancellation notes that the record of a call reports to the code that the cancellation took
// effect.
func (b *branch) toldOfCancellation(call string) {
	b.e.lock()
	b.e.recalled(call)
	b.told = true
	b.comeLive()
	b.e.mu.Unlock()
}

// noteCancellation notes a call. The first cleanup call that no other call's ErrCancelled preceded
// comes from code that checked its Context. In a replay that Context must end at the same place,
// although more is recorded: after the call before (recorded for this purpose), or after the wait
// for a branch. Branches that ended because they checked must end there again: the cancellation
// took effect after the last call of each. seen means that the Context had ended when the call was
// made. It reports whether the cancellation took effect after this call. Needs e.mu.
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

// place names the last thing that the branch did: a call, or the wait for a branch. Needs e.mu.
func (b *branch) place() string {
	for b.last == "" && b.behind == nil && b.parent != nil {
		b = b.parent
	}
	if b.behind != nil {
		return b.placeBehind(b.behind)
	}
	return b.last
}

// placeBehind names the wait for another branch. No call can have that name.
func (b *branch) placeBehind(other *branch) string {
	return verdictName + ":" + b.path() + "/" + other.path()
}

// noteJoin notes the branch's first wait for another. If the cancellation took effect after that
// wait, it does so now. Needs e.mu and may release it meanwhile.
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

// cancelledError returns the error of a call that the cancellation ended. last is the failure of
// its last attempt, if any.
func cancelledError(step string, last *kagziv1.ErrorDetail, attempts int) *StepError {
	text := "the run is being cancelled"
	if m := last.GetMessage(); m != "" {
		text += "; last error: " + m
	}
	return &StepError{Step: step, Type: last.GetType(), Message: text, Code: CodeCancelled, Attempts: attempts,
		NonRetryable: true}
}

// asCancelled makes a failure final that follows a cancelled context. A failure that is final
// already stays as it is.
func asCancelled(d *kagziv1.ErrorDetail) {
	if !d.GetNonRetryable() {
		d.Code, d.NonRetryable, d.RetryAfterMs = kagziv1.ErrorCode_ERROR_CODE_CANCELLED, true, 0
	}
}

// verdicts are outcomes of calls that the calls' own records do not show: a sleep or wait that the
// cancellation ended, although its time or signal may come later, and a child that the server
// refused to start. Each is recorded as a failed step of the SDK itself, so that every replay
// agrees. A retry of the run starts without them.
type verdicts struct {
	calls map[string]*kagziv1.ErrorDetail // by the name of the call
	// calls and waits after which the cancellation took effect; "" means at the beginning
	after map[string]bool
	count int
	early int64 // sequence of the verdict that it took effect at the beginning; 0 if there is none
}

const (
	verdictName = "kagzi:ended" // kagzi:ended:2, ..
	verdictStep = "step"        // metadata key of the error: name of the call

	verdictAfter = "after" // instead of verdictStep: the call or wait after which the cancellation took effect
)

// isVerdict reports whether a step's name is that of a verdict. Calls of the code cannot have it.
func isVerdict(name string) bool {
	number, ok := strings.CutPrefix(name, verdictName)
	return ok && (number == "" || number[0] == ':')
}

// read takes a verdict from the history. It returns false for any other step.
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

// judge records the outcome of a call. Needs e.mu.
func (e *execution) judge(call string, d *kagziv1.ErrorDetail) *session.Operation {
	e.verdicts.add(call, d)
	return e.sendVerdict(d)
}

// sendVerdict records a verdict under the next name. Needs e.mu.
func (e *execution) sendVerdict(d *kagziv1.ErrorDetail) *session.Operation {
	e.verdicts.count++
	name := verdictName
	if e.verdicts.count > 1 {
		name += ":" + strconv.Itoa(e.verdicts.count)
	}
	return e.send(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_FailStep{
		FailStep: &kagziv1.FailStepRequest{
			Namespace: e.task.GetNamespace(), RunId: e.info.RunID, LeaseToken: e.task.GetLeaseToken(),
			StepName: &name, Error: d, StartedAt: timestamppb.New(e.now()), Hold: true,
		}}}, nil)
}

// endedByCancellation reports whether a call's record says that the cancellation ended it.
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

// endByCancellation records that the cancellation ended a call that the server knows and may still
// complete. If the server refuses, only a replay could tell the difference.
func (e *execution) endByCancellation(call string) {
	if e.replay != nil {
		return
	}
	e.lock()
	defer e.mu.Unlock()
	if e.verdicts.calls[call] != nil {
		return
	}
	e.judge(call, &kagziv1.ErrorDetail{
		Code: kagziv1.ErrorCode_ERROR_CODE_CANCELLED, NonRetryable: true, Type: "cancelled",
		Message: call + " was ended by the cancellation of the run", Metadata: map[string]string{verdictStep: call}},
	).Refused = func(d *kagziv1.ErrorDetail) {
		e.w.log.Debug("end by cancellation not recorded", "run", e.info.RunID, "step", call, "error", d.GetMessage())
	}
}
