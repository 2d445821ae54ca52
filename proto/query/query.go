// Package query implements the language in which people select the items of a list:
//
//	method = "CancelWorkflow" and (actor = "ci*" or at > -24h) and not outcome = "ok"
//
// A comparison is a field, an operator and a value. They are joined by and, or, not and parentheses;
// and binds closer than or. The operators depend on what a field holds:
//
//	text      =, !=, in (…), not in (…); a * in a value stands for any text, \* in quotes for itself
//	number    =, !=, <, <=, >, >=, in (…), not in (…)
//	time      <, <=, >, >= with RFC 3339, a date, or relative to now (-24h, -7d); = none, != none
//	duration  <, <=, >, >= with 90s, 1h30m or 7d; = none, != none
//	yes/no    = true, = false
//
// Words are values without quotes. A field with several values, such as a worker's queues, matches
// if one of them does. A tag that an item does not have is equal to nothing.
//
// Each list names its fields (lists.go, runs.go).
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
	span
	flag
)

// operators are those of each kind.
var operators = map[kind][]string{
	text: {"=", "!=", "in", "not in"}, number: {"=", "!=", "<", "<=", ">", ">=", "in", "not in"},
	moment: {"<", "<=", ">", ">=", "=", "!="}, span: {"<", "<=", ">", ">=", "=", "!="}, flag: {"=", "!="},
}

// Field is one field of a list.
type Field[M any] struct {
	Name  string   // with a dot at its end, a key follows: "tag."
	Words []string // the only values, in upper case; empty: any
	kind  kind
	full  bool // of text: an empty value is a mistake
	none  bool // of text, full: none without quotes means that there is none
	fold  bool // of text: items have lower case

	texts  func(m M, key string) []string
	like   func(m M, p pattern) bool // instead of texts
	number func(M) float64
	time   func(M) time.Time // zero: none
	span   func(m M, now time.Time) (d time.Duration, has bool)
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
	case f.kind == span:
		return "duration"
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
type Query[M any] struct {
	text string
	root node[M]
}

// node is a comparison, or joins others.
type node[M any] struct {
	join   string // "and", "or", "not"; empty: a comparison
	kids   []node[M]
	field  *Field[M]
	offset int // of the comparison in the text
	from   int // bounds of the part in the text, with its parentheses
	to     int
	key    string
	op     string
	texts  []pattern // values of text
	at     time.Time
	past   bool         // at counts from now
	none   bool         // compared with none
	holds  func(M) bool // of other kinds than text
}

// String returns the text of the query, or of its parts.
func (q *Query[M]) String() string {
	if q == nil {
		return ""
	}
	n := q.root
	if n.to > n.from {
		return q.text[n.from:n.to]
	}
	var parts []string
	for _, kid := range n.kids {
		parts = append(parts, q.text[kid.from:kid.to])
	}
	return strings.Join(parts, " "+n.join+" ")
}

// Text returns the whole text that was parsed.
func (q *Query[M]) Text() string { return q.text }

// Operand returns the whole text so that "and" and more may follow it.
func (q *Query[M]) Operand() string {
	text := strings.TrimSpace(q.text)
	if q.root.join == "or" {
		return "(" + text + ")"
	}
	return text
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
	if n.field.kind == text {
		return n.holdsText(m) != (n.op == "!=" || n.op == "not in")
	}
	return n.holds(m)
}

// holdsText says whether one of an item's values is one of those wanted.
func (n *node[M]) holdsText(m M) bool {
	if n.field.like != nil {
		return slices.ContainsFunc(n.texts, func(p pattern) bool { return n.field.like(m, p) })
	}
	return slices.ContainsFunc(n.field.texts(m, n.key), func(s string) bool {
		return slices.ContainsFunc(n.texts, func(p pattern) bool { return p.matches(s) })
	})
}

// comparisons calls f with all comparisons, in their order in the text.
func (n *node[M]) comparisons(f func(*node[M])) {
	if n.join == "" {
		f(n)
	}
	for i := range n.kids {
		n.kids[i].comparisons(f)
	}
}

// Uses says whether the query compares a field.
func (q *Query[M]) Uses(field string) bool { return q.Place(field) >= 0 }

// Place returns the offset of the first comparison of a field, in bytes; negative if there is none.
func (q *Query[M]) Place(field string) int {
	place := -1
	if q == nil {
		return place
	}
	q.root.comparisons(func(n *node[M]) {
		if place < 0 && n.field.Name == field {
			place = n.offset
		}
	})
	return place
}

// Relative says whether what the query selects depends on the current time.
func (q *Query[M]) Relative() (is bool) {
	if q == nil {
		return false
	}
	q.root.comparisons(func(n *node[M]) { is = is || n.past || n.field.kind == span })
	return is
}

// Resolve replaces the whole values of a text field: by f those that are neither empty nor patterns.
func (q *Query[M]) Resolve(field string, f func(value string) (string, error)) (err error) {
	q.root.comparisons(func(n *node[M]) {
		for i, p := range n.texts {
			value, whole := p.literal()
			if n.field.Name != field || !whole || value == "" || err != nil {
				continue
			}
			if value, err = f(value); err == nil {
				n.texts[i] = pattern{value}
			}
		}
	})
	return err
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
		if n.field.Name == field && n.op == "=" {
			if text, whole := n.texts[0].literal(); whole {
				value = text
			}
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
