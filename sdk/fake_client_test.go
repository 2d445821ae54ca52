package kagzi

import (
	"context"
	"fmt"
	"strings"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

func (f *fake) StartWorkflow(_ context.Context,
	req *kagziv1.StartWorkflowRequest) (*kagziv1.StartWorkflowResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.order {
		if req.GetExternalId() != "" && r.ExternalId == req.GetExternalId() {
			return &kagziv1.StartWorkflowResponse{RunId: r.RunId, AlreadyExists: true}, nil
		}
	}
	id := fmt.Sprintf("run-%d", len(f.order)+1)
	f.add(id, req)
	f.pump()
	return &kagziv1.StartWorkflowResponse{RunId: id}, nil
}

func (f *fake) StartWorkflows(ctx context.Context,
	req *kagziv1.StartWorkflowsRequest) (*kagziv1.StartWorkflowsResponse, error) {
	resp := &kagziv1.StartWorkflowsResponse{}
	for _, r := range req.GetRequests() {
		one := &kagziv1.StartWorkflowsResponse_Result{}
		if r.GetExternalId() == "bad id" {
			one.Error = &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_INVALID_ARGUMENT,
				Message: "external_id"}
		} else {
			one.Started, _ = f.StartWorkflow(ctx, r)
		}
		resp.Results = append(resp.Results, one)
	}
	return resp, nil
}

func (f *fake) GetWorkflow(_ context.Context, req *kagziv1.GetWorkflowRequest) (*kagziv1.GetWorkflowResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.runs[req.GetRunId()]
	if r == nil {
		st, _ := status.New(codes.NotFound, "no such run").WithDetails(&kagziv1.ErrorDetail{
			Code: kagziv1.ErrorCode_ERROR_CODE_NOT_FOUND, Message: "no such run", Subject: "run",
			SubjectId: req.GetRunId()})
		return nil, st.Err()
	}
	return &kagziv1.GetWorkflowResponse{Workflow: proto.Clone(&r.Workflow).(*kagziv1.Workflow)}, nil
}

func (f *fake) WaitWorkflow(ctx context.Context,
	req *kagziv1.WaitWorkflowRequest) (*kagziv1.WaitWorkflowResponse, error) {
	limit := time.After(req.GetWait().AsDuration())
	for {
		f.mu.Lock()
		changed := f.notify
		f.mu.Unlock()
		got, err := f.GetWorkflow(ctx, &kagziv1.GetWorkflowRequest{RunId: req.GetRunId()})
		if err != nil {
			return nil, err
		}
		ended := Status(strings.TrimPrefix(got.Workflow.Status.String(), statusPrefix)).Ended()
		if ended {
			return &kagziv1.WaitWorkflowResponse{Workflow: got.Workflow, Finished: true}, nil
		}
		select {
		case <-changed:
		case <-limit:
			return &kagziv1.WaitWorkflowResponse{Workflow: got.Workflow}, nil
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
}

func (f *fake) CancelWorkflow(_ context.Context,
	req *kagziv1.CancelWorkflowRequest) (*kagziv1.CancelWorkflowResponse, error) {
	if grace := req.GetGrace().AsDuration(); grace > 0 {
		f.mu.Lock()
		f.runs[req.GetRunId()].reason = &kagziv1.ErrorDetail{
			Code: kagziv1.ErrorCode_ERROR_CODE_CANCELLED, Message: req.GetReason()}
		f.mu.Unlock()
		f.askCancel(req.GetRunId(), grace)
		f.mu.Lock()
		defer f.mu.Unlock()
		r := f.runs[req.GetRunId()]
		return &kagziv1.CancelWorkflowResponse{Requested: true, Status: r.Status, GraceUntil: r.CancelGraceUntil}, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.runs[req.GetRunId()]
	f.cancel(r, &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_CANCELLED, Message: req.GetReason()})
	f.pump()
	return &kagziv1.CancelWorkflowResponse{Cancelled: true, Status: r.Status}, nil
}

func (f *fake) SignalWorkflow(_ context.Context,
	req *kagziv1.SignalWorkflowRequest) (*kagziv1.SignalWorkflowResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.runs[req.GetRunId()]
	r.signals = append(r.signals, &kagziv1.Signal{
		Name: req.GetName(), Payload: req.GetPayload(), SignalId: req.GetSignalId()})
	for _, st := range r.steps {
		if st.Kind == kagziv1.StepKind_STEP_KIND_SIGNAL && st.Status == kagziv1.StepStatus_STEP_STATUS_RUNNING &&
			st.SignalName == req.GetName() {
			if f.keepsNoOrder {
				f.consume(r, st)
			}
			f.hint(r, st)
			break
		}
	}
	f.wake(r)
	f.pump()
	return &kagziv1.SignalWorkflowResponse{}, nil
}
