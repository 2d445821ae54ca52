// Package filter implements the language in which people select runs:
//
//	status = "FAILED" and type in ("a", "b") and created > -24h and tag.customer = "x"
//
// Conditions are joined by `and`; there is no other operator. The fields and their operators:
//
//	status, type, queue               =, in
//	created                           >, >=, <, <= with RFC 3339, a date, or relative to now (-24h)
//	tag.KEY                           =
//	id                                = a run id or a prefix of one
//	external_id                       = the whole external id
//	schedule                          = an id or a name
//	parent, worker                    = an id
//	search                            = a prefix of a run id or external id
//
// A filter compiles to one ListWorkflowsRequest. For id and external_id the server matches more
// runs, so the answer is filtered again.
package filter

import (
	"strconv"
	"strings"
)

// Field is the subject of a condition.
type Field string

const (
	Status     Field = "status"
	Type       Field = "type"
	Queue      Field = "queue"
	Created    Field = "created"
	Tag        Field = "tag"
	ID         Field = "id"
	ExternalID Field = "external_id"
	Schedule   Field = "schedule"
	Parent     Field = "parent"
	Worker     Field = "worker"
	Search     Field = "search"
)

// Op is the operator of a condition.
type Op string

const (
	Equal          Op = "="
	In             Op = "in"
	Greater        Op = ">"
	Less           Op = "<"
	GreaterOrEqual Op = ">="
	LessOrEqual    Op = "<="
)

// fields lists every field in the order of the documentation, with its operators.
var fields = []struct {
	name Field
	ops  []Op
}{
	{Status, []Op{Equal, In}}, {Type, []Op{Equal, In}}, {Queue, []Op{Equal, In}},
	{Created, []Op{Greater, GreaterOrEqual, Less, LessOrEqual}}, {Tag, []Op{Equal}},
	{ID, []Op{Equal}}, {ExternalID, []Op{Equal}}, {Schedule, []Op{Equal}}, {Parent, []Op{Equal}}, {Worker, []Op{Equal}},
	{Search, []Op{Equal}},
}

func opsOf(f Field) []Op {
	for _, known := range fields {
		if known.name == f {
			return known.ops
		}
	}
	return nil
}

// Condition is one comparison.
type Condition struct {
	Field  Field
	Key    string // of a tag
	Op     Op
	Values []string // one value, except for In
}

// Filter matches a run if all its conditions do; an empty filter matches every run.
type Filter []Condition

// Has reports whether a condition names the field.
func (f Filter) Has(field Field) bool {
	for _, c := range f {
		if c.Field == field {
			return true
		}
	}
	return false
}

// Relative reports whether a condition depends on the current time.
func (f Filter) Relative() bool {
	for _, c := range f {
		if c.Field != Created {
			continue
		}
		if m, err := parseMoment(c.Values[0]); err == nil && m.distant {
			return true
		}
	}
	return false
}

// String writes the filter so that Parse reads the same filter again.
func (f Filter) String() string {
	parts := make([]string, len(f))
	for i, c := range f {
		parts[i] = c.String()
	}
	return strings.Join(parts, " and ")
}

// String writes one condition.
func (c Condition) String() string {
	name := string(c.Field)
	if c.Field == Tag {
		name += "." + printKey(c.Key)
	}
	values := make([]string, len(c.Values))
	for i, v := range c.Values {
		values[i] = strconv.Quote(v)
		if c.Field == Created {
			values[i] = v
		}
	}
	if c.Op == In {
		return name + " in (" + strings.Join(values, ", ") + ")"
	}
	return name + " " + string(c.Op) + " " + strings.Join(values, "")
}

func printKey(key string) string {
	for i := range len(key) {
		if !wordByte(key[i]) {
			return strconv.Quote(key)
		}
	}
	if key == "" {
		return `""`
	}
	return key
}
