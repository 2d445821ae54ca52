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

// WaitSignal returns the next signal of a name, waiting for it for up to limit; 0 is no limit, and
// less than 0 takes only what is there already. Signals are kept from the start of the run on, and
// each is taken once, in the order in which they came. While it waits the run is parked: no worker
// is held, and restarts do not matter.
//
// The wait is a step with the signal's name, under the same rules: the second wait for "approval"
// is the step approval:2, and two branches cannot wait for one name at once. When the limit has
// passed, the error is a *StepError with TIMEOUT as its code, for which errors.Is(err, ErrTimeout)
// holds. When the run is being cancelled errors.Is(err, ErrCancelled) does; a wait that has ended
// so still takes the next signal of its name, so that code which cleans up has to wait for another
// name. A signal that cannot be read as a T is taken, and is a *StepError with INVALID_ARGUMENT.
//
// Beside a sibling that is at work, a signal that was not there at first is noticed within 10 s.
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
	case errors.As(err, &misfit): // whoever sent it is to blame, and not the code
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

// SignalOptions say how a signal is delivered. Every zero field means the default in brackets.
type SignalOptions struct {
	// ID names this one delivery: a run takes each id once (a fresh UUIDv7, which makes the SDK's
	// own repetitions safe).
	ID string
}

// Signal delivers v to a run, for WaitSignal under the same name. When it returns, the signal is on
// the server's disk, and is kept until the run takes it: signals of one name are taken in the order
// in which they came. Where the run continued as new, the signal goes to the run that goes on for
// it, like those that it had not taken. A run that has ended otherwise takes none:
// PRECONDITION_FAILED.
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
		if next == "" || followed[next] { // a server that answers in circles is not followed
			return err
		}
		run = run.c.Run(next)
	}
}

// signalRun delivers v to this run and no other. Each run has payloads of its own, which a codec may bind to it.
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
	// askFirst and askMost are how long a run that siblings keep on the worker waits before it asks
	// for a signal or a child again: the server tells of them only to those who ask, and to a run
	// that it hands out.
	askFirst = time.Second
	askMost  = 10 * time.Second
)

// serverWait is a call that only the server can end, since only it knows whether a signal came or a
// child ended. It is asked when the call begins, unless that is known, from time to time while
// siblings are at work, and once more when the run is parked.
type serverWait struct {
	question func(hold bool) *kagziv1.SessionRequest
	// takes the answer; false: there is nothing to go on with yet. Needs e.mu.
	answered func(*kagziv1.SessionResponse) bool
	due      time.Time       // when the server ends the wait by itself; zero for never
	known    time.Time       // when there was nothing yet, by our clock; zero when nobody has asked
	children []*startedChild // of a wait for these
	asked    bool            // under this lease: guarded by e.mu
	settled  bool            // its answer came while it was parked: guarded by e.mu
}

// over says that what ends the wait is known here: the server tells it once, to one of those who ask. Needs e.mu.
func (w *serverWait) over() bool {
	return w.settled || len(w.children) > 0 &&
		!slices.ContainsFunc(w.children, func(c *startedChild) bool { return c.step == nil })
}

// await returns true when the wait has its answer and false when the run is being cancelled. If it
// is parked meanwhile, it does not return.
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
			// as a rule the server is with us in a moment, but its clock may have been set back by
			// far, and each question is a write there
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

// ask asks the server if that is worth while, and reports whether the wait has its answer. When
// nothing else of the run goes on, the question parks it.
func (b *branch) ask(w *serverWait, own bool) bool {
	e := b.e
	e.lock()
	hold := !b.alone(own)
	overdue := !w.due.IsZero() && !e.now().Before(w.due) // then the server says so, and there is no reason to be late
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
