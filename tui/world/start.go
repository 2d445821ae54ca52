package world

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// message is a run as somebody starts it who follows a plan.
func (w *World) message(p *plan, namespace string) *kagziv1.Workflow {
	m := &kagziv1.Workflow{
		Namespace: namespace, WorkflowType: p.kind, TaskQueue: p.queue, Version: p.version, RetryPolicy: proto.CloneOf(p.retry),
	}
	if p.input != nil {
		m.Input = jsonPayload(p.input(w.luck))
	}
	if p.tags != nil {
		m.Tags = p.tags(w.luck)
	}
	if p.named != nil {
		m.ExternalId = p.named(w.luck)
	}
	if p.key != nil {
		m.ConcurrencyKey, m.ConcurrencyLimit = p.key(w.luck), 1
	}
	if p.limit > 0 {
		m.Timeouts = &kagziv1.TimeoutConfig{ExecutionTimeoutMs: p.limit.Milliseconds()}
	}
	return m
}

// StartWorkflow makes one run, which goes its way.
func (w *World) StartWorkflow(ctx context.Context, request *kagziv1.StartWorkflowRequest, _ ...grpc.CallOption) (*kagziv1.StartWorkflowResponse, error) {
	return call(w, ctx, "WorkflowService/StartWorkflow", func() (*kagziv1.StartWorkflowResponse, error) {
		return w.start(request)
	})
}

// StartWorkflows makes many; what is wrong with one is its own affair.
func (w *World) StartWorkflows(ctx context.Context, request *kagziv1.StartWorkflowsRequest, _ ...grpc.CallOption) (*kagziv1.StartWorkflowsResponse, error) {
	return call(w, ctx, "WorkflowService/StartWorkflows", func() (*kagziv1.StartWorkflowsResponse, error) {
		if n := len(request.Requests); n == 0 || n > maxBatch {
			return nil, invalid("requests", "must hold 1 to %d starts, got %d", maxBatch, n)
		}
		response := &kagziv1.StartWorkflowsResponse{}
		for _, r := range request.Requests {
			result := &kagziv1.StartWorkflowsResponse_Result{}
			started, err := w.start(r)
			if refused, ok := errors.AsType[*refusal](err); ok {
				result.Error = refused.detail()
			} else {
				result.Started = started
			}
			response.Results = append(response.Results, result)
		}
		return response, nil
	})
}

func (w *World) start(r *kagziv1.StartWorkflowRequest) (*kagziv1.StartWorkflowResponse, error) {
	namespace, at, deadline, err := w.checkStart(r)
	if err != nil {
		return nil, err
	}
	content := fmt.Sprintf("start %s %s %s %x", r.WorkflowType, orDefault(r.TaskQueue), r.ExternalId, r.GetInput().GetData())
	answer, known, err := w.repeated(namespace, r.RequestId, content)
	if err != nil || known {
		return &kagziv1.StartWorkflowResponse{RunId: answer.runID, AlreadyExists: answer.existed}, err
	}
	if err := w.enabled(namespace); err != nil {
		return nil, err
	}
	had := w.byExternalID[namespace+"\x00"+r.ExternalId]
	if had != nil && r.ExternalId != "" {
		never := r.ExternalIdReuse == kagziv1.ExternalIdReuse_EXTERNAL_ID_REUSE_NEVER
		reject := r.ExternalIdReuse == kagziv1.ExternalIdReuse_EXTERNAL_ID_REUSE_REJECT
		switch open := !ended(had.Status); {
		case open && reject:
			return nil, externalIDTaken(had)
		case open || never:
			w.remember(namespace, r.RequestId, answered{had.RunId, true, content})
			return &kagziv1.StartWorkflowResponse{RunId: had.RunId, AlreadyExists: true}, nil
		}
	}
	id := w.begins(requested(r, namespace, deadline), planOf(r.WorkflowType), at).RunId
	w.remember(namespace, r.RequestId, answered{runID: id, content: content})
	return &kagziv1.StartWorkflowResponse{RunId: id}, nil
}

func externalIDTaken(by *run) error {
	return taken("run", by.RunId, fmt.Sprintf("external id %q is in use by run %s", by.ExternalId, by.RunId))
}

