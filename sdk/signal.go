package kagzi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
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
//   - During a cancellation, errors.Is(err, ErrCancelled) is true. The interrupted wait still
//     consumes the next signal of its name, so cleanup code must wait for another name.
//
// While another branch is active, a new signal is noticed within 10 s.
func WaitSignal[T any](ctx Context, name string, limit time.Duration) (T, error) {
	b := ctx.workflow()
	p, step, err := b.awaitSignal(ctx.scope(), name, limit)
	if err != nil {
		var none T
		return none, err
	}
	info := b.e.payloadInfo(PayloadSignal, name)
	if b.e.history[step].GetOverriddenBy() != "" {
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
	name, recorded := b.claim(scope, signal, kagziv1.StepKind_STEP_KIND_SIGNAL)
	defer b.release(name)
	switch {
	case b.endedByCancellation(name), recorded == nil && b.cancelled(scope):
		return nil, name, cancelledError(name, nil, 0)
	case recorded.GetStatus() == kagziv1.StepStatus_STEP_STATUS_FAILED:
		return nil, name, newStepError(name, recorded.GetError(), int(recorded.GetAttemptNumber()))
	case recorded.GetSignalTimedOut():
		return nil, name, signalTimeout(name, signal, limit)
	case recorded.GetStatus() == kagziv1.StepStatus_STEP_STATUS_COMPLETED:
		return recorded.GetOutput(), name, nil
	}
	b.begin()
	defer b.end()
	var got *kagziv1.AwaitSignalResponse
	w := &serverWait{
		question: func(hold bool) *kagziv1.SessionRequest { return awaitSignal(e, name, signal, limit, hold) },
		answered: func(r *kagziv1.SessionResponse) bool {
			got = r.GetAwaitedSignal()
			return got.GetPayload() != nil || got.GetTimedOut()
		},
		due: convert.When(recorded.GetWakeUpAt()),
	}
	switch {
	case recorded != nil:
		w.known = e.since
	case limit != 0:
		w.due = e.now().Add(max(limit, 0))
	}
	switch {
	case !b.await(scope, w):
		e.endByCancellation(name)
		return nil, name, cancelledError(name, nil, 0)
	case got.GetTimedOut():
		return nil, name, signalTimeout(name, signal, limit)
	}
	return got.GetPayload(), name, nil
}

func signalTimeout(step, signal string, limit time.Duration) *StepError {
	return &StepError{Step: step, Code: CodeTimeout,
		Message: fmt.Sprintf("no signal %s within %v", signal, max(limit, 0)), NonRetryable: true}
}

func awaitSignal(e *execution, step, signal string, limit time.Duration, hold bool) *kagziv1.SessionRequest {
	r := &kagziv1.AwaitSignalRequest{
		Namespace: e.task.GetNamespace(), RunId: e.info.RunID, LeaseToken: e.task.GetLeaseToken(), StepName: step,
		SignalName: signal, Hold: hold,
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
	for followed := map[string]bool{run.id: true}; ; followed[run.id] = true {
		var ended *Error
		err := signalRun(ctx, run, name, v, id)
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
	// keep on the worker asks again about a signal or child. The server does not push these to a
	// run that is held.
	askFirst = time.Second
	askMost  = 10 * time.Second
)

// serverWait is a wait that only the server can end: for a signal or children. The SDK asks when
// the call begins unless the answer is known, then repeatedly while other branches are active, and
// once more when the run is parked.
type serverWait struct {
	question func(hold bool) *kagziv1.SessionRequest
	// takes the answer and returns false if it does not end the wait; needs e.mu
	answered func(*kagziv1.SessionResponse) bool
	due      time.Time       // when the server itself ends the wait; zero for never
	known    time.Time       // local time of the last answer without a result; zero before the first
	children []*startedChild // children to wait for, if any
	asked    bool            // asked under this lease; guarded by e.mu
	settled  bool            // answered while parked; guarded by e.mu
}

// over reports whether the end of the wait is known locally. The server reports it only once, to
// one of the calls that ask. Needs e.mu.
func (w *serverWait) over() bool {
	return w.settled || len(w.children) > 0 &&
		!slices.ContainsFunc(w.children, func(c *startedChild) bool { return c.step == nil })
}

// await returns true when the wait has its answer and false when the run is being cancelled. If the
// run is parked meanwhile, it does not return.
func (b *branch) await(scope context.Context, w *serverWait) bool {
	own := onBranchGoroutine()
	late := parkSettle
	for interval := askFirst; ; interval = min(2*interval, askMost) {
		if b.cancelled(scope) {
			return false
		}
		if b.ask(w, own) {
			return true
		}
		pause := interval
		switch left := w.due.Sub(b.e.now()); {
		case w.due.IsZero():
		case left > parkSettle:
			pause = min(pause, left)
		default:
			// The server usually reports the timeout soon, but its clock may have been set far
			// back, and each question is a write there.
			pause, late = late, min(2*late, askMost)
		}
		if !b.park(scope, &parkedCall{due: w.due, wait: w}, pause) {
			return false
		}
		if b.e.known(w) {
			return true
		}
	}
}

func (e *execution) known(w *serverWait) bool {
	e.lock()
	defer e.mu.Unlock()
	return w.over()
}

// ask asks the server if needed, and reports whether the wait has its answer. If nothing else of
// the run is active, the question parks it.
func (b *branch) ask(w *serverWait, own bool) bool {
	e := b.e
	e.lock()
	hold := !b.alone(own)
	overdue := !w.due.IsZero() && !e.now().Before(w.due) // the server is about to answer
	if hold && !overdue && time.Since(w.known) < askFirst {
		e.mu.Unlock()
		return false
	}
	answers := make(chan bool, 1)
	e.send(w.question(hold), func(r *kagziv1.SessionResponse) {
		e.mu.Lock()
		got := w.answered(r)
		e.mu.Unlock()
		if !got && !hold {
			e.over(errSuspended)
		}
		answers <- got
	})
	e.mu.Unlock()
	if await(e, answers) {
		return true
	}
	e.lock()
	w.asked, w.known = true, time.Now()
	e.mu.Unlock()
	return false
}
