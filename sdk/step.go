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
	// defaultStepTimeout holds where neither the step nor the run names one.
	defaultStepTimeout = 600 * time.Second
	// timeoutMargin is how much longer than the worker the server waits for a step: the worker's own verdict is to come
	// first, since it does not cost the run its lease.
	timeoutMargin = 2 * time.Second
	// announceAfter is how long a step runs before the server is told that it does. Shorter ones are one
	// durable write: their result.
	announceAfter = 250 * time.Millisecond
)

// StepOption changes how one step is run: a Retry, or Timeout.
type StepOption interface{ applyStep(*stepOptions) }

type stepOptions struct {
	retry   *kagziv1.RetryPolicy
	timeout time.Duration
	wrong   error // an option that says nothing sensible
}

type timeoutOption time.Duration

func (t timeoutOption) applyStep(o *stepOptions) {
	if o.timeout = time.Duration(t); t < 0 {
		o.wrong = fmt.Errorf("option Timeout is %v, want more than 0", o.timeout)
	}
}

// Timeout bounds one attempt of a step. The step's context ends then, and the attempt counts as
// failed even if its code does not look at the context; such code goes on beside the next attempt,
// and the log tells of it after ten seconds. What the code has done is not thrown away where it is
// there as the time is up: a result without an error that it returns at once when its context ends
// may still count. Code that was cut short should therefore return an error, such as
// context.Cause(ctx). The default is the run's step timeout, else 600 s.
func Timeout(d time.Duration) StepOption { return timeoutOption(d) }

// Step runs fn once and records its result; in every replay it returns the recorded result without
// running fn. fn runs again only when its result could not be recorded (the worker died, the lease was
// lost) or when it failed and the retry policy grants another attempt: it must bear that. IdempotencyKey
// helps with systems outside.
//
// The name is unique within the run: 1 to 255 of A-Z a-z 0-9 . _ : / -, but for kagzi:ended, which
// the SDK itself records under. Used again in sequential code it becomes name:2, name:3; used by
// two goroutines or branches at once it fails the run.
//
// The result travels as JSON, also the first time, so fn must not hide anything in it that JSON does not
// carry. While a retry is due the run is parked and Step does not return. The error, if any, is a *StepError:
// the step has failed for good.
//
// fn must use its own ctx, and must not call functions that take a Context: a step, wait or branch
// within a step fails the run. Its ctx ends with the step's timeout, with the run's lease, and,
// with ErrCancelled as its cause, when the run is being cancelled. A step that was at work then,
// and fails, has failed for good, with CANCELLED as its code; one that had yet to begin does not
// begin, and is not recorded as failed. For both errors, errors.Is(err, ErrCancelled) holds.
func Step[T any](ctx Context, name string, fn func(ctx context.Context) (T, error), opts ...StepOption) (T, error) {
	b := ctx.workflow()
	call := stepCall{name: name}
	for _, o := range opts {
		o.applyStep(&call.stepOptions)
	}
	call.run = func(ctx context.Context, step string) (any, *kagziv1.Payload, error) {
		return runTyped(ctx, b.e.w.options.Codec, b.e.payloadInfo(PayloadStep, step), replacedStep(b.e.w, name, fn))
	}
	call.read = func(p *kagziv1.Payload, step string) (any, error) {
		return decode[T](b.e.w.options.Codec, p, b.e.payloadInfo(PayloadStep, step))
	}
	v, err := b.step(ctx.scope(), &call)
	if err != nil {
		var zero T
		return zero, err
	}
	return *v.(*T), nil
}

// replacedStep returns the code that a test has put in the place of the step's own, or the step's own.
func replacedStep[T any](w *Worker, name string, fn func(context.Context) (T, error)) func(context.Context) (T, error) {
	if w.replaced == nil {
		return fn
	}
	if other := w.replaced(name); other != nil {
		return seam.Typed[T](name, other, NonRetryable)
	}
	return fn
}

// runTyped runs the step's code and returns its result both as it will be read back and as it is recorded.
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
	key     string
	attempt int
}

// IdempotencyKey is the run's id, a slash and the step's name: the same over all attempts of the
// step, for systems that recognise a repeated request by a key. A run that Run.Retry starts has an
// id of its own, so what it runs again has other keys. Outside of a step it is "".
func IdempotencyKey(ctx context.Context) string {
	if s, ok := ctx.Value(stepKey{}).(*stepInfo); ok {
		return s.key
	}
	return ""
}

