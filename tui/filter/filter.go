// Package filter owns the language in which people choose runs:
//
//	status = "FAILED" and type in ("a", "b") and created > -24h and tag.customer = "x"
//
// Conditions are joined by `and`, which is all there is. The fields and what they take:
//
//	status, type, queue               =, in
//	created                           >, >=, <, <= with an RFC 3339 time, a date, or a distance from now (-24h, -7d)
//	tag.KEY                           =
//	id                                = a run id or the beginning of one
//	external_id                       = the whole external id
//	schedule                          = an id or a name
//	parent, worker                    = an id
//	search                            = the beginning of a run id or external id
//
// A filter becomes one ListWorkflowsRequest, and for the two fields that the server matches more widely a check of
// what comes back.
package filter

import (
	"strconv"
	"strings"
)

// Field is what a condition is about.
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

// Op is how a condition compares.
type Op string

const (
	Equal          Op = "="
	In             Op = "in"
	Greater        Op = ">"
	Less           Op = "<"
	GreaterOrEqual Op = ">="
	LessOrEqual    Op = "<="
)

// fields lists every field in the order of the documentation with the operators that it takes.
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
	Values []string // one, but for In
}

// Filter holds for a run when all its conditions do; the empty one holds for every run.
type Filter []Condition

// Has says whether a condition names the field.
func (f Filter) Has(field Field) bool {
	for _, c := range f {
		if c.Field == field {
			return true
		}
	}
	return false
}

// Relative says whether a condition counts from now, so that the filter asks for something else a moment later.
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

// String prints the filter so that Parse reads the same filter again.
func (f Filter) String() string {
	parts := make([]string, len(f))
	for i, c := range f {
		parts[i] = c.String()
	}
	return strings.Join(parts, " and ")
}

// String prints one condition.
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
