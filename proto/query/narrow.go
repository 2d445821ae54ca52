package query

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// instant is the resolution of a run's times. The bounds of a request are exclusive, so an
// inclusive bound lies one instant outside.
const instant = time.Microsecond

// Limits of a request.
const (
	mostValues = 256 // of a list
	mostTags   = 32
)

var (
	isName = regexp.MustCompile(`^[A-Za-z0-9._:/-]{1,255}$`)
	isID   = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
)

// Feature is the name that servers with queries of runs have among their features. Others ignore
// the field and select every run.
const Feature = "query-runs"

// Narrow sets those fields of a request that a query of runs asks for with all its results, as a
// database looks these up without reading every run. It never makes a request select more. rest is
// what the request does not select by, nil if that is nothing; of it, wide is what does not limit
// the runs that have to be read at all. An empty query has no rest.
func Narrow(q *Query[*kagziv1.Workflow], r *kagziv1.ListWorkflowsRequest) (rest, wide *Query[*kagziv1.Workflow]) {
	if q == nil {
		return nil, nil
	}
	var left, unlimited []node[*kagziv1.Workflow]
	parts := []node[*kagziv1.Workflow]{q.root}
	for len(parts) > 0 {
		n := parts[0]
		parts = parts[1:]
		if n.join == "and" {
			parts = append(slices.Clone(n.kids), parts...)
			continue
		}
		how := unaided
		if n.join == "" {
			how = narrow(&n, r)
		}
		if how != exact {
			left = append(left, n)
		}
		if how == unaided {
			unlimited = append(unlimited, n)
		}
	}
	return q.of(left), q.of(unlimited)
}

// of returns a query of parts of q.
func (q *Query[M]) of(parts []node[M]) *Query[M] {
	switch len(parts) {
	case 0:
		return nil
	case 1:
		return &Query[M]{text: q.text, root: parts[0]}
	}
	return &Query[M]{text: q.text, root: node[M]{join: "and", kids: parts}}
}

// aid is what a request does for a comparison.
type aid uint8

const (
	unaided aid = iota
	limited     // it selects more runs than the comparison, but few
	exact
)

func narrow(n *node[*kagziv1.Workflow], r *kagziv1.ListWorkflowsRequest) aid {
	if n.field.Name == "created" {
		return narrowCreated(n, r)
	}
	if n.field.kind != text || n.op != "=" && n.op != "in" || len(n.texts) > mostValues {
		return unaided
	}
	switch n.field.Name {
	case "id", "external_id", "search":
		return narrowSearch(n, r)
	}
	var values []string
	for _, p := range n.texts {
		value, whole := p.literal()
		if !whole || !isName.MatchString(value) {
			return unaided
		}
		values = append(values, value)
	}
	one := len(values) == 1
	switch n.field.Name {
	case "status":
		if r.Statuses != nil || r.StatusFilter != nil {
			return unaided
		}
		for _, name := range values {
			r.Statuses = append(r.Statuses,
				kagziv1.WorkflowStatus(kagziv1.WorkflowStatus_value[statusPrefix+name]))
		}
		return exact
	case "type":
		return exactIf(r.WorkflowType == nil && list(&r.WorkflowTypes, values))
	case "queue":
		return exactIf(r.TaskQueue == nil && list(&r.TaskQueues, values))
	case "worker":
		return exactIf(one && point(&r.WorkerId, values[0]))
	case "schedule":
		return exactIf(one && point(&r.ScheduleId, values[0]))
	case "parent":
		return exactIf(one && isID.MatchString(values[0]) && point(&r.ParentRunId, values[0]))
	case "tag.":
		if _, taken := r.Tags[n.key]; taken || !one || len(r.Tags) == mostTags || !isName.MatchString(n.key) {
			return unaided
		}
		if r.Tags == nil {
			r.Tags = map[string]string{}
		}
		r.Tags[n.key] = values[0]
		return exact
	}
	return unaided
}

// narrowSearch asks for the beginning of an id, which the server looks up in run ids and external
// ids: more than are meant, except by search.
func narrowSearch(n *node[*kagziv1.Workflow], r *kagziv1.ListWorkflowsRequest) aid {
	p := n.texts[0]
	if len(n.texts) != 1 || !isName.MatchString(p[0]) || !point(&r.Search, p[0]) {
		return unaided
	}
	if n.field.Name == "search" && strings.Join(p[1:], "") == "" {
		return exact
	}
	return limited
}

func narrowCreated(n *node[*kagziv1.Workflow], r *kagziv1.ListWorkflowsRequest) aid {
	if n.none {
		return unaided
	}
	at := n.at.Truncate(instant)
	whole := at.Equal(n.at)
	after, before := at, at
	switch n.op {
	case ">=":
		after = at.Add(-instant)
	case "<":
		if !whole {
			before = at.Add(instant)
		}
	case "<=":
		before = at.Add(instant)
	}
	if at.Unix() < 1 || at.Year() > 2200 { // a request takes no such time
		return exactIf(at.Unix() < 1 && n.op[0] == '>') // no run is from before
	}
	switch {
	case n.op[0] == '>' && (r.CreatedAfter == nil || r.CreatedAfter.AsTime().Before(after)):
		r.CreatedAfter = timestamppb.New(after)
	case n.op[0] == '<' && (r.CreatedBefore == nil || r.CreatedBefore.AsTime().After(before)):
		r.CreatedBefore = timestamppb.New(before)
	}
	if whole || n.op == ">" || n.op == "<=" {
		return exact
	}
	return limited
}

func exactIf(is bool) aid {
	if is {
		return exact
	}
	return unaided
}

func list(field *[]string, values []string) bool {
	if *field != nil {
		return false
	}
	*field = values
	return true
}

func point(field **string, value string) bool {
	if *field != nil {
		return false
	}
	*field = &value
	return true
}
