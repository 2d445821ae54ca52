package server

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
)

// ListWorkflows returns a page of the runs that a filter selects, newest first, without payloads.
func (s *Server) ListWorkflows(ctx context.Context,
	request *kagziv1.ListWorkflowsRequest) (*kagziv1.ListWorkflowsResponse, error) {
	filter, err := s.runFilter(ctx, request)
	if err != nil {
		return nil, err
	}
	page, err := wire.PageOf(request, request.Page, wire.BelowIDs)
	if err != nil {
		return nil, err
	}
	list, info, err := s.listRuns(ctx, request, filter, page)
	if err != nil {
		return nil, err
	}
	return &kagziv1.ListWorkflowsResponse{Workflows: list, Page: info}, nil
}

// listRuns returns one page of runs, cut to what fits in one answer.
func (s *Server) listRuns(
	ctx context.Context, request proto.Message, filter engine.RunFilter, page engine.Page,
) ([]*kagziv1.Workflow, *kagziv1.PageInfo, error) {
	runs, info, err := s.store.ListRuns(ctx, filter, page)
	if err != nil {
		return nil, nil, err
	}
	list, around := wire.PageOfItems(request, page, info, runs, wire.ListedRunTo, func(r *engine.Run) engine.Cursor {
		return engine.Cursor{ID: r.ID}
	})
	return list, around, nil
}

// runFilter returns the filter of a request. It looks up a schedule given by name, because runs
// hold only the id. An id may be that of a deleted schedule.
func (s *Server) runFilter(ctx context.Context, r *kagziv1.ListWorkflowsRequest) (engine.RunFilter, error) {
	f, err := wire.RunFilterOf(r)
	if err != nil || f.ScheduleID == "" {
		return f, err
	}
	id, err := engine.ParseID(f.ScheduleID)
	if err != nil {
		schedule, err := s.store.GetSchedule(ctx, f.Namespace, f.ScheduleID)
		if err != nil {
			return f, err
		}
		id = schedule.ID
	}
	f.ScheduleID = id.String()
	return f, nil
}

// ListSteps returns a page of all attempts of a run's steps. A page ends early if it would be too
// large to send.
func (s *Server) ListSteps(ctx context.Context, request *kagziv1.ListStepsRequest) (*kagziv1.ListStepsResponse, error) {
	namespace, id, err := wire.RunOf(request)
	if err != nil {
		return nil, err
	}
	if err := engine.CheckOptionalName("step_name", request.GetStepName()); err != nil {
		return nil, err
	}
	page, err := wire.PageOf(request, request.Page, wire.BehindSeries)
	if err != nil {
		return nil, err
	}
	steps, info, err := s.store.ListSteps(ctx, namespace, id, request.GetStepName(), page)
	if err != nil {
		return nil, err
	}
	message := func(s *engine.Step) *kagziv1.Step { return wire.StepWithPlaceTo(namespace, s) }
	list, around := wire.PageOfItems(request, page, info, steps, message, wire.StepCursor)
	return &kagziv1.ListStepsResponse{Steps: list, Page: around}, nil
}

// GetStep returns one attempt.
func (s *Server) GetStep(ctx context.Context, request *kagziv1.GetStepRequest) (*kagziv1.GetStepResponse, error) {
	namespace, err := wire.NamespaceOf(request.Namespace)
	if err != nil {
		return nil, err
	}
	id, err := wire.IDOf("step_id", request.StepId)
	if err != nil {
		return nil, err
	}
	step, err := s.store.GetStep(ctx, namespace, id)
	if err != nil {
		return nil, err
	}
	return &kagziv1.GetStepResponse{Step: wire.StepWithPlaceTo(namespace, &step)}, nil
}

// ListWorkflowTypes returns a page of the types that have runs, by name.
func (s *Server) ListWorkflowTypes(ctx context.Context,
	request *kagziv1.ListWorkflowTypesRequest) (*kagziv1.ListWorkflowTypesResponse, error) {
	namespace, err := wire.NamespaceOf(request.Namespace)
	if err != nil {
		return nil, err
	}
	page, err := wire.PageOf(request, request.Page, wire.BehindNames)
	if err != nil {
		return nil, err
	}
	q, err := queryOf(&query.Types, request.Query, s.now())
	if err != nil {
		return nil, err
	}
	types := listing[engine.TypeInfo, *kagziv1.WorkflowTypeInfo]{
		read: func(ctx context.Context, p engine.Page) ([]engine.TypeInfo, engine.PageInfo, error) {
			return s.store.ListTypes(ctx, namespace, p)
		},
		message: wire.TypeTo, place: func(t *engine.TypeInfo) engine.Cursor { return engine.Cursor{Name: t.Type} },
	}
	list, around, err := types.page(ctx, request, page, q)
	if err != nil {
		return nil, err
	}
	return &kagziv1.ListWorkflowTypesResponse{WorkflowTypes: list, Page: around}, nil
}