// requested is the run that a request asks for.
func requested(r *kagziv1.StartWorkflowRequest, namespace string, deadline time.Time) *kagziv1.Workflow {
	r = proto.CloneOf(r)
	m := &kagziv1.Workflow{
		Namespace: namespace, ExternalId: r.ExternalId, TaskQueue: orDefault(r.TaskQueue), WorkflowType: r.WorkflowType, Version: r.Version,
		Input: r.Input, RetryPolicy: r.RetryPolicy, Timeouts: r.Timeouts, DeadlineAt: stamp(deadline), OnFailureWorkflow: r.OnFailureWorkflow,
		OnFailureTaskQueue: r.OnFailureTaskQueue, Priority: r.Priority, Tags: r.Tags, Requirements: r.Requirements,
		ConcurrencyKey: r.ConcurrencyKey, ConcurrencyLimit: r.ConcurrencyLimit,
	}
	if m.ConcurrencyKey != "" && m.ConcurrencyLimit == 0 {
		m.ConcurrencyLimit = 1
	}
	if r.ParentRunId != "" {
		m.ParentRunId = proto.String(r.ParentRunId)
	}
	if r.ParentStepId != "" {
		m.ParentStepId = proto.String(r.ParentStepId)
	}
	return m
}

// checkStart refuses a start that breaks a limit.
func (w *World) checkStart(r *kagziv1.StartWorkflowRequest) (namespace string, at, deadline time.Time, err error) {
	if namespace, err = namespaceOf(r.Namespace); err != nil {
		return
	}
	if at, err = timeOf("start_at", r.StartAt); err != nil {
		return
	}
	if r.StartIn != nil {
		at = w.now.Add(r.StartIn.AsDuration())
	}
	if deadline, err = timeOf("deadline_at", r.DeadlineAt); err != nil {
		return
	}
	err = first(checkOptionalID("parent_run_id", r.ParentRunId), checkOptionalID("parent_step_id", r.ParentStepId),
		checkOptionalName("external_id", r.ExternalId), checkName("task_queue", orDefault(r.TaskQueue)), checkName("workflow_type", r.WorkflowType),
		checkPayload("input", r.Input), checkOptionalName("version", r.Version), checkRetryPolicy(r.RetryPolicy),
		checkOptionalName("on_failure_workflow", r.OnFailureWorkflow), checkOptionalName("on_failure_task_queue", r.OnFailureTaskQueue),
		checkLabels("tags", r.Tags), checkLabels("requirements", r.Requirements), checkOptionalName("concurrency_key", r.ConcurrencyKey),
		checkRequestID(r.RequestId))
	_, known := kagziv1.ExternalIdReuse_name[int32(r.ExternalIdReuse)]
	switch {
	case err != nil:
	case !known:
		err = invalid("external_id_reuse", "has the unknown value %d", r.ExternalIdReuse)
	case r.GetPriority() < -maxPriority || r.GetPriority() > maxPriority:
		err = invalid("priority", "must be between -%d and %d, got %d", maxPriority, maxPriority, r.GetPriority())
	case r.ConcurrencyLimit < 0:
		err = invalid("concurrency_limit", "must be between 0 and 1000000, got %d", r.ConcurrencyLimit)
	case r.ConcurrencyLimit > 0 && r.ConcurrencyKey == "":
		err = invalid("concurrency_limit", "needs a concurrency_key")
	case r.OnFailureTaskQueue != "" && r.OnFailureWorkflow == "":
		err = invalid("on_failure_task_queue", "needs an on_failure_workflow")
	case at.Sub(w.now) > maxDelay:
		err = invalid("start_at", "lies more than 10 years ahead")
	case !deadline.IsZero() && deadline.Before(w.now):
		err = invalid("deadline_at", "has already passed")
	}
	return
}

// repeated is what a request was told before; known when it was.
func (w *World) repeated(namespace, requestID, content string) (answer answered, known bool, err error) {
	if requestID == "" {
		return answered{}, false, nil
	}
	answer, known = w.requests[namespace+"\x00"+requestID]
	if known && answer.content != content {
		return answered{}, false, conflict("run", answer.runID, "this request was made before with other content: it started run "+answer.runID)
	}
	return answer, known, nil
}

func (w *World) remember(namespace, requestID string, answer answered) {
	if requestID != "" {
		w.requests[namespace+"\x00"+requestID] = answer
	}
}
