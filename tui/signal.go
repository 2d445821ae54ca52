package tui

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Signal delivers a signal to a run, or to the run that it continued as, like the SDK does. It
// returns the id of the last run that it tried.
func Signal(ctx context.Context, api API, request *kagziv1.SignalWorkflowRequest) (runID string,
	answer *kagziv1.SignalWorkflowResponse, err error) {
	request = proto.CloneOf(request)
	for followed := map[string]bool{}; ; {
		answer, err = api.SignalWorkflow(ctx, request)
		followed[request.GetRunId()] = true
		next := continuedAs(err)
		if next == "" || followed[next] { // a chain of runs that loops is not followed
			return request.GetRunId(), answer, err
		}
		request.RunId = next
	}
}

// continuedAs returns the run that an ended run continued as, from the error of a call; empty if
// there is none.
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
