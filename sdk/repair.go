package kagzi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
	"go.opentelemetry.io/otel/attribute"
	"google.golang.org/protobuf/types/known/durationpb"
)

// The reason arguments in this file are kept in the audit log, with the caller and the time.

// CancelGracefully asks the run's code to stop and clean up. Its Context ends with ErrCancelled, a
// parked run is woken, and the code may run steps under Cleanup. The run becomes CANCELLED when the
// code returns or when the grace period ends, whichever is first. CancelGracefully waits for
// neither. Children with ParentCloseCancel are asked too, and have the same time. A run whose code
// has never run becomes CANCELLED at once.
//
// It can be repeated; a shorter grace then applies. Cancelling a cancelled run is no error; for a
// run that has ended in another way, or continued as new, the error is PRECONDITION_FAILED.
func (r *Run) CancelGracefully(ctx context.Context, grace time.Duration, reason string) error {
	_, err := r.c.workflows.CancelWorkflow(ctx, &kagziv1.CancelWorkflowRequest{
		Namespace: r.c.options.Namespace, RunId: r.id, Grace: durationpb.New(max(grace, time.Millisecond)),
		Reason: reason,
	})
	return callError(ctx, err)
}

// Pause keeps the run from being claimed until it is resumed. Its timers wait as well, and its
// deadline does not run. Steps that run finish first, and their results are recorded; until then
// RunDetails.Pausing is set. If the run continued as new, Pause, PauseNow and Resume go to the run that
// it continued as. Pausing a paused run is no error; for any other ended run the error is
// PRECONDITION_FAILED.
func (r *Run) Pause(ctx context.Context, reason string) error { return r.pause(ctx, false, reason) }

// PauseNow is Pause, but interrupts the steps that run. They run again when the run is resumed.
func (r *Run) PauseNow(ctx context.Context, reason string) error { return r.pause(ctx, true, reason) }

func (r *Run) pause(ctx context.Context, now bool, reason string) error {
	return r.follow(func(r *Run) error {
		_, err := r.c.workflows.PauseWorkflow(ctx, &kagziv1.PauseWorkflowRequest{
			Namespace: r.c.options.Namespace, RunId: r.id, Reason: reason, Now: now,
		})
		return callError(ctx, err)
	})
}

// Resume lets workers claim a paused run again, or takes back a Pause that still waits for a step.
// Resuming a run that is not paused is no error.
func (r *Run) Resume(ctx context.Context, reason string) error { return r.resume(ctx, false, reason) }

// AcceptDivergence is Resume for a run whose code has diverged from its history: the code need not
// reach what is recorded so far.
func (r *Run) AcceptDivergence(ctx context.Context, reason string) error {
	return r.resume(ctx, true, reason)
}

func (r *Run) resume(ctx context.Context, accept bool, reason string) error {
	return r.follow(func(r *Run) error {
		_, err := r.c.workflows.ResumeWorkflow(ctx, &kagziv1.ResumeWorkflowRequest{
			Namespace: r.c.options.Namespace, RunId: r.id, Reason: reason, AcceptDivergence: accept,
		})
		return callError(ctx, err)
	})
}

// Pin keeps the run from being deleted by retention until it is unpinned.
func (r *Run) Pin(ctx context.Context, reason string) error { return r.pin(ctx, true, reason) }

// Unpin lets retention delete the run.
func (r *Run) Unpin(ctx context.Context, reason string) error { return r.pin(ctx, false, reason) }

func (r *Run) pin(ctx context.Context, pinned bool, reason string) error {
	_, err := r.c.workflows.PinWorkflow(ctx, &kagziv1.PinWorkflowRequest{
		Namespace: r.c.options.Namespace, RunId: r.id, Pinned: pinned, Reason: reason,
	})
	return callError(ctx, err)
}

// InputValue holds an input of any type; InputOf makes one. The zero InputValue means no input.
type InputValue struct {
	encode func(c Codec, info PayloadInfo) (*kagziv1.Payload, error)
}

// InputOf makes an input for RetryOptions and ScheduleUpdate.
func InputOf[In any](in In) InputValue {
	return InputValue{func(c Codec, info PayloadInfo) (*kagziv1.Payload, error) { return encode(c, in, info) }}
}

