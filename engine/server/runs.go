package server

import (
	"context"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// GetWorkflow is one run with its payloads.
func (s *Server) GetWorkflow(ctx context.Context, request *kagziv1.GetWorkflowRequest) (*kagziv1.GetWorkflowResponse, error) {
	namespace, id, err := wire.RunOf(request)
	if err != nil {
		return nil, err
	}
	run, err := s.store.GetRun(ctx, namespace, id)
	if err != nil {
		return nil, err
	}
	return &kagziv1.GetWorkflowResponse{Workflow: wire.RunTo(&run)}, nil
}

// GetWorkflowByExternalId is the newest run with that id, ended or not.
func (s *Server) GetWorkflowByExternalId(ctx context.Context, request *kagziv1.GetWorkflowByExternalIdRequest) (*kagziv1.GetWorkflowByExternalIdResponse, error) {
	namespace, err := wire.NamespaceOf(request.Namespace)
	if err != nil {
		return nil, err
	}
	if err := engine.CheckName("external_id", request.ExternalId); err != nil {
		return nil, err
	}
	run, err := s.store.GetRunByExternalID(ctx, namespace, request.ExternalId)
	if err != nil {
		return nil, err
	}
	return &kagziv1.GetWorkflowByExternalIdResponse{Workflow: wire.RunTo(&run)}, nil
}

// WaitWorkflow waits until the run has ended, or the wait is over, and returns it either way.
func (s *Server) WaitWorkflow(ctx context.Context, request *kagziv1.WaitWorkflowRequest) (*kagziv1.WaitWorkflowResponse, error) {
	namespace, id, err := wire.RunOf(request)
	if err != nil {
		return nil, err
	}
	wait, err := wire.WaitOf(request.Wait, engine.MaxPollWait)
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	bell := make(waitBell, 1)
	w := &waiter{id: id, to: bell}
	s.waiters.enter(w)
	defer s.waiters.leave(w)
	for look, over := !s.fresh.has(namespace, id), false; ; look = true {
		if look {
			run, err := s.store.GetRun(ctx, namespace, id)
			if err != nil {
				return nil, err
			}
			if run.Status.Ended() || over {
				return &kagziv1.WaitWorkflowResponse{Workflow: wire.RunTo(&run), Finished: run.Status.Ended()}, nil
			}
		}
		select {
		case <-bell:
		case <-timer.C:
			over = true
		case <-s.stopping:
			return nil, wire.ErrStopping
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
