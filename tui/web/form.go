package web

import (
	"fmt"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"

	"github.com/kagzi/kagzi/tui/internal/settings"
	"github.com/kagzi/kagzi/tui/render"
	h "github.com/kagzi/kagzi/tui/web/internal/markup"
)

// field is an input of a form.
type field struct {
	name, label, note string
	kind              string // "text", "json", "lines", "number", "choice", "check", "secret"
	choices           []string
	required          bool
	more              bool // folded away, with the other ones of its form
}

// fieldsOf makes fields of those of settings.
func fieldsOf(list []settings.Field) []field {
	fields := make([]field, len(list))
	for i, f := range list {
		fields[i] = field{f.Name, f.Label, f.Note, f.Kind, f.Choices, f.Required, f.More}
	}
	return fields
}

// texts returns what is in the fields.
func (q *question) texts() map[string]string {
	texts := map[string]string{}
	for name := range q.values {
		texts[name] = q.values.Get(name)
	}
	return texts
}

var reasonField = field{name: "reason", label: "Reason", note: "kept in the audit log", kind: "text"}

func withReason(*page, *question) []field { return []field{reasonField} }

// shownPrefix begins the names of hidden fields with the values that the form was filled in with.
const shownPrefix = "was-"

// fillIn fills in the form of an edit with what its target has now.
func (p *page) fillIn(q *question) error {
	if q.kind.current == nil {
		return nil
	}
	current, err := q.kind.current(p, q)
	for name, value := range current {
		if !q.values.Has(name) {
			q.values.Set(name, value)
		}
		q.values.Set(shownPrefix+name, value)
	}
	return err
}

// stale says what of an edit's target has changed since the form was filled in; empty if nothing has. The
// form then shows the new values in the fields that nobody had touched, and may be sent again.
func (p *page) stale(q *question) (string, error) {
	if q.kind.current == nil {
		return "", nil
	}
	current, err := q.kind.current(p, q)
	if err != nil {
		return "", err
	}
	var said []string
	for _, f := range q.kind.fieldsOf(p, q) {
		is, edited := current[f.name]
		if !edited || !q.values.Has(shownPrefix+f.name) {
			continue
		}
		was := lf(q.values.Get(shownPrefix + f.name))
		if is = lf(is); was == is {
			continue
		}
		said = append(said, fmt.Sprintf("%s is now %s, not %s", f.label, brief(is), brief(was)))
		if strings.TrimSpace(was) == q.value(f.name) {
			q.values.Set(f.name, is)
		}
		q.values.Set(shownPrefix+f.name, is)
	}
	if len(said) == 0 {
		return "", nil
	}
	return "It was changed since this form was opened: " + strings.Join(said, "; ") + ". Fields that you had not " +
		"changed have the new values. Check them, and send the form again.", nil
}

// brief quotes a value for a sentence.
func brief(value string) string {
	if value == "" {
		return "empty"
	}
	return strconv.Quote(render.Truncate(render.Safe(value), 80))
}

// lf returns a text with plain line breaks.
func lf(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// fieldNodes returns the fields of a question, further ones folded away unless one is in use.
func fieldNodes(q *question, fields []field) g.Node {
	if len(fields) == 0 {
		return nil
	}
	var usual, more, shown g.Group
	open := false
	for _, f := range fields {
		if name := shownPrefix + f.name; q.kind.current != nil && q.values.Has(name) {
			shown = append(shown, h.Input(h.Type("hidden"), h.Name(name), h.Value(clean(q.values.Get(name)))))
		}
		if !f.more {
			usual = append(usual, f.node(q))
			continue
		}
		more = append(more, f.node(q))
		value := q.value(f.name)
		open = open || value != "" && !(len(f.choices) > 0 && f.choices[0] == value)
	}
	return g.Group{shown, h.Div(h.Class("fields"), usual), g.If(len(more) > 0, h.Details(h.ID("more"),
		g.If(open, h.Is("open")), h.Summary(h.Text("More settings")), h.Div(h.Class("fields"), more)))}
}

// node returns a field with its label and note.
func (f field) node(q *question) g.Node {
	id := "f-" + f.name
	value := q.values.Get(f.name)
	attributes := g.Group{h.ID(id), h.Name(f.name), g.If(f.required, h.Required()),
		g.If(f.note != "", h.Aria("describedby", id+"-note"))}
	var input g.Node
	switch f.kind {
	case "json", "lines":
		rows := map[string]string{"json": "6", "lines": "2"}[f.kind]
		input = h.Textarea(attributes, h.Rows(rows), h.Attr("spellcheck", "false"), h.Class("mono"),
			h.Text("\n"+clean(value))) // browsers drop the first line break
	case "secret": // is not sent back
		input = h.Input(attributes, h.Type("password"), h.AutoComplete("off"))
	case "choice":
		input = h.Select(attributes, g.Map(f.choices, func(c string) g.Node {
			return h.Option(h.Value(c), g.If(c == value, h.Selected()), h.Text(c))
		}))
	case "check":
		input = h.Input(attributes, h.Type("checkbox"), h.Value("yes"), g.If(value != "", h.Checked()))
	case "number":
		input = h.Input(attributes, h.Type("text"), h.Attr("inputmode", "numeric"), h.Value(clean(value)))
	default:
		input = h.Input(attributes, h.Type("text"), h.AutoComplete("off"), h.Value(clean(value)))
	}
	return h.Div(h.Class("field "+f.kind), h.Label(h.For(id), h.Text(f.label)), input,
		g.If(f.note != "", h.P(h.Class("note"), h.ID(id+"-note"), h.Text(f.note))))
}

// clean makes text valid for a field, which shows it as it is.
func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
