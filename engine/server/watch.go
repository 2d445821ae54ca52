package server

import (
	"context"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// WaitWorkflow waits until the run has ended or the wait times out, and returns the run either way.
func (s *Server) WaitWorkflow(ctx context.Context,
	request *kagziv1.WaitWorkflowRequest) (*kagziv1.WaitWorkflowResponse, error) {
	return s.watch.WaitWorkflow(ctx, request)
}

// AwaitWorkflows sends, for each run that the stream names, how it ended once it has.
func (s *Server) AwaitWorkflows(stream kagziv1.WorkflowService_AwaitWorkflowsServer) error {
	return s.watch.AwaitWorkflows(stream)
}

// WatchWorkflow sends the run and its steps, then their changes, until the run ends.
func (s *Server) WatchWorkflow(request *kagziv1.WatchWorkflowRequest,
	stream kagziv1.WorkflowService_WatchWorkflowServer) error {
	method := kagziv1.WorkflowService_WatchWorkflow_FullMethodName
	return s.onChain(stream.Context(), method, request, func(request any) error {
		return s.watch.WatchWorkflow(request.(*kagziv1.WatchWorkflowRequest), stream)
	})
}

// Watch sends the changes in a namespace.
func (s *Server) Watch(request *kagziv1.WatchRequest, stream kagziv1.AdminService_WatchServer) error {
	return s.watch.Watch(request, stream)
}

// WatchEvents sends the latest events and then new ones.
func (s *Server) WatchEvents(request *kagziv1.WatchEventsRequest, stream kagziv1.AdminService_WatchEventsServer) error {
	if s.options.Beside {
		return errBeside
	}
	return s.options.Events.Watch(request, stream, s.stopping)
}