// payload encodes the value; nil for the zero InputValue.
func (v InputValue) payload(c Codec, info PayloadInfo) (*kagziv1.Payload, error) {
	if v.encode == nil {
		return nil, nil
	}
	p, err := v.encode(c, info)
	if err != nil {
		return nil, fmt.Errorf("kagzi: input: %w", err)
	}
	return p, nil
}

// RetryOptions configures Run.Retry. By default a retry keeps the results of all completed steps.
//
// A run that began steps after one had failed for good, or after it was cancelled, has probably
// compensated. Its retry fails with PRECONDITION_FAILED and the names of those steps, unless
// FromStep, Restart or KeepAll says what to do. A wait for a signal that timed out is a completed
// step: retry from such a wait to wait again. Signals that no wait has received are kept; those
// received by a wait that runs again must be sent again.
type RetryOptions struct {
	FromStep string     // this step and all that began after it run again (none)
	Restart  bool       // keep no step
	KeepAll  bool       // keep steps that began after the first failure, too
	Input    InputValue // new input; only with Restart (the run's own)
	Reason   string     // for the audit log
	// RequestID identifies the call, as in StartOptions (a new UUIDv7).
	RequestID string
}

// Retry retries a run that ended without a result: it starts a new run with the same input and
// returns it. If an earlier retry of the run is still active, Retry returns that one and
// AlreadyExisted is true.
func (r *Run) Retry(ctx context.Context, opts RetryOptions) (*Run, error) {
	if opts.Restart && opts.FromStep != "" {
		return nil, errors.New("kagzi: Retry: FromStep and Restart exclude each other")
	}
	if opts.Input.encode != nil && !opts.Restart {
		return nil,
			errors.New(
				"kagzi: Retry: an Input needs Restart: kept results belong to the input that they were made from")
	}
	if opts.KeepAll && (opts.Restart || opts.FromStep != "") {
		return nil, errors.New("kagzi: Retry: KeepAll excludes FromStep and Restart")
	}
	input, err := r.newInput(ctx, opts.Input)
	if err != nil {
		return nil, err
	}
	warnLarge(r.c.options.Logger, "input", input, "run", r.id)
	id, err := requestID(opts.RequestID)
	if err != nil {
		return nil, err
	}
	ctx, span := r.c.traceCall(ctx, "retry run", attribute.String("kagzi.run_id", r.id))
	req := &kagziv1.RetryWorkflowRequest{
		Namespace: r.c.options.Namespace, RunId: r.id, FromStep: opts.FromStep, Restart: opts.Restart, Input: input,
		KeepAll:   opts.KeepAll,
		RequestId: id, Reason: opts.Reason,
	}
	resp, err := r.c.workflows.RetryWorkflow(ctx, req)
	endCall(ctx, span, err)
	if err != nil {
		return r.retriedBefore(ctx, req, opts.RequestID, callError(ctx, err))
	}
	return &Run{c: r.c, id: resp.GetNewRunId(), exists: resp.GetAlreadyRunning()}, nil
}

// newInput encodes an input that replaces the run's own.
func (r *Run) newInput(ctx context.Context, v InputValue) (*kagziv1.Payload, error) {
	if v.encode == nil || r.c.options.Codec == nil {
		return v.payload(nil, PayloadInfo{})
	}
	d, err := r.Describe(ctx)
	if err != nil {
		return nil, err
	}
	info := inputInfo(d.WorkflowType, d.ExternalID)
	info.signals = startOfSignals(startDigest(d.WorkflowType, d.ExternalID, d.input.GetData()), d.input)
	return v.payload(r.c.options.Codec, info)
}

// OverrideStep sets the recorded result of a step, so that a run can continue, or be retried, past
// a step that cannot succeed. The run must be paused or have ended without a result. The old record
// is kept. A reason is required.
func OverrideStep[T any](ctx context.Context, run *Run, step string, result T, reason string) error {
	info, err := run.payloadInfo(ctx, PayloadStep, step)
	if err != nil {
		return err
	}
	payload, err := encode(run.c.options.Codec, result, info)
	if err != nil {
		return fmt.Errorf("kagzi: result of step %q: %w", step, err)
	}
	warnLarge(run.c.options.Logger, "step result", payload, "step", step)
	return run.override(ctx, &kagziv1.OverrideStepRequest{
		StepName: step, Reason: reason, Result: &kagziv1.OverrideStepRequest_Output{Output: payload},
	})
}

