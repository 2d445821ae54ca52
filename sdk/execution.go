package kagzi

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
	"github.com/kagzi/kagzi/sdk/internal/session"
	"github.com/kagzi/kagzi/sdk/internal/transport"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/status"
)

// Why the code of an execution is made to end. They are causes of its contexts and never reach a user's error.
var (
	errSuspended = errors.New("kagzi: run suspended")
	errFinished  = errors.New("kagzi: run finished")
	errReleased  = errors.New("kagzi: run released")
	errLeaseLost = errors.New("kagzi: lease lost")
)

// execution is one activation of a run on this worker: from the task that brought it to the end of that lease.
//
// Its code is alive until quit, whatever ended it; the lease is held until over. Between the two, the
// operations that are still unanswered settle how the activation ends.
type execution struct {
	w           *Worker
	task        *kagziv1.Task
	info        RunInfo
	since       time.Time
	ahead       time.Duration // of the server's clock before ours
	stepTimeout time.Duration
	// heartbeatTimeout is for how long without contact the server lets this worker have the run, if
	// that is longer than the worker's lease.
	heartbeatTimeout time.Duration
	start            func() string // PayloadInfo.Start
	span             trace.Span    // of the activation

	life    context.Context // ends when the code has to: the parent of all others
	endLife context.CancelCauseFunc
	cancellation

	mu         sync.Mutex
	quitted    bool // the code has to end, whatever it still wants
	endRefused bool // the run's failure was refused for what its error holds, and was sent once more

	closing bool // the operation that gives the lease back, or ends the run, is on its way
	ended   bool // the lease is over

	outbox
	history  map[string]*kagziv1.Step
	unread   int  // calls with a record that the code has not come to yet
	live     bool // the code has come to the end of what is recorded
	verdicts verdicts
	names    map[string]*nameUse

	recalling int     // calls under way that return by their record
	recalls   int     // calls that have returned by it
	replay    *replay // nil unless the code is only held against a record
	note      note

	busy       int // branches that can go on by themselves
	generation int // counts the changes of busy
	parked     map[*parkedCall]struct{}
	outsiders  int  // goroutines of the author's own that wait for a branch
	parkings   int  // numbers the parked calls
	questions  int  // that are to be answered before the run is parked
	continued  bool // ContinueAsNew was called
}

func newExecution(w *Worker, task *kagziv1.Task) *execution {
	e := &execution{w: w, task: task, info: newRunInfo(w, task), since: time.Now(), stepTimeout: defaultStepTimeout,
		parked: make(map[*parkedCall]struct{})}
	if ms := task.GetTimeouts().GetStartToCloseTimeoutMs(); ms > 0 {
		e.stepTimeout = time.Duration(ms) * time.Millisecond
	}
	e.heartbeatTimeout = time.Duration(task.GetTimeouts().GetHeartbeatTimeoutMs()) * time.Millisecond
	if expires := task.GetLeaseExpiresAt(); expires != nil {
		e.ahead = expires.AsTime().Add(-max(w.lease.Duration(), e.heartbeatTimeout)).Sub(e.since)
	}
	e.start = sync.OnceValue(func() string {
		return startDigest(task.GetWorkflowType(), task.GetExternalId(), task.GetInput().GetData())
	})
	traced, span := w.traceActivation(task)
	e.span = span
	e.life, e.endLife = context.WithCancelCause(traced)
	e.prepareCancellation()
	if task.GetCancelRequested() {
		e.askCancel(convert.When(task.GetCancelGraceUntil()))
	}
	return e
}

