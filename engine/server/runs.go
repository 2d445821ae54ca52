package server

import (
	"context"
	"time"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// GetWorkflow is one run with its payloads.
func (s *Server) GetWorkflow(ctx context.Context, request *kagziv1.GetWorkflowRequest) (*kagziv1.GetWorkflowResponse, error) {
	namespace, id, err := runOf(request)
	if err != nil {
		return nil, err
	}
	run, err := s.store.GetRun(ctx, namespace, id)
	if err != nil {
		return nil, err
	}
	return &kagziv1.GetWorkflowResponse{Workflow: runTo(&run)}, nil
}

// runOf reads the namespace and the run of a request.
func runOf(r interface {
	GetNamespace() string
	GetRunId() string
}) (string, engine.ID, error) {
	namespace, err := namespaceOf(r.GetNamespace())
	if err != nil {
		return "", engine.ID{}, err
	}
	id, err := idOf("run_id", r.GetRunId())
	return namespace, id, err
}

// GetWorkflowByExternalId is the newest run with that id, ended or not.
func (s *Server) GetWorkflowByExternalId(ctx context.Context, request *kagziv1.GetWorkflowByExternalIdRequest) (*kagziv1.GetWorkflowByExternalIdResponse, error) {
	namespace, err := namespaceOf(request.Namespace)
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
	return &kagziv1.GetWorkflowByExternalIdResponse{Workflow: runTo(&run)}, nil
}

// WaitWorkflow waits until the run has ended, or the wait is over, and returns it either way.
func (s *Server) WaitWorkflow(ctx context.Context, request *kagziv1.WaitWorkflowRequest) (*kagziv1.WaitWorkflowResponse, error) {
	namespace, id, err := runOf(request)
	if err != nil {
		return nil, err
	}
	wait, err := waitOf(request.Wait, engine.MaxPollWait)
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
				return &kagziv1.WaitWorkflowResponse{Workflow: runTo(&run), Finished: run.Status.Ended()}, nil
			}
		}
		select {
		case <-bell:
		case <-timer.C:
			over = true
		case <-s.stopping:
			return nil, errStopping
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