// OverrideStepError sets a failure as the outcome of a step, as OverrideStep sets a result: Step
// returns it as a *StepError and makes no further attempts. A Sleep, which returns no error, just
// ends.
func (r *Run) OverrideStepError(ctx context.Context, step string, failure error, reason string) error {
	if failure == nil {
		return fmt.Errorf("kagzi: failure of step %q is nil, want an error; OverrideStep sets a result", step)
	}
	detail := errorDetail(failure)
	detail.NonRetryable = true
	return r.override(ctx, &kagziv1.OverrideStepRequest{
		StepName: step, Reason: reason, Result: &kagziv1.OverrideStepRequest_Error{Error: detail},
	})
}

func (r *Run) override(ctx context.Context, req *kagziv1.OverrideStepRequest) error {
	req.Namespace, req.RunId = r.c.options.Namespace, r.id
	_, err := r.c.workflows.OverrideStep(ctx, req)
	return callError(ctx, err)
}

// Blocker is the reason why a run does not make progress.
type Blocker string

// Reasons why a run does not make progress.
const (
	BlockerNone              Blocker = "NONE"      // it is running or has ended
	BlockerNoWorker          Blocker = "NO_WORKER" // no online worker serves its queue, type and requirements
	BlockerWorkersBusy       Blocker = "WORKERS_BUSY"
	BlockerRetryDelay        Blocker = "RETRY_DELAY"
	BlockerTimer             Blocker = "TIMER"
	BlockerSignal            Blocker = "SIGNAL"
	BlockerChild             Blocker = "CHILD"
	BlockerPaused            Blocker = "PAUSED"
	BlockerConcurrencyLimit  Blocker = "CONCURRENCY_LIMIT"
	BlockerNamespaceDisabled Blocker = "NAMESPACE_DISABLED"
	BlockerNotYetStarted     Blocker = "NOT_YET_STARTED" // its start time is in the future
)

// Explanation describes what a run waits for.
type Explanation struct {
	Summary string   // one sentence
	Details []string // more sentences
	Blocker Blocker
	Since   time.Time // start of this state; zero if unknown
	NextAt  time.Time // time of the next automatic event; zero if there is none

	Blocked []BlockedCode // code that keeps a RUNNING run from moving on, as of its worker's last heartbeat
}

// BlockedCode is workflow code that has kept its run from moving on for 5 s or longer: code outside of
// calls of the SDK, or new calls that are held because the code has not made recorded ones.
type BlockedCode struct {
	Branch string // ordinals of forks, such as "2.1"; "" is the workflow function
	Since  time.Time
	Stack  string   // of code outside of calls
	Held   []string // names of new calls that wait
	Owed   []string // names of recorded calls that the code has not made
}

// Explain returns what the run waits for, since when, and what happens next.
func (r *Run) Explain(ctx context.Context) (*Explanation, error) {
	resp, err := r.c.workflows.ExplainWorkflow(
		ctx, &kagziv1.ExplainWorkflowRequest{Namespace: r.c.options.Namespace, RunId: r.id})
	if err != nil {
		return nil, callError(ctx, err)
	}
	var blocked []BlockedCode
	names := func(calls []*kagziv1.Call) (names []string) {
		for _, c := range calls {
			names = append(names, c.GetName())
		}
		return names
	}
	for _, b := range resp.GetBlocked() {
		blocked = append(blocked, BlockedCode{Branch: b.GetBranch(), Since: convert.When(b.GetSince()),
			Stack: b.GetStack(), Held: names(b.GetHeld()), Owed: names(b.GetOwed())})
	}
	return &Explanation{
		Blocked: blocked,
		Summary: resp.GetSummary(), Details: resp.GetDetails(),
		Blocker: Blocker(strings.TrimPrefix(resp.GetBlocker().String(), "BLOCKER_")),
		Since:   convert.When(resp.GetSince()), NextAt: convert.When(resp.GetNextAt()),
	}, nil
}