// run is the workflow function's goroutine.
func (e *execution) run(h handler) {
	if !e.loadHistory() {
		return
	}
	main := &branch{e: e, ended: make(chan struct{})}
	e.mu.Lock()
	main.settle()
	e.mu.Unlock()
	var (
		output   *kagziv1.Payload
		err      error
		returned bool
	)
	defer func() {
		if p := recover(); p != nil {
			err = e.panicked(p)
		} else if !returned {
			err = &coded{kind: "goexit", text: "the workflow's code ended its goroutine (runtime.Goexit)"}
		}
		if e.replay != nil {
			e.replay.broke(main, err)
		}
		e.finish(output, err)
	}()
	output, err = h(&workflowContext{e.ctx, main}, e)
	askError(err)
	if e.replay != nil {
		e.replay.ended(main, output, err)
	}
	returned = true
}

// payloadInfo is what a codec is told of a result of a step, or of a signal.
func (e *execution) payloadInfo(kind PayloadKind, step string) PayloadInfo {
	if e.w.options.Codec == nil {
		return PayloadInfo{}
	}
	return PayloadInfo{Kind: kind, Start: e.start(), Step: step}
}

// now is the time by the server's clock, as its claim of the run tells; the way that the task took makes it a
// little late, and so never early. Times that the server has recorded are compared with it.
func (e *execution) now() time.Time { return e.at(time.Now()) }

// at returns a moment of this activation by the server's clock. The time since the claim comes from
// the monotonic clock, because the wall clock may be set meanwhile.
func (e *execution) at(local time.Time) time.Time {
	return e.since.Round(0).Add(e.ahead + local.Sub(e.since))
}

// finish sends the run's end right behind its last results. Of a code that was made to end, nothing counts.
func (e *execution) finish(output *kagziv1.Payload, err error) {
	next := e.continuation(err)
	if err != nil && next == nil {
		e.fail(errorDetail(err))
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.quitted || e.closing {
		return
	}
	e.closing = true
	e.send(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_CompleteWorkflow{
		CompleteWorkflow: &kagziv1.CompleteWorkflowRequest{
			Namespace: e.task.GetNamespace(), RunId: e.info.RunID, LeaseToken: e.task.GetLeaseToken(), Output: output,
			ContinueAs: next,
		}}}, func(r *kagziv1.SessionResponse) {
		e.w.counters.Finished(r.GetCompletedWorkflow().GetStatus(), time.Since(e.since))
		e.over(errFinished)
	})
	e.quit(errFinished)
}

// fail ends the run, or this attempt of it, as failed.
func (e *execution) fail(d *kagziv1.ErrorDetail) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.quitted || e.closing {
		return
	}
	e.closing = true
	e.sendFailure(d)
	e.quit(errFinished)
}

func (e *execution) sendFailure(d *kagziv1.ErrorDetail) {
	traceFailure(e.span, d)
	e.send(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_FailWorkflow{
		FailWorkflow: &kagziv1.FailWorkflowRequest{
			Namespace: e.task.GetNamespace(), RunId: e.info.RunID, LeaseToken: e.task.GetLeaseToken(), Error: d,
		}}}, func(r *kagziv1.SessionResponse) {
		e.w.counters.Finished(r.GetFailedWorkflow().GetStatus(), time.Since(e.since))
		e.over(errFinished)
	})
}

// failAndExit fails the run for good from within one of its calls, which does not return.
func (e *execution) failAndExit(err error) {
	if e.replay != nil {
		e.replay.failed(err)
	}
	e.fail(errorDetail(err))
	runtime.Goexit()
}

// giveBack hands the run back unfinished. Results on their way still count: the server takes a run's
// operations in order.
func (e *execution) giveBack() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended || e.closing {
		e.quit(errReleased)
		return
	}
	e.closing = true
	e.sendRelease(false, errReleased)
	e.quit(errReleased)
}

func (e *execution) sendRelease(park bool, cause error) {
	e.send(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_ReleaseTask{
		ReleaseTask: &kagziv1.ReleaseTaskRequest{
			Namespace: e.task.GetNamespace(), RunId: e.info.RunID, LeaseToken: e.task.GetLeaseToken(), Park: park,
		}}}, func(*kagziv1.SessionResponse) { e.over(cause) })
}

