package kagzi

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
	"github.com/kagzi/kagzi/sdk/internal/seam"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const (
	// defaultStepTimeout applies when neither the step nor the run sets a timeout.
	defaultStepTimeout = 600 * time.Second
	// timeoutMargin is added to the server's timeout for a step, so that the worker's comes first:
	// that one does not cost the run its lease.
	timeoutMargin = 2 * time.Second
	// announceAfter is how long a step runs before the server is told. Shorter steps are one
	// durable write, their result.
	announceAfter = 250 * time.Millisecond
)

// StepOption changes how a step runs: Retry or Timeout.
type StepOption interface{ applyStep(*stepOptions) }

type stepOptions struct {
	retry   *kagziv1.RetryPolicy
	timeout time.Duration
	wrong   error // error of an invalid option
}

type timeoutOption time.Duration

func (t timeoutOption) applyStep(o *stepOptions) {
	if o.timeout = time.Duration(t); t < 0 {
		o.wrong = fmt.Errorf("option Timeout is %v, want more than 0", o.timeout)
	}
}

// Timeout limits one attempt of a step (the run's StepTimeout, else 600 s). When it passes, the
// step's context ends and the attempt counts as failed, even if the code does not watch the
// context. Such code keeps running beside the next attempt; the worker logs a warning after ten
// seconds.
//
// A result that the code returns without an error right when the time is up may still count. Code
// that was interrupted should therefore return an error, such as context.Cause(ctx).
func Timeout(d time.Duration) StepOption { return timeoutOption(d) }

// Step runs fn and records its result. In a replay it returns the recorded result without running
// fn. Do is for code without a result. fn runs again when it failed and the Retry allows another
// attempt, and when its result could not be recorded because the worker died or the lease was lost.
// Pass IdempotencyKey to external systems to make that safe.
//
// The name identifies the step in the run: 1 to 255 characters of A-Z a-z 0-9 . _ : / -
// (kagzi:ended is reserved). A name that is used again later becomes name:2, name:3 and so on; used
// by two branches or goroutines at the same time it fails the run.
//
// The result is encoded as JSON and decoded again even when fn has just run, so fields that JSON
// does not carry are lost. The run is parked until a retry is due. The error, if any, is a
// *StepError: the step failed for good.
//
// fn must use its own ctx. It must not call functions that take a Context: a step, wait or branch
// inside a step fails the run. Its ctx ends with the step's timeout, with the run's lease, and,
// with the cause ErrCancelled, when the run is being cancelled. A step that fails after its ctx was
// cancelled is not retried and has the code CANCELLED. A step that has not started yet does not
// start, and is not recorded as failed. In both cases errors.Is(err, ErrCancelled) is true.
func Step[T any](ctx Context, name string, fn func(ctx context.Context) (T, error), opts ...StepOption) (T, error) {
	b := ctx.workflow()
	call := newStepCall(name, opts)
	call.run = func(ctx context.Context, step string) (any, *kagziv1.Payload, error) {
		return runTyped(ctx, b.e.w.options.Codec, b.e.payloadInfo(PayloadStep, step), replacedStep(b.e.w, name, fn))
	}
	call.read = func(p *kagziv1.Payload, step string) (any, error) {
		return decode[T](b.e.w.options.Codec, p, b.e.payloadInfo(PayloadStep, step))
	}
	v, err := b.step(ctx.scope(), call)
	if err != nil {
		var zero T
		return zero, err
	}
	return *v.(*T), nil
}

// Do is Step for code that has no result: it records null. Everything else that Step promises holds
// for Do, too. A result that an earlier version of the code recorded under the name is ignored, so a
// call of Step whose result is not needed any more can become a call of Do while runs are open.
func Do(ctx Context, name string, fn func(ctx context.Context) error, opts ...StepOption) error {
	b := ctx.workflow()
	code := func(ctx context.Context) (any, error) { return nil, fn(ctx) }
	call := newStepCall(name, opts)
	call.run = func(ctx context.Context, step string) (any, *kagziv1.Payload, error) {
		code := replacedStep(b.e.w, name, code)
		return runTyped(ctx, b.e.w.options.Codec, b.e.payloadInfo(PayloadStep, step),
			func(ctx context.Context) (any, error) {
				_, err := code(ctx)
				return nil, err
			})
	}
	call.read = func(*kagziv1.Payload, string) (any, error) { return nil, nil }
	_, err := b.step(ctx.scope(), call)
	return err
}

