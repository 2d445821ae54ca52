package filter

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Matches reports whether a run matches the query, as the server and Keep would decide.
func (q Query) Matches(r *kagziv1.Workflow) bool {
	return Matches(q.Request, r) && (q.Keep == nil || q.Keep(r))
}

// Matches reports whether the server would list a run for a request.
func Matches(q *kagziv1.ListWorkflowsRequest, r *kagziv1.Workflow) bool {
	one := func(want *string, got string) bool { return want == nil || *want == "" || *want == got }
	oneOf := func(want []string, also *string, got string) bool {
		return len(want) == 0 && also == nil || slices.Contains(want, got) || also != nil && *also == got
	}
	return namespace(q.GetNamespace()) == namespace(r.GetNamespace()) && matchesStatus(q, r.GetStatus()) &&
		oneOf(q.GetWorkflowTypes(), q.WorkflowType, r.GetWorkflowType()) &&
		oneOf(q.GetTaskQueues(), q.TaskQueue, r.GetTaskQueue()) &&
		between(q.GetCreatedAfter(), r.GetCreatedAt(), q.GetCreatedBefore()) && matchesTags(q.GetTags(), r.GetTags()) &&
		one(q.ScheduleId, r.GetScheduleId()) && one(q.ParentRunId, r.GetParentRunId()) &&
		one(q.WorkerId, r.GetWorkerId()) &&
		(strings.HasPrefix(r.GetRunId(), strings.ToLower(q.GetSearch())) ||
			strings.HasPrefix(r.GetExternalId(), q.GetSearch()))
}

func namespace(name string) string {
	if name == "" {
		return "default"
	}
	return name
}

func matchesStatus(q *kagziv1.ListWorkflowsRequest, s kagziv1.WorkflowStatus) bool {
	if q.StatusFilter == nil && len(q.GetStatuses()) == 0 {
		return true
	}
	return q.StatusFilter != nil && *q.StatusFilter == s || slices.Contains(q.GetStatuses(), s)
}

// between reports whether a time lies between two others, exclusive. A missing bound does not limit
// it.
func between(after, at, before *timestamppb.Timestamp) bool {
	return (after == nil || at.AsTime().After(after.AsTime())) && (before == nil || at.AsTime().Before(before.AsTime()))
}

func matchesTags(want, got map[string]string) bool {
	for k, v := range want {
		if value, ok := got[k]; !ok || value != v {
			return false
		}
	}
	return true
}
