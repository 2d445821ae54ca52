package server

import (
	"context"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/async"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// WaitWorkflow waits until the run has ended, or the wait is over, and returns it either way.
func (s *Server) WaitWorkflow(ctx context.Context, request *kagziv1.WaitWorkflowRequest) (*kagziv1.WaitWorkflowResponse, error) {
	return s.watch.WaitWorkflow(ctx, request)
}

// AwaitWorkflows answers for each run that the stream names how it ended, once it has.
func (s *Server) AwaitWorkflows(stream kagziv1.WorkflowService_AwaitWorkflowsServer) error {
	return s.watch.AwaitWorkflows(stream)
}

// WatchWorkflow streams the run and its steps as they stand, then what changes, and ends with the end of the run.
func (s *Server) WatchWorkflow(request *kagziv1.WatchWorkflowRequest, stream kagziv1.WorkflowService_WatchWorkflowServer) error {
	return s.watch.WatchWorkflow(request, stream)
}

// Watch tells what changes in a namespace.
func (s *Server) Watch(request *kagziv1.WatchRequest, stream kagziv1.AdminService_WatchServer) error {
	return s.watch.Watch(request, stream)
}

// defaultTail is how much of the past WatchEvents tells when it is not said.
const defaultTail = 200

// WatchEvents tells the latest events and then those that follow. A reader who is too slow misses some, and sees that by their sequence.
// A sequence that this server has not reached, or had another event for, is from before it started, and counts as none.
func (s *Server) WatchEvents(request *kagziv1.WatchEventsRequest, stream kagziv1.AdminService_WatchEventsServer) error {
	if s.options.Beside {
		return errBeside
	}
	after, tail := request.After, int(request.Tail)
	switch {
	case after < 0:
		return engine.Invalid("after", "must not be negative, got %d", after)
	case tail < 0 || tail > keptEvents:
		return engine.Invalid("tail", "must be between 0 (which means %d) and %d, got %d", defaultTail, keptEvents, tail)
	case tail == 0:
		tail = defaultTail
	}
	if _, err := wire.TimeOf("after_at", request.AfterAt); err != nil {
		return err
	}
	bell, leave := s.events.follow()
	defer leave()
	if after > s.events.newest() || request.AfterAt != nil && !s.events.mayBe(after, request.AfterAt) {
		after = 0
	}
	for {
		events := s.events.past(after, tail)
		for _, event := range events {
			if err := stream.Send(event); err != nil {
				return err
			}
			after = event.Sequence
		}
		tail = keptEvents // what comes from now on is told whole
		if len(events) > 0 {
			continue
		}
		if err := async.Await(stream.Context(), s.stopping, bell); err != nil {
			return err
		}
	}
}
