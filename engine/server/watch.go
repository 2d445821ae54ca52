package server

import (
	"context"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// WaitWorkflow waits until the run has ended, or the wait is over, and returns it either way.
func (s *Server) WaitWorkflow(ctx context.Context,
	request *kagziv1.WaitWorkflowRequest) (*kagziv1.WaitWorkflowResponse, error) {
	return s.watch.WaitWorkflow(ctx, request)
}

// AwaitWorkflows answers for each run that the stream names how it ended, once it has.
func (s *Server) AwaitWorkflows(stream kagziv1.WorkflowService_AwaitWorkflowsServer) error {
	return s.watch.AwaitWorkflows(stream)
}

// WatchWorkflow streams the run and its steps as they stand, then what changes, and ends with the end of the run.
func (s *Server) WatchWorkflow(request *kagziv1.WatchWorkflowRequest,
	stream kagziv1.WorkflowService_WatchWorkflowServer) error {
	return s.watch.WatchWorkflow(request, stream)
}

// Watch tells what changes in a namespace.
func (s *Server) Watch(request *kagziv1.WatchRequest, stream kagziv1.AdminService_WatchServer) error {
	return s.watch.Watch(request, stream)
}

// WatchEvents tells the latest events and then those that follow.
func (s *Server) WatchEvents(request *kagziv1.WatchEventsRequest, stream kagziv1.AdminService_WatchEventsServer) error {
	if s.options.Beside {
		return errBeside
	}
	return s.options.Events.Watch(request, stream, s.stopping)
}
