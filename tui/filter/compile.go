package filter

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

// Query is a filter as a server request. Keep is nil if the server's answer is exact; otherwise it
// selects the matching runs of the answer.
type Query struct {
	Request *kagziv1.ListWorkflowsRequest
	Keep    func(*kagziv1.Workflow) bool
}

// instant is the server's time resolution: its bounds are exclusive, so an inclusive bound lies one
// instant outside.
const instant = time.Microsecond

// justBefore returns the instant before t. The server accepts no time before 1970, so the epoch
// stands for itself: there were no runs then.
func justBefore(t time.Time) time.Time {
	before := t.Add(-instant)
	if before.Unix() < 0 && t.Unix() >= 0 {
		return t
	}
	return before
}

// Compile turns a filter into a query for a namespace. Relative times count from now. It returns an
// error if conditions contradict each other or cannot be combined.
func (f Filter) Compile(namespace string, now time.Time) (Query, error) {
	q := Query{Request: &kagziv1.ListWorkflowsRequest{Namespace: namespace}}
	for i, c := range f {
		if clash := f[:i].clash(c); clash != "" {
			return Query{}, errors.New(strings.Replace(clash, "a second condition", "more than one condition", 1))
		}
		if err := q.add(c, now); err != nil {
			return Query{}, err
		}
	}
	return q, nil
}

func (q *Query) add(c Condition, now time.Time) error {
	value, r := c.Values[0], q.Request
	switch c.Field {
	case Status:
		for _, name := range c.Values {
			status, ok := statusOf(name)
			if !ok {
				return fmt.Errorf("unknown status %q; want one of %s", name, strings.Join(statusNames(), ", "))
			}
			r.Statuses = append(r.Statuses, status)
		}
	case Type:
		r.WorkflowTypes = c.Values
	case Queue:
		r.TaskQueues = c.Values
	case Created:
		return q.addCreated(c, now)
	case Tag:
		if r.Tags == nil {
			r.Tags = map[string]string{}
		}
		r.Tags[c.Key] = value
	case ID, ExternalID, Search:
		return q.addSearch(c.Field, value)
	case Schedule:
		r.ScheduleId = &value
	case Parent:
		r.ParentRunId = &value
	case Worker:
		r.WorkerId = &value
	}
	return nil
}

// addSearch asks for a prefix, which the server looks up in run ids and external ids, and filters
// the answer: `external_id = "order-1"` must not select order-10, least of all to terminate it.
func (q *Query) addSearch(field Field, value string) error {
	if q.Request.Search != nil {
		return errors.New("only one of id, external_id and search can be asked at a time")
	}
	if value == "" {
		return fmt.Errorf("%s is empty", field)
	}
	if field == ID {
		value = strings.ToLower(value)
	}
	q.Request.Search = &value
	switch field {
	case ID:
		q.Keep = func(r *kagziv1.Workflow) bool { return strings.HasPrefix(r.GetRunId(), value) }
	case ExternalID:
		q.Keep = func(r *kagziv1.Workflow) bool { return r.GetExternalId() == value }
	}
	return nil
}

func (q *Query) addCreated(c Condition, now time.Time) error {
	m, err := parseMoment(c.Values[0])
	if err != nil {
		return err
	}
	t := m.at(now)
	switch c.Op {
	case Greater:
		q.Request.CreatedAfter = timestamppb.New(t)
	case GreaterOrEqual:
		q.Request.CreatedAfter = timestamppb.New(justBefore(t))
	case Less:
		q.Request.CreatedBefore = timestamppb.New(t)
	case LessOrEqual:
		q.Request.CreatedBefore = timestamppb.New(t.Add(instant))
	}
	return nil
}

// runStatuses lists the statuses of a run.
var runStatuses = []kagziv1.WorkflowStatus{
	kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING, kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING,
	kagziv1.WorkflowStatus_WORKFLOW_STATUS_SLEEPING,
	kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED, kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED,
	kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED,
	kagziv1.WorkflowStatus_WORKFLOW_STATUS_TIMED_OUT, kagziv1.WorkflowStatus_WORKFLOW_STATUS_TERMINATED,
}

func statusOf(name string) (kagziv1.WorkflowStatus, bool) {
	for _, s := range runStatuses {
		if render.RunStatus(s) == name {
			return s, true
		}
	}
	return 0, false
}

func statusNames() []string {
	names := make([]string, len(runStatuses))
	for i, s := range runStatuses {
		names[i] = render.RunStatus(s)
	}
	return names
}