// replacedStep returns the code that a test set for the step, else fn.
func replacedStep[T any](w *Worker, name string, fn func(context.Context) (T, error)) func(context.Context) (T, error) {
	if w.replaced == nil {
		return fn
	}
	if other := w.replaced(name); other != nil {
		return seam.Typed[T](name, other, NonRetryable)
	}
	return fn
}

// runTyped runs the step's code and returns the result as the caller will read it, and as the
// payload to record.
func runTyped[T any](ctx context.Context, c Codec, info PayloadInfo, fn func(context.Context) (T, error)) (any,
	*kagziv1.Payload, error) {
	v, err := fn(ctx)
	if err != nil {
		return nil, nil, err
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, nil, NonRetryable(fmt.Errorf("result: %w", err))
	}
	back := &v
	if !unchangedByJSON(back) {
		if back, err = decodeJSON[T](data); err != nil {
			return nil, nil, fmt.Errorf("result: %w", err)
		}
	}
	p, err := pack(c, data, info)
	if err != nil {
		return nil, nil, fmt.Errorf("result: %w", err)
	}
	return back, p, nil
}

type stepKey struct{}

type stepInfo struct {
	e       *execution
	name    string
	attempt int
}

// IdempotencyKey returns a key for external systems that detect repeated requests: the run's id, a
// slash and the step's name. It is the same for all attempts of the step. A run started by
// Run.Retry has its own id, so steps that it runs again have other keys. Outside a step it returns
// "".
func IdempotencyKey(ctx context.Context) string {
	if s, ok := ctx.Value(stepKey{}).(*stepInfo); ok {
		return s.e.info.RunID + "/" + s.name
	}
	return ""
}

// Attempt returns the number of the current attempt of the step, from 1. It counts all attempts,
// also those that the loss of a worker interrupted, which use up none of Retry.Attempts. Outside a
// step it returns 0.
func Attempt(ctx context.Context) int {
	if s, ok := ctx.Value(stepKey{}).(*stepInfo); ok {
		return s.attempt
	}
	return 0
}

// stepCall is a call of Step or Do without its type parameter.
type stepCall struct {
	stepOptions
	name string
	run  func(ctx context.Context, step string) (any, *kagziv1.Payload, error)
	read func(p *kagziv1.Payload, step string) (any, error)
}

func newStepCall(name string, opts []StepOption) *stepCall {
	call := &stepCall{name: name}
	for _, o := range opts {
		o.applyStep(&call.stepOptions)
	}
	return call
}

// step runs a step within one activation of its run.
func (b *branch) step(scope context.Context, c *stepCall) (any, error) {
	name, recorded := b.claim(scope, c.name, kagziv1.StepKind_STEP_KIND_FUNCTION)
	if v, err, settled := b.recall(c, name, recorded); settled {
		b.release(name)
		return v, err
	}
	if c.wrong != nil {
		b.e.failAndExit(NonRetryable(fmt.Errorf("step %s: %w", name, c.wrong)))
	}
	last, number := pendingError(recorded), int(recorded.GetAttemptNumber())+1
	if b.cancelled(scope) {
		b.release(name)
		return nil, cancelledError(name, last, number-1)
	}
	b.begin()
	if last != nil && !b.parkUntil(scope, convert.When(recorded.RetryAt)) {
		return b.settleStep(name, nil, cancelledError(name, last, number-1))
	}
	for {
		b.e.awaitDurable()
		if b.cancelled(scope) {
			return b.settleStep(name, nil, cancelledError(name, last, number-1))
		}
		result, started := b.attempt(scope, c, name, number)
		if result.err == nil {
			b.e.post(completeStep(b.e, name, result.payload, started))
			return b.settleStep(name, result.value, nil)
		}
		detail := errorDetail(result.err)
		if b.cancelled(scope) {
			asCancelled(detail)
		}
		retryAt := b.failStep(c, name, number, detail, started)
		if retryAt.IsZero() {
			return b.settleStep(name, nil, newStepError(name, detail, number))
		}
		if !b.parkUntil(scope, retryAt) {
			return b.settleStep(name, nil, cancelledError(name, detail, number))
		}
		last = detail
		number++
	}
}

