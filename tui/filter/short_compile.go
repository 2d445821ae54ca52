package filter

import (
	"slices"
	"strings"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
)

// Compile turns the filter into a query for a namespace. Relative times count from now. Keep
// matches what the request does not ask for. The error refuses what cannot be decided here.
func (s Short) Compile(namespace string, now time.Time) (Query, error) {
	c, err := s.compile(namespace, now)
	return c.query(), err
}

// Local returns the part of the filter that the request does not ask for, so it is matched only on
// loaded runs; empty if there is none.
func (s Short) Local() string {
	c, _ := s.compile("", anyTime) // an error was returned by Compile
	if s.Long != "" {
		return strings.Join(c.local, " and ")
	}
	return strings.Join(c.local, " ")
}

// anyTime is a time from which a relative one is what requests accept.
var anyTime = time.Unix(1<<31, 0)

func (s Short) compile(namespace string, now time.Time) (*compiler, error) {
	c := &compiler{request: &kagziv1.ListWorkflowsRequest{Namespace: namespace}, now: now}
	if s.Long != "" {
		return c, c.add(s.Long, "")
	}
	for _, t := range s.Terms {
		if err := c.add(t.long(), t.String()); err != nil {
			return c, err
		}
	}
	return c, nil
}

// shortFields maps keys to the fields of the language whose values are the same.
var shortFields = map[string]string{"type": "type", "queue": "queue", "worker": "worker", "parent": "parent",
	"schedule": "schedule", "ext": "external_id", "id": "search"}

// long returns the term in the language.
func (t Term) long() string {
	text := ""
	switch t.Key {
	case "":
		text = "text = " + query.Quote(t.Values[0])
	case "status":
		text = "status in (" + strings.Join(t.statuses(), ", ") + ")"
	case "since":
		return "created >= " + shortMoment(t.Values[0])
	case "until":
		return "created < " + shortMoment(t.Values[0])
	case "tag":
		text = "tag." + query.Quote(t.Tag) + t.among()
	default:
		text = shortFields[t.Key] + t.among()
	}
	if t.Not {
		return "not " + text
	}
	return text
}

// among returns the operator and the values.
func (t Term) among() string {
	values := make([]string, len(t.Values))
	for i, v := range t.Values {
		values[i] = query.QuotePattern(v)
		if v == "" && t.Key != "tag" {
			values[i] = "none"
		}
	}
	return " in (" + strings.Join(values, ", ") + ")"
}

// statuses returns the names of the statuses of a term, without their groups.
func (t Term) statuses() (names []string) {
	for _, value := range t.Values {
		some, group := statusWords[value]
		if !group {
			some = []string{strings.ToUpper(value)}
		}
		for _, name := range some {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// Statuses returns the statuses of a run.
func Statuses() []string {
	for _, f := range query.Runs.Fields {
		if f.Name == "status" {
			return slices.Clone(f.Words)
		}
	}
	return nil
}

// shortMoment returns a duration into the past, a time or a date in the form of the language; empty
// if it is none. The default zone is UTC.
func shortMoment(text string) string {
	if d, err := query.ParseDuration(text); err == nil && d >= 0 && !strings.HasPrefix(text, "+") {
		return "-" + strings.TrimPrefix(text, "-")
	}
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if t, err := time.Parse(layout, text); err == nil && t.Year() >= 1 {
			return t.Format(time.RFC3339)
		}
	}
	if _, err := query.ParseTime(text, time.Time{}); err != nil {
		return ""
	}
	return text
}
