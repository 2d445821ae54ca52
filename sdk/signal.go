package kagzi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
	"github.com/kagzi/kagzi/sdk/internal/session"
	"google.golang.org/protobuf/types/known/durationpb"
)

// WaitSignal waits for the next signal of a name and returns its value. A limit of 0 waits for
// ever; a negative limit only takes a signal that has already arrived. Signals are stored from the
// start of the run, and each is received once, in order of arrival. While the run waits it is
// parked.
//
// A wait is a step with the signal's name: the second wait for "approval" is the step approval:2,
// and two branches cannot wait for the same name at the same time. Errors:
//
//   - After the limit, a *StepError with the code TIMEOUT; errors.Is(err, ErrTimeout) is true.
//   - For a value that does not decode as T, a *StepError with INVALID_ARGUMENT. The signal is
//     consumed.
//   - During a cancellation, errors.Is(err, ErrCancelled) is true.
//
// A signal counts as received only when WaitSignal has returned it. If the run ends or continues as
// new before that, the signal goes back to the queue.
func WaitSignal[T any](ctx Context, name string, limit time.Duration) (T, error) {
	b := ctx.workflow()
	p, step, err := b.awaitSignal(ctx.scope(), name, limit)
	if err != nil {
		var none T
		return none, err
	}
	info := b.e.payloadInfo(PayloadSignal, name)
	if b.e.overridden(step) {
		info = b.e.payloadInfo(PayloadStep, step)
	}
	own := info
	if info.Kind == PayloadSignal && info.Start != "" {
		info.Start = startOfSignals(own.Start, b.e.task.GetInput())
	}
	v, err := decode[T](b.e.w.options.Codec, p, info)
	var misfit nonRetryable
	if info != own && errors.As(err, &misfit) {
		if ours, mistake := decode[T](b.e.w.options.Codec, p, own); mistake == nil {
			v, err = ours, nil
		}
	}
	switch {
	case errors.As(err, &misfit): // the sender's fault, not the code's
		var none T
		return none, &StepError{Step: step, Code: CodeInvalidArgument, Message: fmt.Sprintf("signal %s: %v", name, err),
			NonRetryable: true}
	case err != nil:
		b.e.failAndExit(unreadableResult(step, err))
	}
	return *v, nil
}

func (b *branch) awaitSignal(scope context.Context, signal string, limit time.Duration) (*kagziv1.Payload,
	string, error) {
	e := b.e
	c := b.call(scope, signal, kagziv1.StepKind_STEP_KIND_SIGNAL, signal)
	defer b.release(c.name)
	var got *kagziv1.AwaitSignalResponse
	if !c.isOver() && !c.halted() {
		w := &serverWait{
			question: func(hold bool) *kagziv1.SessionRequest { return awaitSignal(c, signal, limit, hold) },
			answered: func(r *kagziv1.SessionResponse, op *session.Operation) bool {
				answer := r.GetAwaitedSignal()
				if answer.GetPayload() == nil && !answer.GetTimedOut() {
					return false
				}
				if answer.GetPayload() != nil && e.w.keepsOrder() {
					e.unreceived[c.name] = true
				}
				if c.state == callActive {
					got = answer
					e.report(c, op)
				}
				return true
			},
			due: convert.When(c.record.GetWakeUpAt()),
		}
		switch {
		case c.record != nil:
			w.known = e.since()
		case limit != 0:
			w.due = e.now().Add(max(limit, 0))
		}
		c.await(w)
	}
	switch c.result() {
	case outcomeCancelled:
		return nil, c.name, cancelledError(c.name, nil, 0)
	case outcomeReported:
		if got.GetTimedOut() {
			return nil, c.name, signalTimeout(c.name, signal, limit)
		}
		return got.GetPayload(), c.name, nil
	}
	switch {
	case c.record.GetStatus() == kagziv1.StepStatus_STEP_STATUS_FAILED:
		return nil, c.name, newStepError(c.name, c.record.GetError(), int(c.record.GetAttemptNumber()))
	case c.record.GetSignalTimedOut():
		return nil, c.name, signalTimeout(c.name, signal, limit)
	}
	return c.record.GetOutput(), c.name, nil
}

func signalTimeout(step, signal string, limit time.Duration) *StepError {
	return &StepError{Step: step, Code: CodeTimeout,
		Message: fmt.Sprintf("no signal %s within %v", signal, max(limit, 0)), NonRetryable: true}
}

func awaitSignal(c *call, signal string, limit time.Duration, hold bool) *kagziv1.SessionRequest {
	e := c.b.e
	r := &kagziv1.AwaitSignalRequest{
		Namespace: e.task.GetNamespace(), RunId: e.info.RunID, LeaseToken: e.token(), StepName: c.name,
		SignalName: signal, Hold: hold, Branch: c.b.path(),
	}
	if limit != 0 {
		r.Timeout = durationpb.New(max(limit, time.Millisecond))
	}
	return &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_AwaitSignal{AwaitSignal: r}}
}

// SignalOptions configures Signal. A field that is zero has the default in brackets.
type SignalOptions struct {
	// ID identifies the delivery: a run receives each id once (a new UUIDv7, so the SDK can safely
	// repeat its own calls).
	ID string
}

