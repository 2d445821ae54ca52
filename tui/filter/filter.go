// Package filter asks a server for runs by the language of package query, and by the short form of
// it that people type on the screens.
package filter

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
)

// Runs is a query of runs.
type Runs = query.Query[*kagziv1.Workflow]

// Query is a filter as a server request. Keep is nil if the server's answer is exact; otherwise it
// selects the matching runs of the answer.
type Query struct {
	Request *kagziv1.ListWorkflowsRequest
	Keep    func(*kagziv1.Workflow) bool
}

// Compile returns the query of a namespace that a server carries out. It asks by the fields that
// every server knows if these select the same runs, or few more; otherwise by the query itself.
func Compile(q *Runs, namespace string) Query {
	r := &kagziv1.ListWorkflowsRequest{Namespace: namespace}
	rest, wide := query.Narrow(q, r)
	switch {
	case rest == nil:
		return Query{Request: r}
	case wide == nil:
		return Query{Request: r, Keep: rest.Matches}
	}
	return Query{Request: &kagziv1.ListWorkflowsRequest{Namespace: namespace, Query: q.Text()}}
}

// Matches reports whether a run matches the query, as the server and Keep would decide.
func (q Query) Matches(r *kagziv1.Workflow) bool {
	return Matches(q.Request, r) && (q.Keep == nil || q.Keep(r))
}

// Matches reports whether the server would list a run for a request without a query.
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

var isID = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// errScheduleName refuses what only a server can decide: runs hold the ids of schedules.
var errScheduleName = errors.New("schedule: a name works alone or joined by \"and\"; " +
	"with or, not, != or several, use the schedule's id")

// compiler builds a query part by part.
type compiler struct {
	request *kagziv1.ListWorkflowsRequest
	now     time.Time
	keep    []*Runs
	local   []string // texts of what the server does not limit
}

// add adds a query. shown is the text of it that the person typed; empty: that of its parts.
func (c *compiler) add(text, shown string) error {
	q, err := query.Runs.Parse(text, c.now)
	if err != nil {
		return err
	}
	rest, wide := query.Narrow(q, c.request)
	if rest != nil {
		if err := rest.Resolve("schedule", func(ref string) (string, error) {
			if !isID.MatchString(ref) {
				return "", errScheduleName
			}
			return strings.ToLower(ref), nil
		}); err != nil {
			return err
		}
		c.keep = append(c.keep, rest)
	}
	if wide != nil {
		if shown == "" {
			shown = wide.String()
		}
		c.local = append(c.local, shown)
	}
	return nil
}

// query returns the whole.
func (c *compiler) query() Query {
	q := Query{Request: c.request}
	if len(c.keep) > 0 {
		q.Keep = func(r *kagziv1.Workflow) bool {
			return !slices.ContainsFunc(c.keep, func(q *Runs) bool { return !q.Matches(r) })
		}
	}
	return q
}
