package session

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
	"github.com/kagzi/kagzi/engine/server/internal/metrics"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// This file holds the operations on steps, shared by unary calls and sessions.

// leased is a request about a run that a worker holds.
type leased interface {
	GetNamespace() string
	GetRunId() string
	GetLeaseToken() string
}

// leaseOf reads the lease of a request.
func (s *Service) leaseOf(ctx context.Context, r leased) (engine.Lease, error) {
	namespace, id, err := wire.RunOf(r)
	if err != nil {
		return engine.Lease{}, err
	}
	if r.GetLeaseToken() == "" {
		if s.options.AllowUnleased && auth.CallerOf(ctx) == nil {
			// if calls need keys, a run's id alone is not enough to write to it
			return s.store.CurrentLease(ctx, namespace, id)
		}
		return engine.Lease{}, engine.Invalid("lease_token",
			"must not be empty: each write carries the token that came with the task")
	}
	token, err := engine.ParseToken(r.GetLeaseToken())
	if err != nil {
		return engine.Lease{}, engine.Invalid("lease_token", "is not a token that a task carried")
	}
	lease := engine.Lease{Namespace: namespace, RunID: id, Token: token}
	return lease, s.guard.MayWrite(ctx, lease)
}

// stepRefOf reads which step a report is about. A client that sends step_name means the id of an
// attempt by step_id. Older clients have one field for both: an attempt's id or a step's name, which
// may look like an id.
func stepRefOf(stepID string, stepName *string) (engine.StepRef, error) {
	id, notID := engine.ParseID(stepID)
	switch {
	case stepName == nil && notID == nil:
		return engine.StepRef{ID: id, Name: stepID}, engine.CheckName("step_id", stepID)
	case stepName == nil:
		return engine.StepRef{Name: stepID}, engine.CheckName("step_id", stepID)
	case stepID == "":
		return engine.StepRef{Name: *stepName}, engine.CheckName("step_name", *stepName)
	}
	if err := engine.CheckOptionalName("step_name", *stepName); err != nil {
		return engine.StepRef{}, err
	}
	if notID != nil {
		return engine.StepRef{}, engine.Invalid("step_id",
			"must be the id of an attempt; the step's name goes into step_name alone")
	}
	return engine.StepRef{ID: id}, nil
}

func (s *Service) beginStep(ctx context.Context, at engine.Sequenced,
	r *kagziv1.BeginStepRequest) (*kagziv1.BeginStepResponse, error) {
	lease, err := s.leaseOf(ctx, r)
	if err != nil {
		return nil, err
	}
	p := engine.BeginStepParams{
		Sequenced: at, Lease: lease, Name: r.StepName, Branch: r.Branch, Kind: engine.StepFunction,
		Input:       wire.PayloadOf(r.Input),
		RetryPolicy: wire.RetryPolicyOf(r.RetryPolicy), StartToClose: wire.Milliseconds(r.StartToCloseTimeoutMs),
		Now: s.store.Now(), Margin: s.store.Uncertainty(),
	}
	switch r.Kind {
	case kagziv1.StepKind_STEP_KIND_UNSPECIFIED, kagziv1.StepKind_STEP_KIND_FUNCTION:
	case kagziv1.StepKind_STEP_KIND_SLEEP:
		p.Kind = engine.StepSleep
	default:
		return nil, engine.Invalid("kind", "must be FUNCTION or SLEEP, got %d", r.Kind)
	}
	if err := engine.CheckName("step_name", r.StepName); err != nil {
		return nil, err
	}
	if err := engine.CheckBranch("branch", p.Branch); err != nil {
		return nil, err
	}
	if err := engine.CheckPayload("input", p.Input); err != nil {
		return nil, err
	}
	if err := engine.CheckRetryPolicy("retry_policy", p.RetryPolicy); err != nil {
		return nil, err
	}
	if r.StartToCloseTimeoutMs != 0 {
		if err := engine.CheckDelay("start_to_close_timeout_ms", p.StartToClose); err != nil {
			return nil, err
		}
	}
	if p.StartedAt, err = startedOf(r.StartedAt, p.Now); err != nil {
		return nil, err
	}
	p.ID = engine.NewID(p.Now)
	begun, err := s.store.BeginStep(ctx, p)
	if err != nil {
		return nil, err
	}
	response := &kagziv1.BeginStepResponse{
		StepId: begun.Step.ID.String(), ShouldExecute: begun.Execute, AttemptNumber: int32(begun.Step.Attempt),
	}
	if !begun.Execute {
		if begun.Step.Status == engine.StepCompleted {
			response.CachedOutput = wire.StepTo("", &begun.Step).Output
		}
		response.Error = wire.FailureTo(begun.Step.Error)
	}
	return response, nil
}