// quit makes the code end: its contexts end, and each call of the SDK ends its goroutine. Needs e.mu.
func (e *execution) quit(cause error) {
	if !e.quitted {
		e.quitted = true
		e.endLife(cause)
	}
}

func (e *execution) dead() bool { return e.life.Err() != nil }

// over ends the activation: the lease is no longer held. Repeating it changes nothing.
func (e *execution) over(cause error) {
	e.mu.Lock()
	again := e.ended
	e.ended = true
	e.outbox.clear()
	e.note.stop()
	e.stopGrace()
	e.quit(cause)
	e.mu.Unlock()
	if !again {
		e.endActivation(cause)
		e.w.forget(e)
	}
}

// lock takes e.mu for a call of the code. If the code has to end, it ends the calling goroutine instead; if
// the lease is being given back, it waits for that first.
func (e *execution) lock() {
	e.mu.Lock()
	if !e.quitted && !e.closing {
		return
	}
	e.mu.Unlock()
	e.exit()
}

// exit ends the calling goroutine, as soon as the code has to end. Nobody's context may seem alive
// by then, or end for want of whoever waited for its end instead of with the cause of that: quit
// has ended all contexts before it gives up e.mu.
func (e *execution) exit() {
	<-e.life.Done()
	e.mu.Lock()
	defer e.mu.Unlock()
	runtime.Goexit()
}

// await waits for an answer. If the code has to end, it ends the calling goroutine instead.
func await[T any](e *execution, answers <-chan T) T {
	select {
	case v := <-answers:
		if e.dead() {
			e.exit()
		}
		return v
	case <-e.life.Done():
		e.exit()
		panic("unreachable")
	}
}

// loadHistory indexes the history, fetching the pages that did not come with the task.
func (e *execution) loadHistory() bool {
	e.names = make(map[string]*nameUse)
	e.history = make(map[string]*kagziv1.Step, len(e.task.GetHistory()))
	add := func(steps []*kagziv1.Step) {
		for _, s := range steps {
			if !e.verdicts.read(s) {
				e.history[s.GetName()] = s
			}
		}
	}
	add(e.task.GetHistory())
	for token, n := e.task.GetNextHistoryToken(), 0; token != ""; {
		page, err := e.w.workers.GetHistory(e.life, &kagziv1.GetHistoryRequest{
			Namespace: e.task.GetNamespace(), RunId: e.info.RunID, Token: token,
		})
		if err == nil {
			add(page.GetHistory())
			token, n = page.GetNextHistoryToken(), 0
			continue
		}
		if e.dead() {
			return false
		}
		if fatalStatus(err) || n == 5 {
			e.w.log.Error("history not loaded; run released", "run", e.info.RunID, "error",
				statusError(status.Convert(err)))
			if transport.Sleep(e.life, transport.Backoff(unreadTries)) { // it may be this worker that gets it next
				e.giveBack()
			}
			return false
		}
		n++
		if !transport.Sleep(e.life, transport.Backoff(n)) {
			return false
		}
	}
	e.task.History = nil
	e.mu.Lock()
	defer e.mu.Unlock()
	e.unread = len(e.history)
	for call := range e.verdicts.calls {
		if e.history[call] == nil { // all that is recorded of it is that it ended: a child whose start was refused
			e.unread++
		}
	}
	early := e.verdicts.after[""]
	if early {
		e.cancelAsked = true
	}
	switch {
	case e.unread == 0, early && !e.recordedBefore(e.verdicts.early):
		e.goLive()
	case early: // that of a branch which had made no call, while others had
		go e.settleLive()
	}
	e.armGrace()
	return true
}

// recordedBefore reports whether a call was recorded before the sequence.
func (e *execution) recordedBefore(sequence int64) bool {
	for _, s := range e.history {
		if s.GetSequence() < sequence {
			return true
		}
	}
	return false
}

