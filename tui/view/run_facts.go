package view

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/widget"
)

// factsTab shows all that is known of a run.
type factsTab struct{ textTab }

func newFactsTab(p *runPage) *factsTab {
	t := &factsTab{newTextTab(p)}
	t.work = t.lines
	return t
}

func (t *factsTab) Parts() model.Part { return model.Signals | model.Audit }

// lines are the run's properties, then a section for each thing that there is.
func (t *factsTab) lines(width int) []widget.Line {
	view := t.p.app.clock.view()
	lines := pairLines(render.RunPairs(t.p.workflow(), view))
	section := func(title string, body []widget.Line) {
		if len(body) > 0 {
			lines = append(append(lines, widget.Line{}, widget.TextLine(title, render.Strong)), body...)
		}
	}
	if e := t.p.run.Explanation(); e != nil {
		body := []widget.Line{widget.TextLine("  "+e.GetSummary(), render.Plain)}
		for _, detail := range e.GetDetails() {
			body = append(body, widget.TextLine("  "+detail, render.Dim))
		}
		for _, line := range pairLines(render.ExplainPairs(e, view)) {
			body = append(body, indented(line))
		}
		section("Why it is where it is", body)
	}
	section("Done by people", tableLines(render.AuditTable(t.p.run.Audit(), view), width))
	section("Overridden steps", tableLines(render.OverridesTable(t.p.run.Steps(), view), width))
	section("Signals", tableLines(render.SignalsTable(t.p.run.Signals(), view), width))
	return lines
}

// pairLines are pairs in two columns.
func pairLines(pairs []render.Pair) []widget.Line {
	wide := 0
	for _, p := range pairs {
		wide = max(wide, render.Width(p.Label))
	}
	var lines []widget.Line
	for _, p := range pairs {
		label := pad(p.Label, wide+2)
		for i, text := range p.Lines {
			if i > 0 {
				label = strings.Repeat(" ", wide+2)
			}
			lines = append(lines, widget.Line{Cells: []render.Cell{{Text: label, Style: render.Dim}, {Text: text, Style: p.Style}}})
		}
	}
	return lines
}

// tableLines are a table as lines of a width, a little further in; none when it has no rows.
func tableLines(t render.Table, width int) []widget.Line {
	if len(t.Rows) == 0 {
		return nil
	}
	var lines []widget.Line
	for i, text := range t.Lines(render.Layout{Width: max(width-2, 1)}) {
		style := render.Plain
		if i == 0 {
			style = render.Dim
		}
		lines = append(lines, indented(widget.TextLine(text, style)))
	}
	return lines
}

// document is all that was read of the run, in the shape that the command line prints.
func (p *runPage) document() render.Object {
	return render.Object{
		{Name: "workflow", Value: render.Document(p.workflow())}, {Name: "steps", Value: render.Documents(p.run.Steps())},
		{Name: "signals", Value: render.Documents(p.run.Signals())}, {Name: "audit_events", Value: render.Documents(p.run.Audit())},
	}
}

// Rows are what happened, for a file.
func (p *runPage) Rows() (titles []string, rows [][]string) {
	if p.workflow() == nil {
		return nil, nil
	}
	return p.events()
}

// JSON is the run with its steps, for a file.
func (p *runPage) JSON() ([]byte, error) {
	if p.workflow() == nil {
		return nil, errNotRead
	}
	raw, err := render.JSON(p.document(), "  ")
	return append(raw, '\n'), err
}

// selected is what copying is about: the latest attempt of the step under the cursor, or the run.
func (p *runPage) selected() (id string, m proto.Message) {
	if name, ok := p.SelectedStep(); ok {
		if attempts := p.run.Attempts(name); len(attempts) > 0 {
			last := attempts[len(attempts)-1]
			return last.GetStepId(), last
		}
	}
	return p.run.ID(), p.workflow()
}

func (p *runPage) copyIDAction() *Action {
	return &Action{Name: "copy", Keys: []string{"Y"}, Help: "copy the id of the run", Group: GroupView, Run: func([]string) error { return p.app.copy("run id", p.run.ID()) }}
}

func (p *runPage) copyJSONAction() *Action {
	return &Action{Name: "copy-json", Keys: []string{"ctrl-y"}, Help: "copy the step under the cursor, or the run, as JSON", Group: GroupView, Run: func([]string) error {
		_, m := p.selected()
		return p.app.copy("JSON", document(m))
	}}
}

func (p *runPage) showJSONAction() *Action {
	return &Action{Name: "json", Keys: []string{"y"}, Help: "show the step under the cursor, or the run, as JSON", Group: GroupView, Run: func([]string) error {
		id, m := p.selected()
		text := document(m)
		if text == "" {
			return fmt.Errorf("%s cannot be shown as JSON", id)
		}
		d := widget.NewDocument(p.app.theme)
		d.SetPayload(id, []byte(text), "application/json")
		p.app.readDocument(id, d)
		return nil
	}}
}
