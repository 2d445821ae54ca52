// Package query implements the language in which people select the items of a list:
//
//	method = "CancelWorkflow" and (actor = "ci*" or at > -24h) and not outcome = "ok"
//
// A comparison is a field, an operator and a value. They are joined by and, or, not and parentheses;
// and binds closer than or. The operators depend on what a field holds:
//
//	text    =, !=, in (…), not in (…); a * at the end of a value stands for any text
//	number  =, !=, <, <=, >, >=, in (…), not in (…)
//	time    <, <=, >, >= with RFC 3339, a date, or relative to now (-24h, -7d); = none, != none
//	yes/no  = true, = false
//
// Words are values without quotes. A field with several values, such as a worker's queues, matches
// if one of them does. A tag that an item does not have is equal to nothing.
//
// Each list names its fields (lists.go).
package query

import (
	"slices"
	"strings"
	"time"
)

// Limits of a query.
const (
	MaxText  = 4096 // bytes
	maxDepth = 50   // of parentheses and nots
	maxTerms = 100  // comparisons
)

// kind is what a field holds.
type kind uint8

const (
	text kind = iota
	number
	moment
	flag
)

// operators are those of each kind.
var operators = map[kind][]string{
	text: {"=", "!=", "in", "not in"}, number: {"=", "!=", "<", "<=", ">", ">=", "in", "not in"},
	moment: {"<", "<=", ">", ">=", "=", "!="}, flag: {"=", "!="},
}

// Field is one field of a list.
type Field[M any] struct {
	Name  string   // with a dot at its end, a key follows: "tag."
	Words []string // the only values, in upper case; empty: any
	kind  kind

	texts  func(m M, key string) []string
	number func(M) float64
	time   func(M) time.Time // zero: none
	flag   func(M) bool
}

// Shown returns the field's name for people: "tag.KEY".
func (f *Field[M]) Shown() string {
	if strings.HasSuffix(f.Name, ".") {
		return f.Name + "KEY"
	}
	return f.Name
}

// Takes says in short what the field can be compared with.
func (f *Field[M]) Takes() string {
	switch {
	case len(f.Words) > 0:
		return strings.Join(f.Words, ", ")
	case f.kind == number:
		return "number"
	case f.kind == moment:
		return "time"
	case f.kind == flag:
		return "true or false"
	}
	return "text"
}

// List is a list with the fields by which its items are selected.
type List[M any] struct {
	Name   string // "audit"
	Fields []Field[M]
}

// Names returns the names of the fields.
func (l *List[M]) Names() []string {
	var names []string
	for i := range l.Fields {
		names = append(names, l.Fields[i].Shown())
	}
	return names
}

// Query selects items of a list.
type Query[M any] struct{ root node[M] }

// node is a comparison, or joins others.
type node[M any] struct {
	join  string // "and", "or", "not"; empty: a comparison
	kids  []node[M]
	field *Field[M]
	key   string
	op    string
	texts []string // values of text, as they are compared
	at    time.Time
	none  bool // compared with none
	holds func(M) bool
}

// Matches says whether the query selects an item.
func (q *Query[M]) Matches(m M) bool { return q.root.matches(m) }

func (n *node[M]) matches(m M) bool {
	switch n.join {
	case "and":
		return !slices.ContainsFunc(n.kids, func(k node[M]) bool { return !k.matches(m) })
	case "or":
		return slices.ContainsFunc(n.kids, func(k node[M]) bool { return k.matches(m) })
	case "not":
		return !n.kids[0].matches(m)
	}
	return n.holds(m)
}

// each calls f with the comparisons that every selected item meets.
func (q *Query[M]) each(f func(*node[M])) {
	var walk func(n *node[M])
	walk = func(n *node[M]) {
		switch n.join {
		case "":
			f(n)
		case "and":
			for i := range n.kids {
				walk(&n.kids[i])
			}
		}
	}
	walk(&q.root)
}

// Only returns the value of a text field that every selected item has; empty if there is none.
func (q *Query[M]) Only(field string) (value string) {
	q.each(func(n *node[M]) {
		if n.field.Name == field && n.op == "=" && !prefix(n.texts[0]) {
			value = literal(n.texts[0])
		}
	})
	return value
}

// Between returns bounds, inclusive, of a time field of all selected items; zero: no bound.
func (q *Query[M]) Between(field string) (from, to time.Time) {
	q.each(func(n *node[M]) {
		switch {
		case n.field.Name != field || n.none:
		case n.op[0] == '>' && n.at.After(from):
			from = n.at
		case n.op[0] == '<' && (to.IsZero() || n.at.Before(to)):
			to = n.at
		}
	})
	return from, to
}

// prefix says whether a value ends with a * that stands for any text.
func prefix(value string) bool {
	return strings.HasSuffix(value, "*") && !strings.HasSuffix(value, `\*`)
}

// literal returns a value that is no prefix, as items have it.
func literal(value string) string {
	if rest, escaped := strings.CutSuffix(value, `\*`); escaped {
		return rest + "*"
	}
	return value
}

// holdsText says whether one of an item's values is one of those wanted.
func holdsText(got, wanted []string) bool {
	return slices.ContainsFunc(got, func(s string) bool {
		return slices.ContainsFunc(wanted, func(w string) bool {
			if prefix(w) {
				return strings.HasPrefix(s, w[:len(w)-1])
			}
			return s == literal(w)
		})
	})
}

// compares says whether a comparison by size has the wanted result.
func compares(op string, c int) bool {
	switch op {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	case ">=":
		return c >= 0
	case "=":
		return c == 0
	}
	return c != 0
}
