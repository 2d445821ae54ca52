package server

import (
	"context"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// RetryWorkflow starts a new run from one that ended without completing.
func (s *Server) RetryWorkflow(ctx context.Context,
	request *kagziv1.RetryWorkflowRequest) (*kagziv1.RetryWorkflowResponse, error) {
	p, err := s.retryOf(ctx, request)
	if err != nil {
		return nil, err
	}
	if request.UnlessRetried {
		if retry, err := s.newestRetry(ctx, p.Namespace, p.RunID); err != nil || retry != nil {
			return retriedBefore(retry), err
		}
	}
	started, err := s.store.RetryRun(ctx, p)
	if err != nil {
		return nil, err
	}
	answer := s.startedTo(started)
	return &kagziv1.RetryWorkflowResponse{NewRunId: answer.RunId, AlreadyRunning: answer.AlreadyExists,
		AlreadyRetried: started.Repeated}, nil
}

// newestRetry returns the run that a run was last retried as, or nil. The retried run itself does
// not change.
func (s *Server) newestRetry(ctx context.Context, namespace string, run engine.ID) (*engine.Run, error) {
	retries, err := s.store.ListRetries(ctx, namespace, run)
	if err != nil || len(retries) == 0 {
		return nil, err
	}
	return &retries[len(retries)-1], nil
}

// retriedBefore returns the answer to a retry that was not made because retry exists; nil for nil.
func retriedBefore(retry *engine.Run) *kagziv1.RetryWorkflowResponse {
	if retry == nil {
		return nil
	}
	return &kagziv1.RetryWorkflowResponse{NewRunId: retry.ID.String(), AlreadyRunning: !retry.Status.Ended(),
		AlreadyRetried: true}
}

func (s *Server) retryOf(ctx context.Context, r *kagziv1.RetryWorkflowRequest) (engine.RetryRunParams, error) {
	steer, err := s.steerOf(ctx, r)
	if err != nil {
		return engine.RetryRunParams{}, err
	}
	p := engine.RetryRunParams{
		SteerParams: steer, ID: engine.NewID(steer.Now), FromStep: r.FromStep, Restart: r.Restart,
		RequestID: r.RequestId, KeepAll: r.KeepAll,
	}
	switch {
	case r.Restart && r.FromStep != "":
		return p, engine.Invalid("from_step", "cannot be given together with restart, which keeps no step")
	case r.KeepAll && (r.Restart || r.FromStep != ""):
		return p, engine.Invalid("keep_all", "cannot be given together with restart or from_step")
	case r.Input != nil && !r.Restart:
		return p, engine.Invalid("input", "needs restart: the results that are kept belong to the old input")
	case r.Input != nil:
		input := wire.PayloadOf(r.Input)
		p.Input = &input
		if err := engine.CheckPayload("input", input); err != nil {
			return p, err
		}
	}
	if err := engine.CheckOptionalName("from_step", p.FromStep); err != nil {
		return p, err
	}
	return p, engine.CheckRequestID(p.RequestID)
}

// OverrideStep sets the recorded result of a step.
func (s *Server) OverrideStep(ctx context.Context,
	request *kagziv1.OverrideStepRequest) (*kagziv1.OverrideStepResponse, error) {
	steer, err := s.steerOf(ctx, request)
	if err != nil {
		return nil, err
	}
	p := engine.OverrideStepParams{SteerParams: steer, ID: engine.NewID(steer.Now), Step: request.StepName}
	if err := engine.CheckName("step_name", p.Step); err != nil {
		return nil, err
	}
	if request.Reason == "" {
		return nil, engine.Invalid("reason", "must not be empty: it is kept in the history")
	}
	switch result := request.Result.(type) {
	case *kagziv1.OverrideStepRequest_Output:
		output := wire.PayloadOf(result.Output)
		if err := engine.CheckPayload("output", output); err != nil {
			return nil, err
		}
		p.Output = &output
	case *kagziv1.OverrideStepRequest_Error:
		failure, err := wire.FailureOf(result.Error)
		if err != nil {
			return nil, err
		}
		p.Failure = &failure
	default:
		return nil, engine.Invalid("result", "must be set: an output or an error")
	}
	step, err := s.store.OverrideStep(ctx, p)
	if err != nil {
		return nil, err
	}
	return &kagziv1.OverrideStepResponse{Step: wire.StepTo(p.Namespace, &step)}, nil
}

// lastPause returns the audit event of a run's last pause, or nil if it is not known.
func (s *Server) lastPause(ctx context.Context, namespace string, run engine.ID) (*engine.AuditEvent, error) {
	return s.lastChange(ctx, namespace, run, func(e *engine.AuditEvent) bool { return e.Method == "PauseWorkflow" })
}

// lastChange returns the newest of the latest audit events about a subject for which is returns
// true, or nil.
func (s *Server) lastChange(ctx context.Context, namespace string, subject engine.ID,
	is func(*engine.AuditEvent) bool) (*engine.AuditEvent, error) {
	events, _, err := s.store.ListAuditEvents(
		ctx, engine.AuditFilter{Namespace: namespace, SubjectID: subject.String()},
		engine.Page{Limit: engine.DefaultPage})
	for i := range events {
		if is(&events[i]) {
			return &events[i], err
		}
	}
	return nil, err
}

// ExplainWorkflow says why a run does not move, or how it ended.
func (s *Server) ExplainWorkflow(ctx context.Context,
	request *kagziv1.ExplainWorkflowRequest) (*kagziv1.ExplainWorkflowResponse, error) {
	namespace, id, err := wire.RunOf(request)
	if err != nil {
		return nil, err
	}
	circumstances, err := s.store.ExplainInputs(ctx, namespace, id)
	if err != nil {
		return nil, err
	}
	if circumstances.Run.Paused || circumstances.Run.Pausing {
		if circumstances.LastPause, err = s.lastPause(ctx, namespace, id); err != nil {
			return nil, err
		}
	}
	circumstances.WorkerLease = s.options.WorkerLease
	for i := range circumstances.Workers {
		s.workers.Freshen(&circumstances.Workers[i])
	}
	e := engine.Explain(circumstances, s.now())
	return &kagziv1.ExplainWorkflowResponse{
		Summary: e.Summary, Details: e.Details, Blocker: kagziv1.ExplainWorkflowResponse_Blocker(e.Blocker),
		Since: wire.TimeTo(e.Since), NextAt: wire.TimeTo(e.NextAt), Blocked: wire.BlockedTo(e.Blocked),
	}, nil
}