// Attempt is the number of the running attempt of the step, 1 for the first. It counts every attempt, also
// those that a lost worker cut short. Outside of a step it is 0.
func Attempt(ctx context.Context) int {
	if s, ok := ctx.Value(stepKey{}).(*stepInfo); ok {
		return s.attempt
	}
	return 0
}

// stepCall is one call of Step with its types taken off.
type stepCall struct {
	stepOptions
	name string
	run  func(ctx context.Context, step string) (any, *kagziv1.Payload, error)
	read func(p *kagziv1.Payload, step string) (any, error)
}

// step runs a step within one activation of its run on this worker.
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
		retryAt := b.failStep(c, name, detail, started)
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

// pendingError is the failure of a step that waits for its next attempt, nil of any other.
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

// recall returns what the history settles: a result, or an error for good.
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
			return nil, nil, false // cut short by a lost worker: no verdict on the code
		}
		if s.GetError().GetCode() == kagziv1.ErrorCode_ERROR_CODE_CANCELLED {
			b.toldOfCancellation(name) // here it took effect
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

// attempt runs the step's code once, in a goroutine of its own, and waits for its end or its
// timeout. When the run is cancelled the code is told, and may take its time.
func (b *branch) attempt(scope context.Context, c *stepCall, name string, number int) (stepResult, time.Time) {
	e := b.e
	timeout := c.timeout
	if timeout <= 0 {
		timeout = e.stepTimeout
	}
	ctx, cancel := context.WithTimeoutCause(scope, timeout, errStepTimeout)
	defer cancel()
	ctx = context.WithValue(ctx, stepKey{}, &stepInfo{key: e.info.RunID + "/" + name, attempt: number})

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
			<-ctx.Done() // by its own deadline, which is the same: the code is to see that as the cause
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

// stepGoroutine is at the root of the goroutine of each step's code.
//
//go:noinline
func stepGoroutine(f func()) { f() }

var stepEntry = reflect.ValueOf(stepGoroutine).Pointer()

var errStepTimeout = fmt.Errorf("kagzi: step timed out: %w", context.DeadlineExceeded)

func timeoutError(name string, d time.Duration) error {
	return &coded{code: kagziv1.ErrorCode_ERROR_CODE_TIMEOUT, text: fmt.Sprintf("step %s timed out after %v", name, d)}
}

// hangAfter is how long code may go on whose context has ended before the log tells of it.
const hangAfter = 10 * time.Second

// lookAfter waits for the end of a step's code that nobody else waits for any more. A goroutine
// cannot be ended from outside: code that does not heed its context goes on beside the next
// attempts, holds what it holds, and is seen nowhere but here.
func (w *Worker) lookAfter(done <-chan stepResult, run, name string, number int) {
	log := w.log.With("run", run, "step", name, "attempt", number)
	hangs := time.NewTimer(hangAfter)
	defer hangs.Stop()
	select {
	case <-done:
		return
	case <-hangs.C:
		log.Warn("code of a step goes on in spite of its ended context", "for", hangAfter)
	}
	since := time.Now()
	<-done
	log.Info("code of a step that went on in spite of its ended context has ended", "after",
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

// failStep records a failed attempt. It returns the time of the next one by the clock of now, or
// zero when the step has failed for good.
func (b *branch) failStep(c *stepCall, name string, detail *kagziv1.ErrorDetail, started time.Time) time.Time {
	e := b.e
	own := onBranchGoroutine()
	answers := make(chan *kagziv1.FailStepResponse, 1)
	e.lock()
	hold := !b.alone(own)
	e.send(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_FailStep{FailStep: &kagziv1.FailStepRequest{
		Namespace: e.task.GetNamespace(), RunId: e.info.RunID, LeaseToken: e.task.GetLeaseToken(),
		StepId: name, Error: detail, RetryPolicy: c.retry, StartedAt: timestamppb.New(e.at(started)), Hold: hold,
	}}}, func(r *kagziv1.SessionResponse) {
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
	return r.GetRetryAt().AsTime() // of an older server
}

func completeStep(e *execution, name string, p *kagziv1.Payload, started time.Time) *kagziv1.SessionRequest {
	return &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_CompleteStep{
		CompleteStep: &kagziv1.CompleteStepRequest{
			Namespace: e.task.GetNamespace(), RunId: e.info.RunID, LeaseToken: e.task.GetLeaseToken(),
			StepId: name, Output: p, StartedAt: timestamppb.New(e.at(started)),
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