// Signal sends v to a run, for WaitSignal with the same name. When it returns, the signal is on the
// server's disk, and stays until the run receives it. Signals of one name are received in order of
// arrival. If the run continued as new, the signal goes to the run that it continued as. For any
// other ended run the error is PRECONDITION_FAILED.
func Signal[T any](ctx context.Context, run *Run, name string, v T, opts SignalOptions) error {
	id, err := requestID(opts.ID)
	if err != nil {
		return err
	}
	return run.follow(func(run *Run) error { return signalRun(ctx, run, name, v, id) })
}

// follow calls do with the run and, as long as it says that the run continued as new, with the run that
// it continued as.
func (r *Run) follow(do func(*Run) error) error {
	run := r
	for followed := map[string]bool{run.id: true}; ; followed[run.id] = true {
		var ended *Error
		err := do(run)
		if !errors.As(err, &ended) || ended.Code != CodePreconditionFailed {
			return err
		}
		next := ended.Metadata["continued_as_run_id"]
		if next == "" || followed[next] { // stop if the server's answers form a loop
			return err
		}
		run = run.c.Run(next)
	}
}

// signalRun sends v to exactly this run. A codec may bind payloads to the run.
func signalRun(ctx context.Context, run *Run, name string, v any, id string) error {
	c := run.c
	info, err := run.payloadInfo(ctx, PayloadSignal, name)
	if err != nil {
		return err
	}
	payload, err := encode(c.options.Codec, v, info)
	if err != nil {
		return fmt.Errorf("kagzi: value of signal %q: %w", name, err)
	}
	warnLarge(c.options.Logger, "signal", payload, "signal", name)
	_, err = c.workflows.SignalWorkflow(ctx, &kagziv1.SignalWorkflowRequest{
		Namespace: c.options.Namespace, RunId: run.id, Name: name, Payload: payload, SignalId: id,
	})
	return callError(ctx, err)
}

const (
	// askFirst and askMost are the first and the longest pause before a run that other branches
	// keep on the worker asks again about a signal or child. The server tells the holder of a run when
	// there is something new, but that is only a hint, and older servers do not.
	askFirst = time.Second
	askMost  = 10 * time.Second
)

// serverWait is a wait that only the server can end: for a signal or children. The SDK asks when
// the call begins unless the answer is known, when the server says that something has happened,
// after a while, and once more when the run is parked.
type serverWait struct {
	question func(hold bool) *kagziv1.SessionRequest
	// takes the answer and reports the result of the call, or returns false; needs e.mu
	answered func(*kagziv1.SessionResponse, *session.Operation) bool
	due      time.Time       // when the server itself ends the wait; zero for never
	known    time.Time       // local time of the last answer without a result; zero before the first
	children []*startedChild // children to wait for, if any
	asked    bool            // asked under this lease; guarded by e.mu
	hinted   bool            // something has happened since the last question; guarded by e.mu
}

// await returns when the call has its result, or the cancellation of the run has ended it. If the
// run is parked meanwhile, it does not return.
func (c *call) await(w *serverWait) {
	e := c.b.e
	e.lock()
	c.server = w
	e.mu.Unlock()
	late := parkSettle
	for interval := askFirst; !c.ask(w); interval = min(2*interval, askMost) {
		pause := interval
		switch left := w.due.Sub(e.now()); {
		case w.due.IsZero():
		case left > parkSettle:
			pause = min(pause, left)
		default:
			// The server usually reports the timeout soon, but its clock may have been set far
			// back, and each question is a write there.
			pause, late = late, min(2*late, askMost)
		}
		c.park(&parkedCall{due: onServer(w.due), wait: w}, pause)
	}
}

// ask asks the server if needed, and reports whether the call has its result. If nothing else of
// the run is active, the question parks it.
func (c *call) ask(w *serverWait) bool {
	e := c.b.e
	e.lock()
	if c.state != callActive {
		e.mu.Unlock()
		return true
	}
	hold := !c.b.alone()
	overdue := !w.due.IsZero() && !e.now().Before(w.due) // the server is about to answer
	if hold && !overdue && !w.hinted && time.Since(w.known) < askFirst {
		e.mu.Unlock()
		return false
	}
	w.hinted = false
	answers := make(chan bool, 1)
	op := e.send(w.question(hold), nil)
	op.Answer = func(r *kagziv1.SessionResponse) {
		e.mu.Lock()
		got := w.answered(r, op)
		w.known = time.Now()
		w.asked = w.asked || !got
		e.moved()
		e.mu.Unlock()
		if !got && !hold {
			e.suspend()
		}
		answers <- got
	}
	e.mu.Unlock()
	return await(e, answers)
}

// waitIsOver takes the server's hint that a wait for this step may be over.
func (e *execution) waitIsOver(step string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for c := range e.open {
		w := c.server
		if w == nil || c.name != step &&
			!slices.ContainsFunc(w.children, func(child *startedChild) bool { return child.name == step }) {
			continue
		}
		w.hinted = true
		if c.parked != nil {
			c.parked.wake()
		}
	}
}
