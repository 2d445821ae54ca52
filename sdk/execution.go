package kagzi

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
	"github.com/kagzi/kagzi/sdk/internal/transport"
)

// Why an execution's code has to end. They are causes of its contexts and never reach users'
// errors.
var (
	errSuspended = errors.New("kagzi: run suspended")
	errFinished  = errors.New("kagzi: run finished")
	errReleased  = errors.New("kagzi: run released")
	errPaused    = errors.New("kagzi: run paused")
	errLeaseLost = errors.New("kagzi: lease lost")
)

// execution is one activation of a run on this worker, from its task to the end of the lease.
//
// Its code lives until quit, and the lease is held until over. Between the two, the answers to the
// remaining operations decide how the activation ends.
type execution struct {
	w           *Worker
	task        *kagziv1.Task // of the first stay: what later ones have in common
	info        RunInfo       // likewise
	stay        atomic.Pointer[stay]
	stepTimeout time.Duration
	// heartbeatTimeout is how long the server keeps the run for this worker without contact, if
	// longer than the worker's lease.
	heartbeatTimeout time.Duration
	start            func() string // PayloadInfo.Start
	span             trace.Span    // span of the activation

	life    context.Context // ends when the code has to; parent of all other contexts
	endLife context.CancelCauseFunc
	cancellation
	pause

	mu      sync.Mutex
	quitted bool // the code has to end
	// endRefused says that the server refused the run's failure for its content; it was sent once more.
	endRefused bool
	closing    bool // the operation that releases the lease or ends the run is sent
	ended      bool // the lease is over

	away  bool          // the run is parked, and its code is kept in memory (cache.go)
	back  chan struct{} // closed when the run comes back or its code has to end; nil if nobody waits
	clean bool          // all operations were accepted
	whole bool          // the task has only a part of the history: read all of it
	// Guarded by Worker.mu: the task of the next stay, which came before the answer that ends this one;
	// and whether the slot of this stay was given back already.
	next    nextStay
	counted bool
	size    int64 // bytes of payloads that the code may hold

	outbox
	handing
	history      map[string]*kagziv1.Step
	verdicts     verdicts
	verdictCount int
	misfit       *kagziv1.Call // the call whose name is recorded for another kind of call
	names        map[string]*nameUse
	kids         map[string]*startedChild // the child runs that the code knows, by step

	replay *replay // set while the code is only compared with a record
	note   note
	watch  watch

	busy       int // branches that can continue by themselves
	generation int // counts the changes of busy, and the calls
	parked     map[*parkedCall]struct{}
	outsiders  int  // plain goroutines that wait for a branch
	parkings   int  // counter that numbers the parked calls
	questions  int  // questions that must be answered before the run is parked
	continued  bool // ContinueAsNew was called
}

func newExecution(w *Worker, task *kagziv1.Task) *execution {
	e := &execution{w: w, task: task, info: newRunInfo(w, task), stepTimeout: defaultStepTimeout, clean: true,
		size: int64(len(task.GetInput().GetData())), kids: make(map[string]*startedChild),
		parked: make(map[*parkedCall]struct{}),
		handing: handing{open: make(map[*call]bool), uncalled: make(map[string]bool),
			unreceived: make(map[string]bool)}}
	if ms := task.GetTimeouts().GetStartToCloseTimeoutMs(); ms > 0 {
		e.stepTimeout = time.Duration(ms) * time.Millisecond
	}
	e.heartbeatTimeout = time.Duration(task.GetTimeouts().GetHeartbeatTimeoutMs()) * time.Millisecond
	e.stay.Store(e.newStay(task))
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

// run is the goroutine of the workflow function.
func (e *execution) run(h handler) {
	if !e.loadHistory() {
		return
	}
	main := &branch{e: e, ownResult: true, outside: outside{goroutine: goroutineID()}}
	e.mu.Lock()
	e.watch.branches = map[*branch]struct{}{main: {}}
	e.watchOutside()
	main.replayed = len(e.uncalled) > 0
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
		main.writeRest()
		e.finish(output, err)
	}()
	output, err = e.w.withInterceptors(h)(&workflowContext{e.ctx, main}, e)
	askError(err)
	if e.replay != nil {
		e.replay.ended(main, output, err)
	}
	returned = true
}

// payloadInfo returns what a codec is told about a step result or a signal.
func (e *execution) payloadInfo(kind PayloadKind, step string) PayloadInfo {
	if e.w.options.Codec == nil {
		return PayloadInfo{}
	}
	return PayloadInfo{Kind: kind, Start: e.start(), Step: step}
}