// pendingError returns the failure of a step that waits for its next attempt, else nil.
func pendingError(s *kagziv1.Step) *kagziv1.ErrorDetail {
	if s.GetStatus() != kagziv1.StepStatus_STEP_STATUS_PENDING {
		return nil
	}
	if d := s.GetError(); d != nil {
		return d
	}
	return &kagziv1.ErrorDetail{}
}

func (b *branch) settleStep(name string, v any, err error) (any, error) {
	b.end()
	b.release(name)
	return v, err
}

// recall returns the recorded outcome of a step: a result, or an error if it failed for good.
func (b *branch) recall(c *stepCall, name string, s *kagziv1.Step) (v any, err error, settled bool) {
	switch s.GetStatus() {
	case kagziv1.StepStatus_STEP_STATUS_COMPLETED:
		v, err := c.read(s.GetOutput(), name)
		if err != nil {
			b.e.failAndExit(unreadableResult(name, err))
		}
		return v, nil, true
	case kagziv1.StepStatus_STEP_STATUS_FAILED:
		if s.GetError().GetCode() == kagziv1.ErrorCode_ERROR_CODE_CRASHED {
			return nil, nil, false // interrupted by the loss of a worker: run it again
		}
		if s.GetError().GetCode() == kagziv1.ErrorCode_ERROR_CODE_CANCELLED {
			b.toldOfCancellation(name) // the cancellation took effect here
		}
		return nil, newStepError(name, s.GetError(), int(s.GetAttemptNumber())), true
	}
	return nil, nil, false
}

type stepResult struct {
	value   any
	payload *kagziv1.Payload
	err     error
}

// attempt runs the step's code once, in its own goroutine, and waits for it or its timeout. A
// cancellation ends the code's context but does not cut the wait short.
func (b *branch) attempt(scope context.Context, c *stepCall, name string, number int) (stepResult, time.Time) {
	e := b.e
	timeout := c.timeout
	if timeout <= 0 {
		timeout = e.stepTimeout
	}
	ctx, cancel := context.WithTimeoutCause(scope, timeout, errStepTimeout)
	defer cancel()
	ctx = context.WithValue(ctx, stepKey{}, &stepInfo{e, name, number})

	started := time.Now()
	done := make(chan stepResult, 1)
	e.w.code.Add(1)
	go stepGoroutine(func() { e.w.runStep(ctx, c, name, done) })

	timer, announced := time.NewTimer(min(announceAfter, timeout)), timeout <= announceAfter
	defer timer.Stop()
	for {
		select {
		case r := <-done:
			if e.dead() {
				e.exit()
			}
			if r.err != nil && context.Cause(ctx) == errStepTimeout {
				r.err = timeoutError(name, timeout)
			}
			return r, started
		case <-e.life.Done():
			go e.w.lookAfter(done, e.info.RunID, name, number)
			e.exit()
		case <-timer.C:
			if !announced {
				announced = true
				e.post(beginStep(e, c, name, timeout, started))
				timer.Reset(timeout - announceAfter)
				continue
			}
			<-ctx.Done() // so that the code sees the deadline as the cause
			select {
			case r := <-done:
				if r.err == nil {
					return r, started
				}
			default:
				go e.w.lookAfter(done, e.info.RunID, name, number)
			}
			return stepResult{err: timeoutError(name, timeout)}, started
		}
	}
}

// stepGoroutine is the first function of every goroutine that runs a step's code.
//
//go:noinline
func stepGoroutine(f func()) { f() }

var stepEntry = reflect.ValueOf(stepGoroutine).Pointer()

var errStepTimeout = fmt.Errorf("kagzi: step timed out: %w", context.DeadlineExceeded)

func timeoutError(name string, d time.Duration) error {
	return &coded{code: kagziv1.ErrorCode_ERROR_CODE_TIMEOUT, text: fmt.Sprintf("step %s timed out after %v", name, d)}
}

