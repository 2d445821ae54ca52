package kagzi

import (
	"container/heap"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/session"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// cancellation is the state of a graceful cancellation. Once the code owes no recorded call, this
// worker records it as the step kagzi:cancelled, and it takes effect when that record is handed over
// in the order of results: in every replay at the same place. All fields but the contexts are guarded
// by e.mu.
type cancellation struct {
	ctx      context.Context // what workflow code sees: ends with life, and when the cancellation takes effect
	cancel   context.CancelCauseFunc
	grace    *graceContext // for Cleanup: ends with life and with the grace period
	endGrace context.CancelCauseFunc

	cancelAsked bool
	cancelling  bool            // its record is in the history, or sent
	cancelled   bool            // it has taken effect
	cancelPlace queued          // where, in the order of results
	atWork      map[string]bool // the steps whose code ran when it was recorded
	graceUntil  time.Time       // end of the grace period by the server's clock; zero if unknown
	graceCounts bool            // the end of the grace period is enforced
	graceTimer  *time.Timer
}

// graceContext has the end of the grace period as its deadline, once it is known.
type graceContext struct {
	context.Context
	e *execution
}

func (g *graceContext) Deadline() (time.Time, bool) {
	g.e.mu.Lock()
	defer g.e.mu.Unlock()
	return g.e.graceUntil.Add(-g.e.stay.Load().ahead), !g.e.graceUntil.IsZero()
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
	if e.graceCounts {
		e.tryCancel()
		e.moved()
		e.armGrace()
	}
	return first
}

// cancelName is the name of the step that records a cancellation.
const cancelName = "kagzi:cancelled"

// cancelRecord is the result of that step.
type cancelRecord struct {
	Running []string `json:"running,omitempty"` // the steps whose code ran then
}

// tryCancel records the cancellation, if it was asked for and the code owes nothing. Needs e.mu.
func (e *execution) tryCancel() {
	if !e.cancelAsked || e.cancelling || e.owing > 0 || !e.graceCounts || e.replay != nil || e.quitted || e.closing {
		return
	}
	e.cancelling = true
	var record cancelRecord
	for c := range e.open {
		if c.running && !c.clean {
			record.Running = append(record.Running, c.name)
		}
	}
	slices.Sort(record.Running)
	e.atWork = setOf(record.Running)
	data, err := json.Marshal(record)
	if err != nil {
		panic(err) // strings only
	}
	op := e.send(completeStep(e, cancelName, "", &kagziv1.Payload{Data: data, Metadata: jsonMetadata}, time.Now()), nil)
	heap.Push(&e.results, queued{key: e.recorded + op.Index, live: true})
}

// readCancel takes the record of the cancellation from the history. It returns false for another
// step. Needs e.mu.
func (e *execution) readCancel(s *kagziv1.Step) bool {
	if s.GetName() != cancelName {
		return false
	}
	var record cancelRecord
	_ = json.Unmarshal(s.GetOutput().GetData(), &record) // without it no step counts as running
	e.atWork = setOf(record.Running)
	e.cancelAsked, e.cancelling = true, true
	heap.Push(&e.results, queued{key: s.GetSettled()})
	return true
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// cancelNow lets the cancellation take effect: contexts end, and with them every sleep and wait, and
// every step whose code does not run, one by one in the order of branches and calls. Needs e.mu.
func (e *execution) cancelNow() {
	e.cancelled = true
	e.cancel(ErrCancelled)
	var held []*call
	for c := range e.open {
		switch {
		case c.clean || c.inCode || c.state == callOver:
			continue
		case c.kind == kagziv1.StepKind_STEP_KIND_FUNCTION && (c.running || c.state == callQueued):
			continue
		case e.atWork[c.name]:
			if e.replay == nil {
				e.failLost(c)
			}
		default:
			e.endings = append(e.endings, c)
		}
	}
	slices.SortFunc(e.endings, (*call).compare)
	for _, c := range e.held {
		if c.clean {
			held = append(held, c)
		}
	}
	e.held = held
	e.release()
}

// endsWith reports whether the cancellation ends the call, although that may not be handed over yet.
// Needs e.mu.
func (e *execution) endsWith(c *call) bool { return e.cancelled && !c.clean }

// failLost fails a step whose code ran when the cancellation was recorded, on a worker that has been
// lost since. Needs e.mu.
func (e *execution) failLost(c *call) {
	c.state, c.failing = callActive, true
	name := c.name
	c.failure = &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_CANCELLED, NonRetryable: true, Type: "cancelled",
		Message: "the run was cancelled while the step ran on a worker that is lost"}
	op := e.send(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_FailStep{FailStep: &kagziv1.FailStepRequest{
		Namespace: e.task.GetNamespace(), RunId: e.info.RunID, LeaseToken: e.token(), StepName: &name,
		Error: c.failure, StartedAt: timestamppb.New(e.now()), Hold: true, Branch: c.b.path(),
	}}}, nil)
	op.Answer = func(*kagziv1.SessionResponse) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.report(c, op)
	}
	c.changed()
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

// cancelIsDue reports whether a step that failed in this scope failed because the run is being
// cancelled: its context had ended.
func (e *execution) cancelIsDue(scope context.Context) bool {
	return scope.Err() != nil && e.life.Err() == nil
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

// verdicts are outcomes of calls that the calls' own records do not show, by the name of the call: a
// child that the server refused to start. Each is recorded as a failed step of the SDK itself, so
// that every replay agrees. Earlier versions of the SDK also recorded the calls that a cancellation
// ended. A retry of the run starts without them.
type verdicts map[string]*kagziv1.ErrorDetail

const (
	verdictName = "kagzi:ended" // kagzi:ended:2, ..
	verdictStep = "step"        // metadata key of the error: name of the call
)

// isVerdict reports whether a step's name is that of a verdict.
func isVerdict(name string) bool {
	number, ok := strings.CutPrefix(name, verdictName)
	return ok && (number == "" || number[0] == ':')
}

// readVerdict takes a verdict from the history. It returns false for any other step. Needs e.mu.
func (e *execution) readVerdict(s *kagziv1.Step) bool {
	if !isVerdict(s.GetName()) {
		return false
	}
	e.verdictCount++
	if d := s.GetError(); s.GetStatus() == kagziv1.StepStatus_STEP_STATUS_FAILED {
		if step, ok := d.GetMetadata()[verdictStep]; ok {
			e.addVerdict(step, d)
		}
	}
	return true
}

func (e *execution) addVerdict(step string, d *kagziv1.ErrorDetail) {
	if e.verdicts == nil {
		e.verdicts = make(verdicts)
	}
	e.verdicts[step] = d
}

// judge records the outcome of a call under the next name. Needs e.mu.
func (e *execution) judge(c *call, d *kagziv1.ErrorDetail) *session.Operation {
	e.addVerdict(c.name, d)
	e.verdictCount++
	name := verdictName
	if e.verdictCount > 1 {
		name += ":" + strconv.Itoa(e.verdictCount)
	}
	return e.send(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_FailStep{
		FailStep: &kagziv1.FailStepRequest{
			Namespace: e.task.GetNamespace(), RunId: e.info.RunID, LeaseToken: e.token(),
			StepName: &name, Error: d, StartedAt: timestamppb.New(e.now()), Hold: true, Branch: c.b.path(),
		}}}, nil)
}