// now returns the time by the server's clock, for comparison with recorded times. It is derived
// from the time of the claim, so it lags by the delivery of the task and is never early.
func (e *execution) now() time.Time { return e.at(time.Now()) }

// at converts a local time of this activation to the server's clock. The monotonic clock counts the
// time since the claim, because the wall clock may be set meanwhile.
func (e *execution) at(local time.Time) time.Time {
	s := e.stay.Load()
	return s.since.Round(0).Add(s.ahead + local.Sub(s.since))
}

// since returns when the task of this stay came.
func (e *execution) since() time.Time { return e.stay.Load().since }

// finish sends the end of the run right after its last results. The result of code that was made to
// end is dropped.
func (e *execution) finish(output *kagziv1.Payload, err error) {
	next := e.continuation(err)
	unreached := e.unreached()
	if err != nil && next == nil {
		e.failUnreached(errorDetail(err), unreached)
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
			Namespace: e.task.GetNamespace(), RunId: e.info.RunID, LeaseToken: e.token(), Output: output,
			ContinueAs: next, Unreached: unreached, Unreceived: e.unreceivedSignals(),
		}}}, func(r *kagziv1.SessionResponse) {
		e.w.counters.Finished(r.GetCompletedWorkflow().GetStatus(), time.Since(e.since()))
		e.over(errFinished)
	})
	e.quit(errFinished)
}

// fail records that the run, or this attempt of it, failed.
func (e *execution) fail(d *kagziv1.ErrorDetail) { e.failUnreached(d, nil) }

// failUnreached is fail for code that has ended without recorded calls that it owes.
func (e *execution) failUnreached(d *kagziv1.ErrorDetail, unreached []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.quitted || e.closing {
		return
	}
	e.closing = true
	e.sendFailure(d, unreached...)
	e.quit(errFinished)
}

func (e *execution) sendFailure(d *kagziv1.ErrorDetail, unreached ...string) {
	traceFailure(e.span, d)
	e.send(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_FailWorkflow{
		FailWorkflow: &kagziv1.FailWorkflowRequest{
			Namespace: e.task.GetNamespace(), RunId: e.info.RunID, LeaseToken: e.token(), Error: d,
			Unreached: unreached, Unreceived: e.unreceivedSignals(),
		}}}, func(r *kagziv1.SessionResponse) {
		e.w.counters.Finished(r.GetFailedWorkflow().GetStatus(), time.Since(e.since()))
		e.logFailedRun(d, r.GetFailedWorkflow())
		e.over(errFinished)
	})
}

// failAndExit fails the run for good from inside a call of its code, and does not return.
func (e *execution) failAndExit(err error) {
	if e.replay != nil {
		e.replay.failed(err)
	}
	e.fail(errorDetail(err))
	runtime.Goexit()
}

// giveBack releases the run unfinished. Results in flight still count, because the server applies a
// run's operations in order.
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

// sendRelease gives the run back. cause is errSuspended if it is parked.
func (e *execution) sendRelease(park bool, cause error) {
	e.send(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_ReleaseTask{
		ReleaseTask: &kagziv1.ReleaseTaskRequest{
			Namespace: e.task.GetNamespace(), RunId: e.info.RunID, LeaseToken: e.token(), Park: park,
		}}}, func(*kagziv1.SessionResponse) {
		if park {
			e.suspend()
			return
		}
		e.over(cause)
	})
}

// quit makes the code end: its contexts end, and every call of the SDK ends its goroutine. Needs
// e.mu.
func (e *execution) quit(cause error) {
	if !e.quitted {
		e.quitted = true
		e.endLife(cause)
	}
}

func (e *execution) dead() bool { return e.life.Err() != nil }

// over ends the activation: the lease is no longer held. Further calls have no effect.
func (e *execution) over(cause error) {
	e.mu.Lock()
	again := e.ended
	e.ended = true
	e.outbox.clear()
	e.note.stop()
	e.stopWatch()
	e.stopStall()
	e.stopGrace()
	e.quit(cause)
	e.mu.Unlock()
	if !again && !e.away {
		e.endActivation(cause)
		e.w.forget(e)
	}
}

