package world

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// RetryWorkflow gives a run that has ended badly a new life, as a new run.
func (w *World) RetryWorkflow(ctx context.Context, request *kagziv1.RetryWorkflowRequest, _ ...grpc.CallOption) (*kagziv1.RetryWorkflowResponse, error) {
	return call(w, ctx, "WorkflowService/RetryWorkflow", func() (*kagziv1.RetryWorkflowResponse, error) {
		r, err := w.steered(request)
		if err != nil {
			return nil, err
		}
		switch {
		case request.Restart && request.FromStep != "":
			return nil, invalid("from_step", "cannot be given together with restart, which keeps no step")
		case request.Input != nil && !request.Restart:
			return nil, invalid("input", "needs restart: the results that are kept belong to the old input")
		}
		err = first(checkPayload("input", request.Input), checkOptionalName("from_step", request.FromStep), checkRequestID(request.RequestId))
		if err != nil {
			return nil, err
		}
		return w.retry(r, request)
	})
}

func (w *World) retry(r *run, request *kagziv1.RetryWorkflowRequest) (*kagziv1.RetryWorkflowResponse, error) {
	content := "retry " + r.RunId
	answer, known, err := w.repeated(r.Namespace, request.RequestId, content)
	if err != nil || known {
		return &kagziv1.RetryWorkflowResponse{NewRunId: answer.runID, AlreadyRunning: answer.existed, AlreadyRetried: known}, err
	}
	if newest := w.retries[r.RunId]; newest != nil && request.UnlessRetried {
		return &kagziv1.RetryWorkflowResponse{NewRunId: newest.RunId, AlreadyRunning: !ended(newest.Status), AlreadyRetried: true}, nil
	}
	if !endedBadly(r.Status) {
		return nil, notNow(r, "be retried")
	}
	before, err := r.keptBefore(request)
	if err != nil {
		return nil, err
	}
	if active := w.retries[r.RunId]; active != nil && !ended(active.Status) {
		w.remember(r.Namespace, request.RequestId, answered{active.RunId, true, content})
		return &kagziv1.RetryWorkflowResponse{NewRunId: active.RunId, AlreadyRunning: true}, nil
	}
	if had := w.byExternalID[r.Namespace+"\x00"+r.ExternalId]; r.ExternalId != "" && had != nil && !ended(had.Status) {
		return nil, externalIDTaken(had)
	}
	heir := w.begins(heirOf(r, request.Input, w.now.After(moment(r.DeadlineAt))), r.plan, w.now)
	for _, s := range inOrder(r.steps) {
		if s.IsLatest && s.Status == stepCompleted && s.Sequence < before {
			w.adopt(heir, s)
		}
	}
	w.retries[r.RunId] = heir
	w.remember(r.Namespace, request.RequestId, answered{runID: heir.RunId, content: content})
	detail := "as " + heir.RunId
	switch {
	case request.Restart && request.Input != nil:
		detail += ", restarted with another input"
	case request.Restart:
		detail += ", restarted"
	case request.FromStep != "":
		detail += ", from step " + request.FromStep
	}
	w.audited("RetryWorkflow", r.Namespace, "run", r.RunId, request.Reason, detail)
	return &kagziv1.RetryWorkflowResponse{NewRunId: heir.RunId}, nil
}

// keptBefore is the first sequence whose result a retry does not keep.
func (r *run) keptBefore(request *kagziv1.RetryWorkflowRequest) (int64, error) {
	switch s := r.latest[request.FromStep]; {
	case request.Restart:
		return 0, nil
	case request.FromStep == "":
		return r.StepCount + 1, nil
	case s == nil:
		return 0, stepNotFound(request.FromStep)
	default:
		return s.Sequence, nil
	}
}

func stepNotFound(name string) error { return notFound("step", name, "no step "+name) }

