package filter

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Compile turns the filter into a query for a namespace. Relative times count from now. Keep
// matches what the server cannot. Errors are those of the long form.
func (s Short) Compile(namespace string, now time.Time) (Query, error) {
	if s.Long != nil {
		return s.Long.Compile(namespace, now)
	}
	c := compiler{request: &kagziv1.ListWorkflowsRequest{Namespace: namespace}, now: now}
	for _, t := range s.Terms {
		if !c.byServer(t) {
			c.keep = append(c.keep, t.holds)
		}
	}
	q := Query{Request: c.request}
	if len(c.keep) > 0 {
		q.Keep = func(r *kagziv1.Workflow) bool {
			for _, holds := range c.keep {
				if !holds(r) {
					return false
				}
			}
			return true
		}
	}
	return q, nil
}

// Local returns the part of the filter that the server cannot apply, so it is matched only on
// loaded runs; empty if there is none.
func (s Short) Local() string {
	c := compiler{request: &kagziv1.ListWorkflowsRequest{}}
	var local []Term
	for _, t := range s.Terms {
		if !c.byServer(t) {
			local = append(local, t)
		}
	}
	return printTerms(local)
}

// compiler builds a request term by term.
type compiler struct {
	request *kagziv1.ListWorkflowsRequest
	now     time.Time
	keep    []func(*kagziv1.Workflow) bool
}

// byServer adds a term to the request; false if the request cannot hold it.
func (c *compiler) byServer(t Term) bool {
	r := c.request
	if t.Not || t.Key == "" {
		return false
	}
	one, exact := len(t.Values) == 1, !slices.ContainsFunc(t.Values, isGlob)
	switch t.Key {
	case "status":
		if r.Statuses != nil {
			return false
		}
		r.Statuses = t.statuses()
	case "type":
		return exact && put(&r.WorkflowTypes, t.Values)
	case "queue":
		return exact && put(&r.TaskQueues, t.Values)
	case "worker":
		return one && exact && point(&r.WorkerId, t.Values[0])
	case "parent":
		return one && exact && point(&r.ParentRunId, t.Values[0])
	case "schedule":
		return one && exact && point(&r.ScheduleId, t.Values[0])
	case "since", "until":
		return c.moment(t)
	case "tag":
		if _, taken := r.Tags[t.Tag]; taken || !one || !exact {
			return false
		}
		if r.Tags == nil {
			r.Tags = map[string]string{}
		}
		r.Tags[t.Tag] = t.Values[0]
	case "id", "ext":
		return c.search(t)
	}
	return true
}

// search asks for a prefix of ids, and filters the answer by the term. It keeps the case: the
// server ignores the case of run ids, but not of external ids.
func (c *compiler) search(t Term) bool {
	prefix, _, _ := strings.Cut(t.Values[0], "*")
	if len(t.Values) != 1 || prefix == "" || !point(&c.request.Search, prefix) {
		return false
	}
	c.keep = append(c.keep, t.holds)
	return true
}

// moment limits when runs were created; a second limit on the same side is left to Keep.
func (c *compiler) moment(t Term) bool {
	m, err := shortMoment(t.Values[0])
	if err != nil {
		return false
	}
	at := m.at(c.now)
	bound, stamp := &c.request.CreatedAfter, timestamppb.New(justBefore(at))
	if t.Key == "until" {
		bound, stamp = &c.request.CreatedBefore, timestamppb.New(at)
	}
	later := *bound == nil || stamp.AsTime().After((*bound).AsTime())
	if *bound == nil || later == (t.Key == "since") {
		*bound = stamp
	}
	return true
}

func put(field *[]string, values []string) bool {
	if *field != nil {
		return false
	}
	*field = values
	return true
}

func point(field **string, value string) bool {
	if *field != nil || value == "" {
		return false
	}
	*field = &value
	return true
}

func (t Term) statuses() []kagziv1.WorkflowStatus {
	var statuses []kagziv1.WorkflowStatus
	for _, value := range t.Values {
		names, word := statusWords[value]
		if !word {
			names = []string{strings.ToUpper(value)}
		}
		for _, name := range names {
			if s, ok := statusOf(name); ok && !slices.Contains(statuses, s) {
				statuses = append(statuses, s)
			}
		}
	}
	return statuses
}

// holds reports whether a run matches the term.
func (t Term) holds(r *kagziv1.Workflow) bool {
	return t.any(r) != t.Not
}

func (t Term) any(r *kagziv1.Workflow) bool {
	switch t.Key {
	case "":
		return looseText(r, strings.ToLower(t.Values[0]))
	case "status":
		return slices.Contains(t.statuses(), r.GetStatus())
	case "type":
		return anyGlob(t.Values, r.GetWorkflowType())
	case "queue":
		return anyGlob(t.Values, r.GetTaskQueue())
	case "worker":
		return anyGlob(t.Values, r.GetWorkerId())
	case "parent":
		return anyGlob(t.Values, r.GetParentRunId())
	case "schedule":
		return anyGlob(t.Values, r.GetScheduleId())
	case "ext":
		return anyGlob(t.Values, r.GetExternalId())
	case "id":
		return slices.ContainsFunc(t.Values, func(v string) bool {
			return glob(strings.ToLower(v)+"*", r.GetRunId()) || glob(v+"*", r.GetExternalId())
		})
	case "tag":
		value, ok := r.GetTags()[t.Tag]
		return ok && anyGlob(t.Values, value)
	}
	return true
}

// looseText reports whether a run's type, ids, note or error contain a lower-case text.
func looseText(r *kagziv1.Workflow, text string) bool {
	for _, s := range []string{r.GetWorkflowType(), r.GetRunId(), r.GetExternalId(), r.GetNote(),
		r.GetError().GetType(), r.GetError().GetMessage()} {
		if strings.Contains(strings.ToLower(s), text) {
			return true
		}
	}
	return false
}

func isGlob(pattern string) bool { return strings.Contains(pattern, "*") }

func anyGlob(patterns []string, s string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return glob(p, s) })
}

// glob reports whether s matches a pattern in which * stands for any text.
func glob(pattern, s string) bool {
	head, rest, found := strings.Cut(pattern, "*")
	if !found {
		return s == pattern
	}
	s, ok := strings.CutPrefix(s, head)
	if !ok {
		return false
	}
	parts := strings.Split(rest, "*")
	for _, part := range parts[:len(parts)-1] { // the leftmost match leaves the most for the rest
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return strings.HasSuffix(s, parts[len(parts)-1])
}

// shortMoment parses a duration into the past, a time or a date; the default zone is UTC.
func shortMoment(text string) (moment, error) {
	if d, err := ParseDuration(text); err == nil && d >= 0 && !strings.HasPrefix(text, "+") {
		return moment{distant: true, since: -d}, nil
	}
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if t, err := time.Parse(layout, text); err == nil && t.Year() >= 1 {
			return moment{time: t}, nil
		}
	}
	return parseMoment(text)
}