// Answered is called by the session with the server's answer to one of the run's operations.
func (e *execution) Answered(op *session.Operation, r *kagziv1.SessionResponse) {
	detail := r.GetError()
	e.mu.Lock()
	if detail != nil && session.Repeatable(detail) {
		e.repeatLater(op)
		e.mu.Unlock()
		return
	}
	if detail != nil && op.Ends(detail) {
		// Until the code is made to end the operation stays among those that are not durable, so
		// that nothing begins behind it.
		known := !op.Ending && slices.Contains(e.ops, op)
		op.Ending = true
		e.mu.Unlock()
		switch {
		case !known:
		case session.LeaseGone(detail):
			e.lose(detail)
		default:
			e.refused(op, detail)
		}
		return
	}
	if !e.outbox.remove(op) {
		e.mu.Unlock()
		return
	}
	e.mu.Unlock()
	switch {
	case detail == nil:
		if op.Answer != nil {
			op.Answer(r)
		}
	case op.Refused != nil:
		e.w.session.Settle(op)
		op.Refused(detail)
	default: // Only an announcement: what the step comes to is still recorded, or refused in its own right.
		e.w.session.Settle(op)
		e.w.log.Debug("step not announced", "run", e.info.RunID, "step", op.Msg.GetBeginStep().GetStepName(), "error",
			detail.GetMessage())
	}
}

// leaving says that the operation which ends the lease is on its way. Its answer says how the lease
// ended, and whether the run's end counted; that the lease is over may be heard sooner, from a
// heartbeat that met its end.
func (e *execution) leaving() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closing
}

// lose drops the run: another worker has it, or it has ended. Nothing that its code does counts any more.
func (e *execution) lose(d *kagziv1.ErrorDetail) {
	status := d.GetMetadata()["status"]
	e.w.log.Info("lease lost", "run", e.info.RunID, "type", e.info.WorkflowType, "reason", d.GetMessage(),
		"status", status)
	cause := errLeaseLost
	if Status(status) == StatusCancelled || e.graceIsOver() {
		cause = ErrCancelled
	}
	e.over(cause)
}

// refailed sends the failure of a run once more, with the server's reason in place of an error that
// it refused for what the error holds: otherwise the run would be handed out and fail again for ever.
func (e *execution) refailed(op *session.Operation, d *kagziv1.ErrorDetail) bool {
	switch d.GetCode() {
	case kagziv1.ErrorCode_ERROR_CODE_INVALID_ARGUMENT, kagziv1.ErrorCode_ERROR_CODE_RESOURCE_EXHAUSTED:
	default:
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended || e.endRefused {
		return e.ended
	}
	e.endRefused = true
	failure := errorDetail(&coded{code: d.GetCode(), kind: "refused",
		text: "the run failed, and the server refused to record its error: " + d.GetMessage()})
	failure.NonRetryable = true
	e.remove(op)
	e.dropAfter(op)
	e.sendFailure(failure)
	return true
}

// refused handles an operation that the server will never take. A run that could not go on without it
// fails, so that people see why; repeating it elsewhere would only meet the same refusal.
func (e *execution) refused(op *session.Operation, d *kagziv1.ErrorDetail) {
	_, fail := op.Msg.Operation.(*kagziv1.SessionRequest_FailWorkflow)
	_, release := op.Msg.Operation.(*kagziv1.SessionRequest_ReleaseTask)
	if fail && e.refailed(op, d) {
		return
	}
	if fail || release {
		e.w.log.Warn("run dropped: the server refused its end", "run", e.info.RunID, "error", d.GetMessage())
		e.over(errLeaseLost)
		return
	}
	failure := errorDetail(&coded{code: d.GetCode(), kind: "refused",
		text: fmt.Sprintf("the server refused to record %s: %s", op.Subject(), d.GetMessage())})
	failure.NonRetryable = true
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return
	}
	e.remove(op)
	e.dropAfter(op) // the server refuses them as well, for they build on this one
	e.closing = true
	e.sendFailure(failure)
	e.quit(errFinished)
}