// heirOf is a new run with all that a starter chose for r.
func heirOf(r *run, input *kagziv1.Payload, late bool) *kagziv1.Workflow {
	m := &kagziv1.Workflow{
		Namespace: r.Namespace, ExternalId: r.ExternalId, TaskQueue: r.TaskQueue, WorkflowType: r.WorkflowType, Version: r.Version,
		Priority: r.Priority, Input: r.Input, DeadlineAt: r.DeadlineAt, RetryPolicy: r.RetryPolicy, Timeouts: r.Timeouts, Tags: r.Tags,
		Requirements: r.Requirements, OnFailureWorkflow: r.OnFailureWorkflow, OnFailureTaskQueue: r.OnFailureTaskQueue,
		ConcurrencyKey: r.ConcurrencyKey, ConcurrencyLimit: r.ConcurrencyLimit, RetriedFromRunId: proto.String(r.RunId),
	}
	if input != nil {
		m.Input = input
	}
	if late || r.GetTimeouts().GetExecutionTimeoutMs() > 0 {
		m.DeadlineAt = nil
	}
	return proto.CloneOf(m)
}

// adopt makes a result a step of a run.
func (w *World) adopt(r *run, from *step) {
	s := &step{Step: proto.CloneOf(from.Step), failures: from.failures}
	r.StepCount++
	s.StepId, s.RunId, s.Sequence = w.ids.id(w.now), r.RunId, r.StepCount
	r.steps = append(r.steps, s)
	r.latest[s.Name] = s
	w.stepChanged(r, s)
}

// OverrideStep sets the recorded result of a step of a run that is paused or has ended badly.
func (w *World) OverrideStep(ctx context.Context, request *kagziv1.OverrideStepRequest, _ ...grpc.CallOption) (*kagziv1.OverrideStepResponse, error) {
	return call(w, ctx, "WorkflowService/OverrideStep", func() (*kagziv1.OverrideStepResponse, error) {
		r, err := w.steered(request)
		if err := first(err, checkName("step_name", request.StepName)); err != nil {
			return nil, err
		}
		if request.Reason == "" {
			return nil, invalid("reason", "must not be empty: it is kept in the history")
		}
		if request.Result == nil {
			return nil, invalid("result", "must be set: an output or an error")
		}
		if err := checkPayload("output", request.GetOutput()); err != nil {
			return nil, err
		}
		s, err := w.override(r, request)
		if err != nil {
			return nil, err
		}
		return &kagziv1.OverrideStepResponse{Step: proto.CloneOf(s.Step)}, nil
	})
}

func (w *World) override(r *run, request *kagziv1.OverrideStepRequest) (*step, error) {
	if !r.Paused && !endedBadly(r.Status) {
		return nil, notNow(r, "have a step overridden while it is neither paused nor ended badly")
	}
	prev := r.latest[request.StepName]
	if prev == nil {
		return nil, stepNotFound(request.StepName)
	}
	status, output, failure := stepFailed, (*kagziv1.Payload)(nil), proto.CloneOf(request.GetError())
	if _, ok := request.Result.(*kagziv1.OverrideStepRequest_Output); ok {
		status, output = stepCompleted, proto.CloneOf(request.GetOutput())
	}
	if prev.Status == status && proto.Equal(prev.Output, output) && proto.Equal(prev.Error, failure) {
		return prev, nil
	}
	if prev.open() {
		w.closeStep(r, prev, stepFailed, nil, &kagziv1.ErrorDetail{
			Code: kagziv1.ErrorCode_ERROR_CODE_CANCELLED, Type: "overridden", Message: "a person recorded another result for the step", NonRetryable: true,
		})
	}
	prev.IsLatest = false
	w.stepChanged(r, prev)
	s := &step{failures: prev.failures, Step: &kagziv1.Step{
		Namespace: r.Namespace, StepId: w.ids.id(w.now), RunId: r.RunId, Name: prev.Name, Kind: prev.Kind, AttemptNumber: prev.AttemptNumber + 1,
		Sequence: prev.Sequence, CreatedAt: stamp(w.now), StartedAt: stamp(w.now), IsLatest: true, WakeUpAt: prev.WakeUpAt,
		SignalName: prev.SignalName, ChildRunId: prev.ChildRunId, OverriddenBy: actor, OverrideReason: request.Reason,
	}}
	r.steps = append(r.steps, s)
	r.latest[s.Name] = s
	w.closeStep(r, s, status, output, failure)
	if r.Paused {
		w.due(r)
	}
	w.archive.keep(r)
	w.audited("OverrideStep", r.Namespace, "run", r.RunId, request.Reason, request.StepName)
	return s, nil
}

// bulkRetryID is the request id of a retry among many: the same in a repetition.
func bulkRetryID(r *run) string { return fmt.Sprintf("bulk-retry:%s", r.RunId) }