// hangAfter is how long code may run after its context ended before it is logged.
const hangAfter = 10 * time.Second

// lookAfter waits for step code that nobody waits for any more. Go cannot end a goroutine from
// outside: code that ignores its context keeps running and holding resources, and only this log
// shows it.
func (w *Worker) lookAfter(done <-chan stepResult, run, name string, number int) {
	log := w.log.With("run", run, "step", name, "attempt", number)
	hangs := time.NewTimer(hangAfter)
	defer hangs.Stop()
	select {
	case <-done:
		return
	case <-hangs.C:
		log.Warn("step code still runs after its context ended; it should return when ctx.Done() is closed",
			"for", hangAfter)
	}
	since := time.Now()
	<-done
	log.Info("step code that ran on after its context ended has returned", "after",
		hangAfter+time.Since(since).Round(time.Millisecond))
}

func (w *Worker) runStep(ctx context.Context, c *stepCall, name string, done chan<- stepResult) {
	defer w.code.Done()
	r := stepResult{err: &coded{kind: "goexit", text: "the step's code ended its goroutine (runtime.Goexit)"}}
	ctx, span := w.traceStep(ctx, name)
	defer func() {
		if p := recover(); p != nil {
			r = stepResult{err: w.panicked(p, "step", IdempotencyKey(ctx), "attempt", Attempt(ctx))}
		}
		endStep(ctx, span, r.err)
		done <- r
	}()
	r.value, r.payload, r.err = c.run(ctx, name)
	askError(r.err)
	warnLarge(w.log, "step result", r.payload, "step", name)
}

// failStep records a failed attempt. It returns the time of the next one by the local clock, or
// zero when the step has failed for good.
func (b *branch) failStep(c *stepCall, name string, number int, detail *kagziv1.ErrorDetail,
	started time.Time) time.Time {
	e := b.e
	own := onBranchGoroutine()
	answers := make(chan *kagziv1.FailStepResponse, 1)
	e.lock()
	hold := !b.alone(own)
	e.send(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_FailStep{FailStep: &kagziv1.FailStepRequest{
		Namespace: e.task.GetNamespace(), RunId: e.info.RunID, LeaseToken: e.task.GetLeaseToken(),
		StepName: &name, Error: detail, RetryPolicy: c.retry, StartedAt: timestamppb.New(e.at(started)), Hold: hold,
	}}}, func(r *kagziv1.SessionResponse) {
		e.logFailedStep(name, number, detail, r.GetFailedStep())
		if r.GetFailedStep().GetScheduledRetry() && !hold {
			e.over(errSuspended)
		}
		answers <- r.GetFailedStep()
	})
	e.mu.Unlock()
	r := await(e, answers)
	if !r.GetScheduledRetry() {
		return time.Time{}
	}
	if r.RetryIn != nil {
		return e.now().Add(r.RetryIn.AsDuration())
	}
	return r.GetRetryAt().AsTime() // older servers send no RetryIn
}

func completeStep(e *execution, name string, p *kagziv1.Payload, started time.Time) *kagziv1.SessionRequest {
	return &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_CompleteStep{
		CompleteStep: &kagziv1.CompleteStepRequest{
			Namespace: e.task.GetNamespace(), RunId: e.info.RunID, LeaseToken: e.task.GetLeaseToken(),
			StepName: &name, Output: p, StartedAt: timestamppb.New(e.at(started)),
		}}}
}

func beginStep(e *execution, c *stepCall, name string, timeout time.Duration,
	started time.Time) *kagziv1.SessionRequest {
	return &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_BeginStep{BeginStep: &kagziv1.BeginStepRequest{
		Namespace: e.task.GetNamespace(), RunId: e.info.RunID, LeaseToken: e.task.GetLeaseToken(),
		StepName: name, Kind: kagziv1.StepKind_STEP_KIND_FUNCTION, RetryPolicy: c.retry,
		StartToCloseTimeoutMs: convert.WholeMs(min(timeout, maxDelay-timeoutMargin) + timeoutMargin),
		StartedAt:             timestamppb.New(e.at(started)),
	}}}
}
