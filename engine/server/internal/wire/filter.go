package wire

import (
	"slices"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// RunFilterOf reads the filter of a list of runs.
func RunFilterOf(r *kagziv1.ListWorkflowsRequest) (engine.RunFilter, error) {
	var f engine.RunFilter
	var err error
	if f.Namespace, err = NamespaceOf(r.Namespace); err != nil {
		return f, err
	}
	if f.CreatedAfter, err = TimeOf("created_after", r.CreatedAfter); err != nil {
		return f, err
	}
	if f.CreatedBefore, err = TimeOf("created_before", r.CreatedBefore); err != nil {
		return f, err
	}
	for _, name := range []struct {
		field string
		name  *string
	}{{"schedule_id", r.ScheduleId}, {"parent_run_id", r.ParentRunId}, {"worker_id", r.WorkerId}} {
		if name.name != nil && *name.name == "" { // an empty name is probably a mistake, and would select all runs
			return f, engine.Invalid(name.field, "must not be empty: leave it unset to select every value")
		}
	}
	if f.ParentRunID, err = OptionalIDOf("parent_run_id", r.GetParentRunId()); err != nil {
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

// namesOf merges two fields that name the same thing: a list and a single name.
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

// statusesOf merges both fields that name statuses. Statuses that only schedules have select no
// run.
func statusesOf(r *kagziv1.ListWorkflowsRequest) ([]engine.RunStatus, error) {
	if len(r.Statuses) > engine.MaxTypes {
		return nil, engine.Invalid("statuses", "has %d entries, at most %d are allowed", len(r.Statuses),
			engine.MaxTypes)
	}
	var statuses []engine.RunStatus
	add := func(field string, status kagziv1.WorkflowStatus) error {
		if _, known := kagziv1.WorkflowStatus_name[int32(status)]; !known ||
			status == kagziv1.WorkflowStatus_WORKFLOW_STATUS_UNSPECIFIED {
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

// StepFilterOf returns the attempts that a request selects.
func StepFilterOf(r *kagziv1.ListStepsRequest) (engine.StepFilter, error) {
	f := engine.StepFilter{Name: r.GetStepName(), Latest: r.GetLatestOnly()}
	if len(r.GetStatuses()) > engine.MaxTypes {
		return f, engine.Invalid("statuses", "has %d entries, at most %d are allowed", len(r.GetStatuses()),
			engine.MaxTypes)
	}
	for _, status := range r.GetStatuses() {
		if _, known := kagziv1.StepStatus_name[int32(status)]; !known ||
			status == kagziv1.StepStatus_STEP_STATUS_UNSPECIFIED {
			return f, engine.Invalid("statuses", "has the unknown value %d", status)
		}
		f.Statuses = append(f.Statuses, engine.StepStatus(status))
	}
	return f, engine.CheckOptionalName("step_name", f.Name)
}

// BulkSelection returns the filter of a bulk change, from either field; nil if it has none.
func BulkSelection(r *kagziv1.BulkWorkflowsRequest) *kagziv1.ListWorkflowsRequest {
	if r.GetFilter() == nil {
		return r.GetSelection()
	}
	return r.GetFilter()
}
