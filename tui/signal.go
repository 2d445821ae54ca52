package tui

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Signal delivers a signal, of a run that continued as new to the one that goes on for it, as the
// SDK does. It answers which run was asked last.
func Signal(ctx context.Context, api API, request *kagziv1.SignalWorkflowRequest) (runID string,
	answer *kagziv1.SignalWorkflowResponse, err error) {
	request = proto.CloneOf(request)
	for followed := map[string]bool{}; ; {
		answer, err = api.SignalWorkflow(ctx, request)
		followed[request.GetRunId()] = true
		next := continuedAs(err)
		if next == "" || followed[next] { // a server that answers in circles is not followed
			return request.GetRunId(), answer, err
		}
		request.RunId = next
	}
}

// continuedAs is the run that goes on for the one that a call was refused for, because it has ended; empty: none.
func continuedAs(err error) string {
	s := status.Convert(err)
	if s.Code() != codes.FailedPrecondition {
		return ""
	}
	for _, d := range s.Details() {
		if detail, ok := d.(*kagziv1.ErrorDetail); ok {
			return detail.GetMetadata()["continued_as_run_id"]
		}
	}
	return ""
}