// longestOff is how far a start time of a worker may be from now to be accepted.
const longestOff = 366 * 24 * time.Hour

// startedOf reads when an execution began by the worker's clock. It is not adjusted, because it
// identifies a repetition. It is unset if it is missing or further off than longestOff.
func startedOf(t *timestamppb.Timestamp, now time.Time) (time.Time, error) {
	started, err := wire.TimeOf("started_at", t)
	if err != nil || now.Sub(started).Abs() > longestOff {
		return time.Time{}, err
	}
	return started, nil
}

func (s *Service) completeStep(ctx context.Context, at engine.Sequenced, r *kagziv1.CompleteStepRequest) (engine.Lease,
	engine.Step, error) {
	lease, err := s.leaseOf(ctx, r)
	if err != nil {
		return lease, engine.Step{}, err
	}
	p := engine.CompleteStepParams{Sequenced: at, Lease: lease, Branch: r.Branch, Output: wire.PayloadOf(r.Output),
		Now: s.store.Now()}
	if p.Step, err = stepRefOf(r.StepId, r.StepName); err != nil {
		return lease, engine.Step{}, err
	}
	if err := engine.CheckBranch("branch", p.Branch); err != nil {
		return lease, engine.Step{}, err
	}
	if err := engine.CheckPayload("output", p.Output); err != nil {
		return lease, engine.Step{}, err
	}
	if p.StartedAt, err = startedOf(r.StartedAt, p.Now); err != nil {
		return lease, engine.Step{}, err
	}
	p.ID = engine.NewID(p.Now)
	began := s.options.Clock()
	step, err := s.store.CompleteStep(ctx, p)
	if err != nil {
		return lease, engine.Step{}, err
	}
	s.recorder.Wrote(s.options.Clock().Sub(began))
	s.recorder.Count(metrics.StepCompleted)
	return lease, step, nil
}

// addedTo returns what a session answers about a completed step: only what its worker does not
// know.
func addedTo(s *engine.Step) *kagziv1.CompleteStepResponse {
	return &kagziv1.CompleteStepResponse{Step: &kagziv1.Step{
		StepId: s.ID.String(), Status: kagziv1.StepStatus(s.Status), AttemptNumber: int32(s.Attempt),
		Sequence: s.Sequence, Settled: wire.SettledTo(s), BegunIn: s.BegunIn,
	}}
}

func (s *Service) failStep(ctx context.Context, at engine.Sequenced,
	r *kagziv1.FailStepRequest) (*kagziv1.FailStepResponse, error) {
	lease, err := s.leaseOf(ctx, r)
	if err != nil {
		return nil, err
	}
	failure, err := wire.FailureOf(r.Error)
	if err != nil {
		return nil, err
	}
	p := engine.FailStepParams{
		Sequenced: at, Lease: lease, Branch: r.Branch, Failure: failure,
		RetryPolicy: wire.RetryPolicyOf(r.RetryPolicy), Hold: r.Hold,
		Now: s.store.Now(), Margin: s.store.Uncertainty(), Jitter: engine.Jitter(),
	}
	if p.Step, err = stepRefOf(r.StepId, r.StepName); err != nil {
		return nil, err
	}
	if err := engine.CheckBranch("branch", p.Branch); err != nil {
		return nil, err
	}
	if err := engine.CheckRetryPolicy("retry_policy", p.RetryPolicy); err != nil {
		return nil, err
	}
	if p.StartedAt, err = startedOf(r.StartedAt, p.Now); err != nil {
		return nil, err
	}
	p.ID = engine.NewID(p.Now)
	began := s.options.Clock()
	verdict, err := s.store.FailStep(ctx, p)
	if err != nil {
		return nil, err
	}
	s.recorder.Wrote(s.options.Clock().Sub(began))
	s.recorder.StepFailed(verdict.Retry)
	// Nearly always the worker notices a timeout before the coordinator does. A repetition should
	// not be counted, but for a final failure it cannot be detected.
	if failure.Code == engine.FailureTimeout && (verdict.Failures > 0 || !verdict.Retry) {
		s.recorder.StepTimedOut()
	}
	if verdict.Failures > 0 {
		s.log.Info("step will be retried", "run", lease.RunID, "step", p.Step.String(),
			"failures", verdict.Failures, "at", verdict.RetryAt, "delay", verdict.RetryAt.Sub(p.Now))
	}
	response := &kagziv1.FailStepResponse{ScheduledRetry: verdict.Retry, RetryAt: wire.TimeTo(verdict.RetryAt),
		Settled: verdict.Settled}
	if verdict.Retry {
		response.RetryIn = durationpb.New(max(0, verdict.RetryAt.Sub(p.Now)))
	}
	return response, nil
}
