package widget

import (
	"strings"

	"github.com/gdamore/tcell/v2"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
)

const (
	formMost    = 90  // cells of a form, if the screen allows
	formLabel   = 18  // of the labels at most
	jsonMost    = 6   // visible rows of JSON
	jsonFocused = 3   // of them, at least with the focus
	formSaid    = 512 // bytes of a field's problem
	formButtons = 2   // rows: the form's problem, and the buttons
	formProblem = 3   // rows of the form's problem at most
)

// formPart is a part of a form below the one before it: its rows, how to draw it, and its field.
type formPart struct {
	field, rows int
	draw        func(c Canvas)
}

// Draw draws the box in the middle and leaves the cells around it unchanged. The focused field is
// always visible.
func (f *Form) Draw(screen tcell.Screen) {
	x, y, w, h := f.GetInnerRect()
	look := f.look()
	width := min(w, formMost)
	parts, rows := f.parts(width - 4)
	wrong := wrapped(f.problem, width-4)
	wrong = wrong[:min(len(wrong), formProblem, max(h-4, 0))]
	below := formButtons + max(len(wrong)-1, 0)
	height := min(rows+below+2, h)
	c := On(screen, look, x, y, w, h).Part((w-width)/2, (h-height)/2, width, height)
	c.Clear(look.Role(theme.Text))
	inner := c.Box(f.title, look.Role(theme.Border))
	c = inner.Part(1, 0, inner.W-2, inner.H)
	room := max(c.H-below, 0)
	f.scroll(parts, rows, room)
	f.places = map[int]int{}
	top := -f.offset
	for _, part := range parts {
		first, last := max(top, 0), min(top+part.rows, room)
		for row := first; row < last; row++ {
			f.places[c.Y+row] = part.field
		}
		if first < last {
			part.draw(c.Part(0, first, c.W, last-first))
		}
		top += part.rows
	}
	if f.offset > 0 {
		inner.Text(inner.W-1, 0, look.Glyph(theme.Up), look.Role(theme.Key))
	}
	if f.offset+room < rows {
		c.Cut(0, room, c.W, look.Glyph(theme.Down)+" more below", look.Role(theme.Faint))
	}
	for i, line := range wrong {
		part := c.Part(0, room+i, c.W, 1)
		part.Clear(look.Role(theme.Text))
		line(part)
	}
	f.buttons.labels = []string{f.SubmitLabel, "Cancel"}
	f.buttons.draw(c.Part(0, c.H-1, c.W, 1), f.focus-len(f.fields), func(int) theme.Role { return theme.Text })
}

// scroll keeps the rows of the focused field visible, or the first ones if they do not fit.
func (f *Form) scroll(parts []formPart, rows, room int) {
	f.offset = max(min(f.offset, rows-room), 0)
	first, last, top := -1, -1, 0
	for _, part := range parts {
		if part.field == f.focus {
			if first < 0 {
				first = top
			}
			last = top + part.rows - 1
		}
		top += part.rows
	}
	if first >= 0 {
		f.offset = min(max(f.offset, last-room+1), first)
	}
}

// parts returns the fields with what is said below them, and the number of their rows.
func (f *Form) parts(width int) (parts []formPart, rows int) {
	label := 0
	for _, field := range f.fields {
		label = max(label, textWidth(field.Label, formLabel))
	}
	label = min(label, formLabel, width/3) + 2
	for i, field := range f.fields {
		add := func(n int, draw func(c Canvas)) {
			parts = append(parts, formPart{i, n, draw})
			rows += n
		}
		below := func(lines []func(c Canvas)) {
			for _, line := range lines {
				add(1, func(c Canvas) { line(c.Part(label, 0, c.W-label, 1)) })
			}
		}
		n := 1
		if field.Kind == JSONField {
			n = min(strings.Count(field.value(), "\n")+1, jsonMost)
			if i == f.focus {
				n = max(n, jsonFocused)
			}
		}
		add(n, func(c Canvas) { f.drawField(c, field, label, i == f.focus) })
		below(wrapped(field.problem, width-label))
		if note := f.noteOf(field, i == f.focus); len(note.Cells) > 0 && note.Text() != render.Safe(field.problem) {
			below(rowsOf(note, width-label, nil))
		}
		for _, line := range field.note {
			below([]func(c Canvas){line.Draw})
		}
	}
	return parts, rows
}

// noteOf returns the line below a field, which may be empty.
func (f *Form) noteOf(field *formField, focused bool) Line {
	switch {
	case field.Note != nil:
		return Line{Cells: field.Note(field.value())}
	case field.Kind == JSONField && focused && f.Edit != nil:
		return TextLine("JSON; ctrl-o opens the editor", render.Dim)
	}
	return Line{}
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

func (f *Form) drawField(c Canvas, field *formField, label int, focused bool) {
	style, look := c.Theme.Role(theme.Text), c.Theme.Role(theme.Text)
	if focused {
		style, look = c.Theme.Role(theme.Title), c.Theme.Role(theme.Selected)
	}
	c.Cut(0, 0, label-1, field.Label, style)
	value := c.Part(label, 0, c.W-label, c.H)
	switch field.Kind {
	case ChoiceField:
		left, right := c.Theme.Glyph(theme.Left), c.Theme.Glyph(theme.Right)
		value.Cut(0, 0, value.W, left+" "+field.Value+" "+right, look)
	case CheckField:
		box := map[bool]string{true: "[x]", false: "[ ]"}[field.Value == "true"]
		value.Text(0, 0, box, look)
	default:
		field.typed.draw(value, focused)
	}
}
