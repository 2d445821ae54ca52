package filter

import (
	"maps"
	"slices"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

// Of returns the filter that compiles to a request; a search is one for ids.
func Of(r *kagziv1.ListWorkflowsRequest) Filter {
	var f Filter
	add := func(field Field, values ...string) {
		switch len(values) {
		case 0:
		case 1:
			f = append(f, Condition{Field: field, Op: Equal, Values: values})
		default:
			f = append(f, Condition{Field: field, Op: In, Values: values})
		}
	}
	var statuses []string
	for _, s := range r.GetStatuses() {
		statuses = append(statuses, render.RunStatus(s))
	}
	add(Status, statuses...)
	add(Type, r.GetWorkflowTypes()...)
	add(Queue, r.GetTaskQueues()...)
	if t := r.GetCreatedAfter(); t != nil {
		f = append(f, Condition{Field: Created, Op: Greater, Values: []string{t.AsTime().Format(time.RFC3339Nano)}})
	}
	if t := r.GetCreatedBefore(); t != nil {
		f = append(f, Condition{Field: Created, Op: Less, Values: []string{t.AsTime().Format(time.RFC3339Nano)}})
	}
	for _, key := range slices.Sorted(maps.Keys(r.GetTags())) {
		f = append(f, Condition{Field: Tag, Key: key, Op: Equal, Values: []string{r.GetTags()[key]}})
	}
	for _, one := range []struct {
		field Field
		value *string
	}{{Schedule, r.ScheduleId}, {Parent, r.ParentRunId}, {Worker, r.WorkerId}, {Search, r.Search}} {
		if one.value != nil {
			add(one.field, *one.value)
		}
	}
	return f
}
