package widget_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rivo/tview"

	"github.com/kagzi/kagzi/engine/lab/long"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/widget"
	"github.com/kagzi/kagzi/tui/widget/widgettest"
)

// everywhere returns each widget with a text in every place that users can fill.
func everywhere(t *testing.T, look func() *theme.Theme, text string) map[string]tview.Primitive {
	cells := []render.Cell{{Text: text, Style: render.Bad}, {Text: text}}
	lines := append(widget.TextLines(text, render.Plain), widget.Line{Cells: cells})
	gantt := widget.NewGantt(look)
	gantt.SetLanes([]widget.Lane{{ID: text, Label: text, Note: text, Spans: []widget.Span{work(0, 1, render.Good)}}},
		noon)
	document := widget.NewDocument(look)
	document.SetPayload(text, fmt.Appendf(nil, `{%q:[%q],"raw %s":"%s"}`, text, text, text, text), "")
	other := widget.NewDocument(look)
	other.SetPayload(text, []byte(text), "application/json")
	wrapped := widget.NewDocument(look)
	wrapped.SetPayload(text, []byte(text+"\n"+text), "text/plain")
	wrapped.SetWrap(true)
	wrapped.Search(text)
	viewer := widget.NewLines(look).SetLines(lines)
	viewer.Search(text)
	sideways := widget.NewLines(look).SetLines(lines)
	sideways.SetWrap(false)
	tree := widget.NewTree(look).SetRoots([]widget.Node{
		{ID: text, Cells: cells, Open: true, Children: []widget.Node{{ID: text + "2", Cells: cells}}}})
	prompt := widget.NewPrompt(look, text)
	prompt.Complete = func(typed string) []string { return []string{typed + text} }
	paste(prompt, text)
	prompt.Error(text)
	dialog := widget.NewDialog(look, widget.Question{
		Title: text, Lines: lines, Command: text, Buttons: []string{text, text}, Want: text})
	form := widget.NewForm(look, text, []widget.Field{
		{Name: "a", Label: text, Value: text, Check: func(string) error {
			return errors.New(text)
		}, Note: func(string) []render.Cell { return cells }},
		{Name: "b", Label: text, Kind: widget.ChoiceField, Choices: []string{text}},
		{Name: "c", Kind: widget.JSONField, Value: text},
	})
	form.SetNote("b", lines)
	widgettest.Press(t, form, "ctrl-s")
	form.SetError("", text)
	picker := widget.NewPicker(look, text, []string{text}, "")
	return map[string]tview.Primitive{"gantt": gantt, "document": document, "other document": other,
		"wrapped document": wrapped, "lines": viewer, "lines sideways": sideways,
		"tree": tree, "prompt": prompt, "dialog": dialog, "form": form, "picker": picker}
}

func TestNothing_hostile_reaches_a_cell(t *testing.T) {
	corpus := widgettest.Hostile()
	if len(corpus) < 300 {
		t.Fatalf("the corpus holds %d texts, want at least 300", len(corpus))
	}
	corpus["megabyte of everything"] = strings.Repeat("\x1b[31m\u202e語e\u0301", 90_000) // in one line
	for i, name := range long.Share(t, slices.Sorted(maps.Keys(corpus)), 6) {
		text := corpus[name]
		look := plain
		if i%2 == 1 {
			look = ascii
		}
		for widget, primitive := range everywhere(t, look, text) {
			t.Run(widget+" "+name, func(t *testing.T) {
				widgettest.Harmless(t, primitive, 60, 15, nil)
				if i%4 == 0 {
					widgettest.Press(t, primitive, "j", "down", "right", "l", "w", "n", "G", "left")
					widgettest.Harmless(t, primitive, 7, 3, nil)
					widgettest.Harmless(t, primitive, 60, 15, nil)
				}
			})
		}
	}
}

func TestTags_are_text(t *testing.T) {
	for _, tag := range []string{"[red]a[-]", "[#000001]a", `["x"]b[""]`, "[::b]c", "[red[]d", "[:::http://x/?y]e[:::-]"} {
		for name, primitive := range everywhere(t, plain, tag) {
			got := widgettest.Draw(t, primitive, 120, 24, nil)
			if !strings.Contains(strings.ReplaceAll(got, `\"`, `"`), tag) {
				t.Errorf("%s shows\n%s", name, got)
			}
		}
	}
}
