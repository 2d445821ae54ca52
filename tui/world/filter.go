package world

import (
	"slices"
	"sort"
	"strings"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// runFilter is which runs a list shows: every field that is set must hold, and within a list any.
type runFilter struct {
	namespace                          string
	statuses                           []kagziv1.WorkflowStatus
	types, queues                      []string
	after, before                      time.Time
	tags                               map[string]string
	parentID, scheduleID, workerID, id string // id: a prefix of the run id or of the external id
}

// facts are what a filter looks at.
type facts struct {
	namespace, id, externalID, kind, queue string
	status                                 kagziv1.WorkflowStatus
	created                                time.Time
	tags                                   map[string]string
	parentID, scheduleID, workerID         string
}

func (r *run) facts() facts {
	return facts{
		namespace: r.Namespace, id: r.RunId, externalID: r.ExternalId, kind: r.WorkflowType, queue: r.TaskQueue, status: r.Status,
		created: moment(r.CreatedAt), tags: r.Tags, parentID: r.GetParentRunId(), scheduleID: r.GetScheduleId(), workerID: r.GetWorkerId(),
	}
}

func (f *runFilter) matches(x facts) bool {
	switch {
	case x.namespace != f.namespace,
		len(f.statuses) > 0 && !slices.Contains(f.statuses, x.status),
		len(f.types) > 0 && !slices.Contains(f.types, x.kind),
		len(f.queues) > 0 && !slices.Contains(f.queues, x.queue),
		!f.after.IsZero() && !x.created.After(f.after),
		!f.before.IsZero() && !x.created.Before(f.before),
		f.parentID != "" && x.parentID != f.parentID,
		f.scheduleID != "" && x.scheduleID != f.scheduleID,
		f.workerID != "" && x.workerID != f.workerID,
		f.id != "" && !strings.HasPrefix(x.id, f.id) && !strings.HasPrefix(x.externalID, f.id):
		return false
	}
	for key, value := range f.tags {
		if had, ok := x.tags[key]; !ok || had != value {
			return false
		}
	}
	return true
}

func filterOf(r *kagziv1.ListWorkflowsRequest) (*runFilter, error) {
	f := &runFilter{tags: r.Tags, parentID: strings.ToLower(r.GetParentRunId()), scheduleID: r.GetScheduleId(), workerID: r.GetWorkerId(), id: r.GetSearch()}
	var err error
	if f.namespace, err = namespaceOf(r.Namespace); err != nil {
		return nil, err
	}
	if f.after, err = timeOf("created_after", r.CreatedAfter); err != nil {
		return nil, err
	}
	if f.before, err = timeOf("created_before", r.CreatedBefore); err != nil {
		return nil, err
	}
	if f.statuses, err = statusesOf(r); err != nil {
		return nil, err
	}
	if f.types, err = namesOf("workflow_types", r.WorkflowTypes, "workflow_type", r.WorkflowType); err != nil {
		return nil, err
	}
	if f.queues, err = namesOf("task_queues", r.TaskQueues, "task_queue", r.TaskQueue); err != nil {
		return nil, err
	}
	return f, first(checkOptionalID("parent_run_id", r.GetParentRunId()), checkOptionalName("schedule_id", f.scheduleID),
		checkOptionalName("worker_id", f.workerID), checkOptionalName("search", f.id), checkLabels("tags", f.tags))
}

// namesOf reads the two fields, of many and of one, that name the same thing.
func namesOf(field string, names []string, oneField string, one *string) ([]string, error) {
	if len(names) > maxTypes {
		return nil, invalid(field, "has %d entries, at most %d are allowed", len(names), maxTypes)
	}
	for _, name := range names {
		if err := checkName(field, name); err != nil {
			return nil, err
		}
	}
	if one == nil {
		return names, nil
	}
	return append(slices.Clip(names), *one), checkName(oneField, *one)
}

// statusesOf reads both fields that name statuses. Those that only schedules have select no run.
func statusesOf(r *kagziv1.ListWorkflowsRequest) ([]kagziv1.WorkflowStatus, error) {
	if len(r.Statuses) > maxTypes {
		return nil, invalid("statuses", "has %d entries, at most %d are allowed", len(r.Statuses), maxTypes)
	}
	statuses := slices.Clip(r.Statuses)
	if r.StatusFilter != nil {
		statuses = append(statuses, *r.StatusFilter)
	}
	for _, s := range statuses {
		if _, known := kagziv1.WorkflowStatus_name[int32(s)]; !known || s == 0 {
			return nil, invalid("statuses", "has the unknown value %d", s)
		}
	}
	return statuses, nil
}

// All runs, the newest first: those of the world, and then those of its archive.

func (w *World) runCount() int { return len(w.runs) + w.archive.n }

func (w *World) runID(i int) string {
	if i < len(w.runs) {
		return w.runs[len(w.runs)-1-i].RunId
	}
	return w.archive.id(w.runCount() - 1 - i)
}

// runFacts is what a filter looks at; of archived runs the ids only where they are asked for, since they take time to work out.
func (w *World) runFacts(i int, ids bool) facts {
	if i < len(w.runs) {
		return w.runs[len(w.runs)-1-i].facts()
	}
	return w.archive.facts(w.runCount()-1-i, ids)
}

func (w *World) runAt(i int) *run {
	if i < len(w.runs) {
		return w.runs[len(w.runs)-1-i]
	}
	return w.archive.run(w.runCount() - 1 - i)
}

// everything says that a filter asks for nothing but a namespace.
func (f *runFilter) everything() bool {
	return len(f.statuses)+len(f.types)+len(f.queues)+len(f.tags) == 0 && f.after.IsZero() && f.before.IsZero() &&
		f.parentID+f.scheduleID+f.workerID+f.id == ""
}

// runListing is the runs that a filter selects, newest first, without their payloads.
func (w *World) runListing(f *runFilter) listing[*kagziv1.Workflow] {
	l := listing[*kagziv1.Workflow]{
		n: w.runCount(), key: w.runID, falls: true,
		show: func(i int) *kagziv1.Workflow { return w.runAt(i).summary() },
	}
	if !(f.everything() && len(w.namespaces) == 1) {
		l.keep = func(i int) bool { return f.matches(w.runFacts(i, f.id != "")) }
	}
	if bound := f.after.Add(-time.Millisecond); !f.after.IsZero() { // nothing from there on is asked for: ids are in the order of time
		l.n = sort.Search(l.n, func(i int) bool { return idTime(w.runID(i)).Before(bound) })
	}
	return l
}
