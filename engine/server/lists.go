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
	filter, q, err := s.runSelection(ctx, request)
	if err != nil {
		return nil, err
	}
	page, err := wire.PageOf(request, request.Page, wire.BelowIDs)
	if err != nil {
		return nil, err
	}
	list, info, err := s.runs(filter).page(ctx, request, page, q)
	if err != nil {
		return nil, err
	}
	return &kagziv1.ListWorkflowsResponse{Workflows: list, Page: info}, nil
}

// runs lists the runs that a filter of the store selects.
func (s *Server) runs(filter engine.RunFilter) *listing[engine.Run, *kagziv1.Workflow] {
	return &listing[engine.Run, *kagziv1.Workflow]{
		read: func(ctx context.Context, p engine.Page) ([]engine.Run, engine.PageInfo, error) {
			return s.store.ListRuns(ctx, filter, p)
		},
		message: wire.ListedRunTo, place: func(r *engine.Run) engine.Cursor { return engine.Cursor{ID: r.ID} },
	}
}

// runSelection returns what selects the runs of a request: a filter for the store, and the part of
// the query that it leaves to be compared after reading; nil: nothing.
func (s *Server) runSelection(ctx context.Context, r *kagziv1.ListWorkflowsRequest) (engine.RunFilter,
	*query.Query[*kagziv1.Workflow], error) {
	q, err := queryOf(&query.Runs, r.Query, s.now())
	if err != nil {
		return engine.RunFilter{}, nil, err
	}
	if q == nil {
		f, err := s.runFilter(ctx, r)
		return f, nil, err
	}
	namespace, err := wire.NamespaceOf(r.Namespace)
	if err != nil {
		return engine.RunFilter{}, nil, err
	}
	if err := q.Resolve("schedule", func(ref string) (string, error) {
		return s.scheduleID(ctx, namespace, ref)
	}); err != nil {
		return engine.RunFilter{}, nil, err
	}
	narrowed := proto.CloneOf(r)
	rest, _ := query.Narrow(q, narrowed)
	f, err := s.runFilter(ctx, narrowed)
	return f, rest, err
}

// runFilter returns the filter of a request. It looks up a schedule given by name, because runs
// hold only the id. An id may be that of a deleted schedule.
func (s *Server) runFilter(ctx context.Context, r *kagziv1.ListWorkflowsRequest) (engine.RunFilter, error) {
	f, err := wire.RunFilterOf(r)
	if err != nil || f.ScheduleID == "" {
		return f, err
	}
	f.ScheduleID, err = s.scheduleID(ctx, f.Namespace, f.ScheduleID)
	return f, err
}

// scheduleID returns the id of a schedule given by id or name.
func (s *Server) scheduleID(ctx context.Context, namespace, ref string) (string, error) {
	id, err := engine.ParseID(ref)
	if err != nil {
		schedule, err := s.store.GetSchedule(ctx, namespace, ref)
		if err != nil {
			return "", err
		}
		id = schedule.ID
	}
	return id.String(), nil
}

// ListSteps returns a page of the attempts of a run's steps that the request selects. A page ends early if it would be too
// large to send.
func (s *Server) ListSteps(ctx context.Context, request *kagziv1.ListStepsRequest) (*kagziv1.ListStepsResponse, error) {
	namespace, id, err := wire.RunOf(request)
	if err != nil {
		return nil, err
	}
	filter, err := wire.StepFilterOf(request)
	if err != nil {
		return nil, err
	}
	page, err := wire.PageOf(request, request.Page, wire.BehindSeries)
	if err != nil {
		return nil, err
	}
	steps, info, err := s.store.ListSteps(ctx, namespace, id, filter, page)
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
