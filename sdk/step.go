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

	announcement *announcement
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
func (b *branch) step(scope context.Context, sc *stepCall) (any, error) {
	c := b.call(scope, sc.name, kagziv1.StepKind_STEP_KIND_FUNCTION, "")
	defer b.release(c.name)
	if sc.wrong != nil && (c.record == nil || !c.isOver()) {
		b.e.failAndExit(NonRetryable(fmt.Errorf("step %s: %w", c.name, sc.wrong)))
	}
	last, number := pendingError(c.record), int(c.record.GetAttemptNumber())+1
	var value any
	if !c.isOver() && !c.halted() {
		value, last, number = c.run(scope, sc, last, number)
	}
	switch c.result() {
	case outcomeCancelled:
		return nil, cancelledError(c.name, last, number-1)
	case outcomeRecorded:
		return sc.recall(b.e, c)
	}
	switch {
	case c.failure != nil:
		return nil, newStepError(c.name, c.failure, number)
	case last != nil:
		return nil, newStepError(c.name, last, number)
	}
	return value, nil
}

// run runs the step's code until it has a result or the cancellation ends the call. It returns the
// value, or the last failure and the number of that attempt.
func (c *call) run(scope context.Context, sc *stepCall, last *kagziv1.ErrorDetail,
	number int) (any, *kagziv1.ErrorDetail, int) {
	e := c.b.e
	if last != nil && !c.parkUntil(onServer(convert.When(c.record.RetryAt))) {
		return nil, last, number
	}
	for c.mayRun() {
		result, started := c.attempt(scope, sc, number)
		if result.err == nil {
			c.complete(result.payload, started)
			return result.value, nil, number
		}
		detail := errorDetail(result.err)
		if e.cancelIsDue(scope) {
			asCancelled(detail)
		}
		last = detail
		retryAt := c.fail(sc, number, detail, started)
		if retryAt.isZero() {
			return nil, detail, number
		}
		number++
		if !c.parkUntil(retryAt) {
			break
		}
	}
	return nil, last, number
}

// mayRun waits until the step's code may run: all earlier results are durable, the run is not to be
// paused, and a cancellation that is being recorded has taken effect. It returns false if the call has
// been ended.
func (c *call) mayRun() bool {
	e := c.b.e
	for {
		e.awaitDurable()
		e.lock()
		if !e.cancelling || e.cancelled {
			break
		}
		e.codeEnded()
		e.mu.Unlock()
		select {
		case <-e.ctx.Done(): // it takes effect
		case <-e.life.Done():
			e.exit()
		}
	}
	defer e.mu.Unlock()
	if c.state != callActive || c.failing || e.endsWith(c) {
		e.codeEnded()
		return false
	}
	c.running = true
	return true
}

// complete sends the result of the step's code.
func (c *call) complete(p *kagziv1.Payload, started time.Time) {
	e := c.b.e
	e.lock()
	defer e.mu.Unlock()
	e.report(c, e.send(completeStep(e, c.name, c.b.path(), p, started), nil))
	e.codeEnded()
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

// recall returns the recorded outcome of a step: a result, or an error if it failed for good.
func (sc *stepCall) recall(e *execution, c *call) (any, error) {
	if c.record.GetStatus() == kagziv1.StepStatus_STEP_STATUS_FAILED {
		return nil, newStepError(c.name, c.record.GetError(), int(c.record.GetAttemptNumber()))
	}
	v, err := sc.read(c.record.GetOutput(), c.name)
	if err != nil {
		e.failAndExit(unreadableResult(c.name, err))
	}
	return v, nil
}

type stepResult struct {
	value   any
	payload *kagziv1.Payload
	err     error
}

// attempt runs the step's code once, in its own goroutine, and waits for it or its timeout. A
// cancellation ends the code's context but does not cut the wait short.
func (c *call) attempt(scope context.Context, sc *stepCall, number int) (stepResult, time.Time) {
	e, name := c.b.e, c.name
	timeout := sc.timeout
	if timeout <= 0 {
		timeout = e.stepTimeout
	}
	ctx, cancel := context.WithTimeoutCause(scope, timeout, errStepTimeout)
	defer cancel()
	started := time.Now()
	begin := newAnnouncement(e.token(), beginStep(c, sc, timeout, started))
	ctx = context.WithValue(ctx, stepKey{}, &stepInfo{e, name, number, begin})

	done := make(chan stepResult, 1)
	e.w.code.Add(1)
	go stepGoroutine(func() { e.w.runStep(ctx, sc, name, done) })

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
				e.announce(begin)
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
	r.err = w.interceptStep(ctx, name, func(ctx context.Context) (err error) {
		r.value, r.payload, err = c.run(ctx, name)
		return err
	})
	askError(r.err)
	warnLarge(w.log, "step result", r.payload, "step", name)
}

// fail records a failed attempt. It returns when the next one begins, or the zero moment when the step
// has failed for good.
func (c *call) fail(sc *stepCall, number int, detail *kagziv1.ErrorDetail, started time.Time) moment {
	e := c.b.e
	answers := make(chan *kagziv1.FailStepResponse, 1)
	e.lock()
	hold := !c.b.alone()
	op := e.send(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_FailStep{FailStep: &kagziv1.FailStepRequest{
		Namespace: e.task.GetNamespace(), RunId: e.info.RunID, LeaseToken: e.token(), StepName: &c.name,
		Error: detail, RetryPolicy: sc.retry, StartedAt: timestamppb.New(e.at(started)), Hold: hold,
		Branch: c.b.path(),
	}}}, nil)
	op.Answer = func(r *kagziv1.SessionResponse) {
		failed := r.GetFailedStep()
		e.logFailedStep(c.name, number, detail, failed)
		switch {
		case !failed.GetScheduledRetry():
			e.mu.Lock()
			e.report(c, op)
			e.mu.Unlock()
		default:
			e.mu.Lock()
			c.running = false
			if hold && e.endsWith(c) {
				e.hand(c, outcomeCancelled)
			}
			e.mu.Unlock()
			if !hold {
				e.suspend()
			}
		}
		answers <- failed
	}
	e.codeEnded()
	e.mu.Unlock()
	r := await(e, answers)
	if !r.GetScheduledRetry() {
		return moment{}
	}
	if r.RetryIn != nil {
		return fromNow(r.RetryIn.AsDuration())
	}
	return onServer(r.GetRetryAt().AsTime()) // older servers send no RetryIn
}

func completeStep(e *execution, name, branch string, p *kagziv1.Payload, started time.Time) *kagziv1.SessionRequest {
	return &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_CompleteStep{
		CompleteStep: &kagziv1.CompleteStepRequest{
			Namespace: e.task.GetNamespace(), RunId: e.info.RunID, LeaseToken: e.token(),
			StepName: &name, Output: p, StartedAt: timestamppb.New(e.at(started)), Branch: branch,
		}}}
}

func beginStep(c *call, sc *stepCall, timeout time.Duration, started time.Time) *kagziv1.SessionRequest {
	e := c.b.e
	return &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_BeginStep{BeginStep: &kagziv1.BeginStepRequest{
		Namespace: e.task.GetNamespace(), RunId: e.info.RunID, LeaseToken: e.token(),
		StepName: c.name, Kind: kagziv1.StepKind_STEP_KIND_FUNCTION, RetryPolicy: sc.retry,
		StartToCloseTimeoutMs: convert.WholeMs(min(timeout, maxDelay-timeoutMargin) + timeoutMargin),
		StartedAt:             timestamppb.New(e.at(started)), Branch: c.b.path(),
	}}}
}