// lock takes e.mu for a call of the code, which needs the lease. If the code has to end, it ends the
// calling goroutine. While the lease is being released, and while the run is parked, it waits; then it
// returns true.
func (e *execution) lock() (waited bool) {
	e.mu.Lock()
	for e.closing && !e.quitted {
		waited = true
		if e.back == nil {
			e.back = make(chan struct{})
		}
		back := e.back
		e.mu.Unlock()
		select {
		case <-back:
		case <-e.life.Done():
		}
		e.mu.Lock()
	}
	if e.quitted {
		e.mu.Unlock()
		e.exit()
	}
	return waited
}

// exit ends the calling goroutine once the code has to end. It waits for life first and takes e.mu:
// by then quit has ended all contexts, so deferred functions see them ended, with the right cause.
func (e *execution) exit() {
	<-e.life.Done()
	e.mu.Lock()
	defer e.mu.Unlock()
	runtime.Goexit()
}

// await waits for an answer. If the code has to end, it ends the calling goroutine.
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

// loadHistory indexes the history and fetches the pages that did not come with the task.
func (e *execution) loadHistory() bool {
	e.names = make(map[string]*nameUse)
	e.history = make(map[string]*kagziv1.Step, len(e.task.GetHistory()))
	add := func(steps []*kagziv1.Step) {
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, s := range steps {
			e.remember(s)
		}
	}
	token, more := e.task.GetNextHistoryToken(), e.task.GetNextHistoryToken() != ""
	if e.whole {
		token, more = "", true
	} else {
		add(e.task.GetHistory())
	}
	for n := 0; more; {
		page, err := e.w.workers.GetHistory(e.life, &kagziv1.GetHistoryRequest{
			Namespace: e.task.GetNamespace(), RunId: e.info.RunID, Token: token,
		})
		if err == nil {
			add(page.GetHistory())
			token, n = page.GetNextHistoryToken(), 0
			more = token != ""
			continue
		}
		if e.dead() {
			return false
		}
		if fatalStatus(err) || n == 5 {
			e.w.log.Error("cannot load the history of a run; releasing it", "run", e.info.RunID, "error",
				statusError(status.Convert(err)))
			if transport.Sleep(e.life, transport.Backoff(unreadTries)) { // this worker may claim it again
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
	e.graceCounts = true
	e.tryCancel()
	e.armGrace()
	return true
}

// remember takes a step of the history. Needs e.mu.
func (e *execution) remember(s *kagziv1.Step) {
	e.recorded = max(e.recorded, s.GetSettled())
	if e.readVerdict(s) || e.readCancel(s) {
		return
	}
	name := s.GetName()
	s = untold(s)
	e.history[name] = s
	e.size += int64(len(s.GetOutput().GetData()))
	own := isOwn(name)
	switch {
	case own && !e.patches(s):
		return
	case own:
		e.ownLeft++
	case s.GetKind() == kagziv1.StepKind_STEP_KIND_SIGNAL && s.GetSettled() > 0 && s.GetOverriddenBy() == "" &&
		s.GetStatus() == kagziv1.StepStatus_STEP_STATUS_COMPLETED && !s.GetSignalTimedOut():
		e.unreceived[name] = true
	}
	owed := e.owes(s)
	e.uncalled[name] = owed
	if owed {
		e.owing++
	}
}

// untold returns a step as the code knows it, if no worker has been told its result yet.
func untold(s *kagziv1.Step) *kagziv1.Step {
	if s.GetSettled() >= 0 {
		return s
	}
	s = proto.CloneOf(s)
	s.Status, s.Output, s.Error, s.Settled = kagziv1.StepStatus_STEP_STATUS_RUNNING, nil, nil, 0
	return s
}

// ordered reports whether the run's record has the order of results, and says what the code owes.
func (e *execution) ordered() bool {
	if e.replay != nil {
		return e.replay.ordered
	}
	return e.w.keepsOrder()
}

// owes reports whether the code has to make a recorded call. It need not if the record was made
// before the run was retried, imported or overridden, or by a server that keeps no order.
func (e *execution) owes(s *kagziv1.Step) bool {
	if e.replay != nil {
		return e.replay.owes(s)
	}
	return e.w.keepsOrder() && s.GetBegunIn() >= e.task.GetOwedFrom()
}

// patches reports whether an own record is an answer of Patched that the code owes: one of true.
func (e *execution) patches(s *kagziv1.Step) bool {
	if !isPatch(s.GetName(), e.w.options.RemovedPatches) {
		return false
	}
	yes, err := decode[bool](e.w.options.Codec, s.GetOutput(), e.payloadInfo(PayloadStep, s.GetName()))
	return err == nil && *yes
}
