package widget

import (
	"strings"

	"github.com/rivo/uniseg"

	"github.com/kagzi/kagzi/tui/render"
)

// Line is one line of text, in pieces that may look different.
type Line struct {
	Cells []render.Cell
	// Hang is how far its rows after the first are indented where it is wrapped, if that leaves
	// them half of the width; default 2.
	Hang int
}

// TextLine is a line that looks one way throughout. The text may be anything.
func TextLine(text string, style render.Style) Line {
	return Line{Cells: []render.Cell{{Text: text, Style: style}}}
}

// TextLines are the lines of a text such as a stack, split at its newlines.
func TextLines(text string, style render.Style) []Line {
	parts := render.SafeLines(text)
	lines := make([]Line, len(parts))
	for i, part := range parts {
		lines[i] = TextLine(part, style)
	}
	return lines
}

// Text is what the line says, without its looks, harmless.
func (l Line) Text() string { return l.flatten().text }

// Width is how many cells the line takes when it is not cut.
func (l Line) Width() int { return uniseg.StringWidth(l.Text()) }

// width is Width, counted up to most.
func (l Line) width(most int) int {
	n := 0
	for _, cell := range l.Cells {
		if n += textWidth(cell.Text, most); n >= most {
			return most
		}
	}
	return n
}

// Draw writes the line into the first row of a canvas and cuts it where the canvas ends.
func (l Line) Draw(c Canvas) { l.draw(c, c.Theme.Style) }

// draw does so with another look for each meaning.
func (l Line) draw(c Canvas, style styler) {
	short := Line{Cells: make([]render.Cell, len(l.Cells))}
	for i, cell := range l.Cells {
		short.Cells[i] = render.Cell{Text: bounded(cell.Text, c.W+1), Style: cell.Style}
	}
	short.flatten().cut(c, 0, 0, c.W, style)
}

// flatten joins the pieces, made harmless. Of a piece that is longer than anybody reads on a screen
// only the beginning stays.
func (l Line) flatten() flat {
	if len(l.Cells) == 1 && len(l.Cells[0].Text) <= longest {
		text := render.Safe(l.Cells[0].Text)
		return flat{text: text, runs: []run{{len(text), l.Cells[0].Style}}}
	}
	var b strings.Builder
	runs := make([]run, 0, len(l.Cells)+1)
	for _, cell := range l.Cells {
		text, more := shorten(cell.Text, longest)
		b.WriteString(render.Safe(text))
		runs = append(runs, run{b.Len(), cell.Style})
		if more > 0 {
			b.WriteString(" ... " + render.Bytes(int64(more)) + " more")
			runs = append(runs, run{b.Len(), render.Dim})
		}
	}
	return flat{text: b.String(), runs: runs}
}
