package server

import (
	"context"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// ListWorkflows is the runs that a filter selects, newest first, without their payloads.
func (s *Server) ListWorkflows(ctx context.Context, request *kagziv1.ListWorkflowsRequest) (*kagziv1.ListWorkflowsResponse, error) {
	filter, err := s.runFilter(ctx, request)
	if err != nil {
		return nil, err
	}
	page, err := pageOf(request, request.Page, belowIDs)
	if err != nil {
		return nil, err
	}
	list, info, err := s.listRuns(ctx, request, filter, page)
	if err != nil {
		return nil, err
	}
	return &kagziv1.ListWorkflowsResponse{Workflows: list, Page: info}, nil
}

// listRuns is one page of runs, as one answer to request has room for.
func (s *Server) listRuns(
	ctx context.Context, request proto.Message, filter engine.RunFilter, page engine.Page,
) ([]*kagziv1.Workflow, *kagziv1.PageInfo, error) {
	runs, info, err := s.store.ListRuns(ctx, filter, page)
	if err != nil {
		return nil, nil, err
	}
	list, around := pageOfItems(request, page, info, runs, runTo, func(r *engine.Run) engine.Cursor { return engine.Cursor{ID: r.ID} })
	return list, around, nil
}

// runFilter is what a request selects. Runs know the id of their schedule only, people its name, so one that is named is looked up; an id may be
// that of one that was deleted.
func (s *Server) runFilter(ctx context.Context, r *kagziv1.ListWorkflowsRequest) (engine.RunFilter, error) {
	f, err := runFilterOf(r)
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

func runFilterOf(r *kagziv1.ListWorkflowsRequest) (engine.RunFilter, error) {
	var f engine.RunFilter
	var err error
	if f.Namespace, err = namespaceOf(r.Namespace); err != nil {
		return f, err
	}
	if f.CreatedAfter, err = timeOf("created_after", r.CreatedAfter); err != nil {
		return f, err
	}
	if f.CreatedBefore, err = timeOf("created_before", r.CreatedBefore); err != nil {
		return f, err
	}
	for _, name := range []struct {
		field string
		name  *string
	}{{"schedule_id", r.ScheduleId}, {"parent_run_id", r.ParentRunId}, {"worker_id", r.WorkerId}} {
		if name.name != nil && *name.name == "" { // it would select all, where an id that got lost on the way was meant
			return f, engine.Invalid(name.field, "must not be empty: leave it unset to select whatever it is")
		}
	}
	if f.ParentRunID, err = optionalIDOf("parent_run_id", r.GetParentRunId()); err != nil {
		return f, err
	}
	if f.Statuses, err = statusesOf(r); err != nil {
		return f, err
	}
	f.Tags = r.Tags
	if f.Types, err = namesOf("workflow_types", r.WorkflowTypes, "workflow_type", r.WorkflowType); err != nil {
		return f, err
	}
	if f.Queues, err = namesOf("task_queues", r.TaskQueues, "task_queue", r.TaskQueue); err != nil {
		return f, err
	}
	f.ScheduleID, f.WorkerID, f.Search = r.GetScheduleId(), r.GetWorkerId(), r.GetSearch()
	return f, checkRunFilter(f)
}

// namesOf reads the two fields, of many and of one, that name the same thing.
func namesOf(field string, names []string, oneField string, one *string) ([]string, error) {
	if len(names) > engine.MaxTypes {
		return nil, engine.Invalid(field, "has %d entries, at most %d are allowed", len(names), engine.MaxTypes)
	}
	for _, name := range names {
		if err := engine.CheckName(field, name); err != nil {
			return nil, err
		}
	}
	if one == nil {
		return names, nil
	}
	return append(slices.Clip(names), *one), engine.CheckName(oneField, *one)
}

func checkRunFilter(f engine.RunFilter) error {
	for _, name := range []struct{ field, name string }{
		{"schedule_id", f.ScheduleID}, {"worker_id", f.WorkerID}, {"search", f.Search},
	} {
		if err := engine.CheckOptionalName(name.field, name.name); err != nil {
			return err
		}
	}
	return engine.CheckLabels("tags", f.Tags)
}

// statusesOf reads both fields that name statuses. Those that only schedules have select no run.
func statusesOf(r *kagziv1.ListWorkflowsRequest) ([]engine.RunStatus, error) {
	if len(r.Statuses) > engine.MaxTypes {
		return nil, engine.Invalid("statuses", "has %d entries, at most %d are allowed", len(r.Statuses), engine.MaxTypes)
	}
	var statuses []engine.RunStatus
	add := func(field string, status kagziv1.WorkflowStatus) error {
		if _, known := kagziv1.WorkflowStatus_name[int32(status)]; !known || status == kagziv1.WorkflowStatus_WORKFLOW_STATUS_UNSPECIFIED {
			return engine.Invalid(field, "has the unknown value %d", status)
		}
		statuses = append(statuses, engine.RunStatus(status))
		return nil
	}
	if r.StatusFilter != nil {
		if err := add("status_filter", *r.StatusFilter); err != nil {
			return nil, err
		}
	}
	for _, status := range r.Statuses {
		if err := add("statuses", status); err != nil {
			return nil, err
		}
	}
	return statuses, nil
}

// ListSteps is all attempts of a run's steps. A page ends early when it would be too large to send.
func (s *Server) ListSteps(ctx context.Context, request *kagziv1.ListStepsRequest) (*kagziv1.ListStepsResponse, error) {
	namespace, id, err := runOf(request)
	if err != nil {
		return nil, err
	}
	if err := engine.CheckOptionalName("step_name", request.GetStepName()); err != nil {
		return nil, err
	}
	page, err := pageOf(request, request.Page, behindSeries)
	if err != nil {
		return nil, err
	}
	steps, info, err := s.store.ListSteps(ctx, namespace, id, request.GetStepName(), page)
	if err != nil {
		return nil, err
	}
	message := func(s *engine.Step) *kagziv1.Step { return stepTo(namespace, s) }
	list, around := pageOfItems(request, page, info, steps, message, stepCursor)
	return &kagziv1.ListStepsResponse{Steps: list, Page: around}, nil
}

func stepCursor(s *engine.Step) engine.Cursor {
	return engine.Cursor{Number: s.Sequence, Minor: s.Attempt}
}

// GetStep is one attempt.
func (s *Server) GetStep(ctx context.Context, request *kagziv1.GetStepRequest) (*kagziv1.GetStepResponse, error) {
	namespace, err := namespaceOf(request.Namespace)
	if err != nil {
		return nil, err
	}
	id, err := idOf("step_id", request.StepId)
	if err != nil {
		return nil, err
	}
	step, err := s.store.GetStep(ctx, namespace, id)
	if err != nil {
		return nil, err
	}
	return &kagziv1.GetStepResponse{Step: stepTo(namespace, &step)}, nil
}

// ListWorkflowTypes is the types that have runs, by name.
func (s *Server) ListWorkflowTypes(ctx context.Context, request *kagziv1.ListWorkflowTypesRequest) (*kagziv1.ListWorkflowTypesResponse, error) {
	namespace, err := namespaceOf(request.Namespace)
	if err != nil {
		return nil, err
	}
	page, err := pageOf(request, request.Page, behindNames)
	if err != nil {
		return nil, err
	}
	types, info, err := s.store.ListTypes(ctx, namespace, page)
	if err != nil {
		return nil, err
	}
	list, around := pageOfItems(request, page, info, types, typeTo, func(t *engine.TypeInfo) engine.Cursor { return engine.Cursor{Name: t.Type} })
	return &kagziv1.ListWorkflowTypesResponse{WorkflowTypes: list, Page: around}, nil
}

func typeTo(t *engine.TypeInfo) *kagziv1.WorkflowTypeInfo {
	return &kagziv1.WorkflowTypeInfo{WorkflowType: t.Type, TotalRuns: t.Total, ActiveRuns: t.Active, TaskQueues: t.Queues}
}
