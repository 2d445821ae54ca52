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

// The reasons that the calls of this file take are kept in the audit log, together with who called and when.

// CancelGracefully asks the run's code to stop: its context ends with ErrCancelled, a parked run is
// woken for it, and it may run steps to clean up under kagzi.Cleanup. The run is CANCELLED when the
// code returns or the grace is over, whichever comes first; CancelGracefully waits for neither. It
// can be repeated, and a shorter grace counts then. A run that has ended otherwise is
// PRECONDITION_FAILED, also one that continued as new.
func (r *Run) CancelGracefully(ctx context.Context, grace time.Duration, reason string) error {
	_, err := r.c.workflows.CancelWorkflow(ctx, &kagziv1.CancelWorkflowRequest{
		Namespace: r.c.options.Namespace, RunId: r.id, Grace: durationpb.New(max(grace, time.Millisecond)),
		Reason: reason,
	})
	return callError(ctx, err)
}

// Pause takes the run out of the workers' hands until it is resumed: nothing claims it, its timers
// wait. It is no error to pause a paused run; one that has ended is PRECONDITION_FAILED.
func (r *Run) Pause(ctx context.Context, reason string) error {
	_, err := r.c.workflows.PauseWorkflow(ctx, &kagziv1.PauseWorkflowRequest{
		Namespace: r.c.options.Namespace, RunId: r.id, Reason: reason,
	})
	return callError(ctx, err)
}

// Resume gives a paused run back to the workers. It is no error to resume a run that is not paused.
func (r *Run) Resume(ctx context.Context, reason string) error {
	_, err := r.c.workflows.ResumeWorkflow(ctx, &kagziv1.ResumeWorkflowRequest{
		Namespace: r.c.options.Namespace, RunId: r.id, Reason: reason,
	})
	return callError(ctx, err)
}

// Pin keeps the run from being deleted by retention, for as long as it is pinned.
func (r *Run) Pin(ctx context.Context, reason string) error { return r.pin(ctx, true, reason) }

// Unpin lets a pinned run go again.
func (r *Run) Unpin(ctx context.Context, reason string) error { return r.pin(ctx, false, reason) }

func (r *Run) pin(ctx context.Context, pinned bool, reason string) error {
	_, err := r.c.workflows.PinWorkflow(ctx, &kagziv1.PinWorkflowRequest{
		Namespace: r.c.options.Namespace, RunId: r.id, Pinned: pinned, Reason: reason,
	})
	return callError(ctx, err)
}

// InputValue is a typed input whose type has been taken off; InputOf makes one. The zero InputValue is no input at all.
type InputValue struct {
	encode func(c Codec, info PayloadInfo) (*kagziv1.Payload, error)
}

// InputOf is in as the input of a run, for RetryOptions and ScheduleUpdate.
func InputOf[In any](in In) InputValue {
	return InputValue{func(c Codec, info PayloadInfo) (*kagziv1.Payload, error) { return encode(c, in, info) }}
}

// payload is nil for the zero InputValue.
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

// RetryOptions say what of a run its retry keeps: by default the result of every completed step. A
// run that began steps after one had failed for good, or after it was told to stop, has probably
// compensated. Its retry is refused with PRECONDITION_FAILED and the names of these steps unless
// FromStep, Restart or KeepAll says what to do. A wait for a signal whose limit has passed is a completed step,
// too: a run that failed for it is retried from that wait. Signals that no wait had taken come
// along; those that were taken by a wait that runs again have to be sent again.
type RetryOptions struct {
	FromStep string     // this step and all begun after it run again
	Restart  bool       // no step is kept
	KeepAll  bool       // results of steps that were begun after the first failure are kept as well
	Input    InputValue // replaces the input, only with Restart (the run's own)
	Reason   string     // for the audit log
	// RequestID names this one call, as in StartOptions (a fresh UUIDv7).
	RequestID string
}

// Retry starts a run that has ended without a result again, as a new run with the same input, and
// returns that. If an earlier retry of the run is active, that one is returned, with
// AlreadyExisted, and nothing is started.
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

// newInput is an input in the place of the run's own.
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

// OverrideStep sets the recorded result of a step of a run that is paused or has ended badly, so
// that it can go on, or be retried, past a step that cannot succeed. The old record is kept. The
// reason is required.
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

// OverrideStepError is OverrideStep with a failure: the step counts as failed for good with it, and
// the code gets it as a *StepError. A Sleep, which has no error to return, is over by it and
// nothing more.
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

// Blocker is what a run waits for.
type Blocker string

// The blockers.
const (
	BlockerNone              Blocker = "NONE"      // running, or ended
	BlockerNoWorker          Blocker = "NO_WORKER" // no online worker serves its queue, type and requirements
	BlockerWorkersBusy       Blocker = "WORKERS_BUSY"
	BlockerRetryDelay        Blocker = "RETRY_DELAY"
	BlockerTimer             Blocker = "TIMER"
	BlockerSignal            Blocker = "SIGNAL"
	BlockerChild             Blocker = "CHILD"
	BlockerPaused            Blocker = "PAUSED"
	BlockerConcurrencyLimit  Blocker = "CONCURRENCY_LIMIT"
	BlockerNamespaceDisabled Blocker = "NAMESPACE_DISABLED"
	BlockerNotYetStarted     Blocker = "NOT_YET_STARTED" // its start time lies ahead
)

// Explanation says why a run is where it is.
type Explanation struct {
	Summary string   // one sentence
	Details []string // further sentences
	Blocker Blocker
	Since   time.Time // since when it is there; zero when that is not known
	NextAt  time.Time // when something happens by itself; zero when nothing does
}

// Explain asks the server why the run is where it is: what it waits for, since when, and what comes next.
func (r *Run) Explain(ctx context.Context) (*Explanation, error) {
	resp, err := r.c.workflows.ExplainWorkflow(
		ctx, &kagziv1.ExplainWorkflowRequest{Namespace: r.c.options.Namespace, RunId: r.id})
	if err != nil {
		return nil, callError(ctx, err)
	}
	return &Explanation{
		Summary: resp.GetSummary(), Details: resp.GetDetails(),
		Blocker: Blocker(strings.TrimPrefix(resp.GetBlocker().String(), "BLOCKER_")),
		Since:   convert.When(resp.GetSince()), NextAt: convert.When(resp.GetNextAt()),
	}, nil
}
