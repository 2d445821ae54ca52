package widget

import (
	"strings"

	"github.com/gdamore/tcell/v2"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
)

const (
	formMost     = 90 // cells of a form, if the screen allows
	formLabel    = 18 // of the labels at most
	jsonRows     = 6  // visible rows of JSON
	jsonBytes    = 4 << 10
	formSaid     = 512 // bytes of a field's problem
	formButtons  = 2   // rows: the form's problem, and the buttons
	formProblem  = 3   // rows of the form's problem at most
	checkedMark  = "[x]"
	uncheckedBox = "[ ]"
)

// formRow is a row of a form: how to draw it, and its field.
type formRow struct {
	field int
	draw  func(c Canvas)
}

// Draw draws the box in the middle and leaves the cells around it unchanged. The focused field is
// always visible.
func (f *Form) Draw(screen tcell.Screen) {
	x, y, w, h := f.GetInnerRect()
	look := f.look()
	width := min(w, formMost)
	rows := f.rows(width - 4)
	wrong := wrapped(f.problem, width-4)
	wrong = wrong[:min(len(wrong), formProblem, max(h-4, 0))]
	below := formButtons + max(len(wrong)-1, 0)
	height := min(len(rows)+below+2, h)
	c := On(screen, look, x, y, w, h).Part((w-width)/2, (h-height)/2, width, height)
	c.Clear(look.Role(theme.Text))
	inner := c.Box(f.title, look.Role(theme.Border))
	c = inner.Part(1, 0, inner.W-2, inner.H)
	room := max(c.H-below, 0)
	f.scroll(rows, room)
	f.places = map[int]int{}
	for i := f.offset; i < min(f.offset+room, len(rows)); i++ {
		f.places[c.Y+i-f.offset] = rows[i].field
		rows[i].draw(c.Part(0, i-f.offset, c.W, 1))
	}
	if f.offset > 0 {
		inner.Text(inner.W-1, 0, look.Glyph(theme.Up), look.Role(theme.Key))
	}
	if f.offset+room < len(rows) {
		c.Cut(0, room, c.W, look.Glyph(theme.Down)+" more below", look.Role(theme.Faint))
	}
	for i, line := range wrong {
		part := c.Part(0, room+i, c.W, 1)
		part.Clear(look.Role(theme.Text))
		line(part)
	}
	f.drawButtons(c.Part(0, c.H-1, c.W, 1))
}

// scroll keeps the rows of the focused field visible, or the first ones if they do not fit.
func (f *Form) scroll(rows []formRow, room int) {
	f.offset = max(min(f.offset, len(rows)-room), 0)
	first, last := -1, -1
	for i, row := range rows {
		if row.field == f.focus {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	if first >= 0 {
		f.offset = min(max(f.offset, last-room+1), first)
	}
}

// rows returns all rows of the fields.
func (f *Form) rows(width int) []formRow {
	label := 0
	for _, field := range f.fields {
		label = max(label, textWidth(field.Label, formLabel))
	}
	label = min(label, formLabel, width/3) + 2
	var rows []formRow
	for i, field := range f.fields {
		add := func(draw func(c Canvas)) {
			rows = append(rows, formRow{i, draw})
		}
		add(func(c Canvas) { f.drawField(c, field, label, i == f.focus) })
		below := func(line Line) {
			add(func(c Canvas) { line.Draw(c.Part(label, 0, c.W-label, 1)) })
		}
		if field.Kind == JSONField {
			for _, line := range jsonLines(field.Value) {
				below(line)
			}
		}
		for _, row := range wrapped(field.problem, width-label) {
			add(func(c Canvas) { row(c.Part(label, 0, c.W-label, 1)) })
		}
		if field.Note != nil {
			if note := (Line{Cells: field.Note(field.value())}); len(note.Cells) > 0 &&
				note.Text() != render.Safe(field.problem) {
				for _, row := range rowsOf(note, width-label, nil) {
					add(func(c Canvas) { row(c.Part(label, 0, c.W-label, 1)) })
				}
			}
		}
		for _, line := range field.note {
			below(line)
		}
	}
	return rows
}

// wrapped draws a problem, wrapped at a width; no rows if it is empty.
func wrapped(problem string, width int) []func(c Canvas) {
	if problem == "" {
		return nil
	}
	problem, _ = shorten(problem, formSaid)
	return rowsOf(TextLine(problem, render.Plain), width, func(c Canvas) styler {
		return func(render.Style) tcell.Style { return c.Theme.Role(theme.Danger) }
	})
}

// rowsOf draws a line, wrapped at a width. look chooses styles; nil: the theme's.
func rowsOf(line Line, width int, look func(c Canvas) styler) []func(c Canvas) {
	laid := layOut(line, max(width, 2*hang))
	rows := make([]func(c Canvas), len(laid.starts))
	for i := range rows {
		from, to := laid.span(i)
		x := 0
		if i > 0 {
			x = laid.hang
		}
		rows[i] = func(c Canvas) {
			style := styler(c.Theme.Style)
			if look != nil {
				style = look(c)
			}
			laid.draw(c, x, 0, from, to, nil, style)
		}
	}
	return rows
}

// jsonLines returns the first lines of a value, below the line with its size.
func jsonLines(value string) []Line {
	if value == "" {
		return nil
	}
	head, more := shorten(value, jsonBytes)
	lines := TextLines(head, render.Plain)
	if len(lines) > jsonRows || more > 0 {
		lines = append(lines[:min(len(lines), jsonRows-1)], TextLine("...", render.Dim))
	}
	return lines
}

func (f *Form) drawField(c Canvas, field *formField, label int, focused bool) {
	style := c.Theme.Role(theme.Text)
	if focused {
		style = c.Theme.Role(theme.Title)
	}
	c.Cut(0, 0, label-1, field.Label, style)
	value := c.Part(label, 0, c.W-label, 1)
	look := c.Theme.Role(theme.Text)
	if focused {
		look = c.Theme.Role(theme.Selected)
	}
	switch field.Kind {
	case ChoiceField:
		left, right := c.Theme.Glyph(theme.Left), c.Theme.Glyph(theme.Right)
		value.Cut(0, 0, value.W, left+" "+field.Value+" "+right, look)
	case CheckField:
		box := uncheckedBox
		if field.Value == "true" {
			box = checkedMark
		}
		value.Text(0, 0, box, look)
	case JSONField:
		value.Cut(0, 0, value.W, f.jsonHint(field), look)
	default:
		field.input.draw(value, 0, value.W, field.ghost, focused)
	}
}

// jsonHint returns the size of the JSON and how to change it.
func (f *Form) jsonHint(field *formField) string {
	parts := []string{"empty"}
	if field.Value != "" {
		parts[0] = render.Bytes(int64(len(field.Value)))
	}
	if f.Edit != nil {
		parts = append(parts, "e opens the editor")
	}
	return strings.Join(append(parts, "or paste it"), ", ")
}

// drawButtons draws the buttons at the right edge and records where they are.
func (f *Form) drawButtons(c Canvas) {
	labels := [...]string{f.SubmitLabel, "Cancel"}
	x := max(c.W-buttonWidth(labels[0])-buttonWidth(labels[1])-buttonGap, 0)
	for i, label := range labels {
		style := c.Theme.Role(theme.Text)
		if f.focus == f.submitFocus()+i {
			style = c.Theme.Role(theme.Selected).Bold(true)
		}
		n := c.Text(x, 0, "[ "+label+" ]", style)
		f.buttons[i] = buttonPlace{c.X + x, c.Y, n}
		x += n + buttonGap
	}
}
