package filter

import (
	"maps"
	"slices"
	"strings"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
	"github.com/kagzi/kagzi/tui/render"
)

// Of returns the filter that compiles to a request; a search is one for ids.
func Of(r *kagziv1.ListWorkflowsRequest) string {
	var parts []string
	add := func(field string, values ...string) {
		for i, v := range values {
			values[i] = query.Quote(v)
		}
		switch len(values) {
		case 0:
		case 1:
			parts = append(parts, field+" = "+values[0])
		default:
			parts = append(parts, field+" in ("+strings.Join(values, ", ")+")")
		}
	}
	var statuses []string
	for _, s := range r.GetStatuses() {
		statuses = append(statuses, render.RunStatus(s))
	}
	add("status", statuses...)
	add("type", slices.Clone(r.GetWorkflowTypes())...)
	add("queue", slices.Clone(r.GetTaskQueues())...)
	if t := r.GetCreatedAfter(); t != nil {
		parts = append(parts, "created > "+t.AsTime().Format(time.RFC3339Nano))
	}
	if t := r.GetCreatedBefore(); t != nil {
		parts = append(parts, "created < "+t.AsTime().Format(time.RFC3339Nano))
	}
	for _, key := range slices.Sorted(maps.Keys(r.GetTags())) {
		add("tag."+key, r.GetTags()[key])
	}
	for _, one := range []struct {
		field string
		value *string
	}{{"schedule", r.ScheduleId}, {"parent", r.ParentRunId}, {"worker", r.WorkerId}, {"search", r.Search}} {
		if one.value != nil {
			add(one.field, *one.value)
		}
	}
	if r.GetQuery() != "" {
		parts = append(parts, "("+r.GetQuery()+")")
	}
	return strings.Join(parts, " and ")
}
