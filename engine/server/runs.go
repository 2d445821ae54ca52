package server

import (
	"context"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// GetWorkflow returns one run with its payloads.
func (s *Server) GetWorkflow(ctx context.Context,
	request *kagziv1.GetWorkflowRequest) (*kagziv1.GetWorkflowResponse, error) {
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

// GetWorkflowByExternalId returns the newest run with that id, ended or not.
func (s *Server) GetWorkflowByExternalId(ctx context.Context,
	request *kagziv1.GetWorkflowByExternalIdRequest) (*kagziv1.GetWorkflowByExternalIdResponse, error) {
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
