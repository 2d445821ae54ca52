package widget

import (
	"strings"

	"github.com/rivo/uniseg"

	"github.com/kagzi/kagzi/tui/render"
)

// Line is one line of text in pieces with different styles.
type Line struct {
	Cells []render.Cell
	// Hang is the indent of the rows after the first if the line is wrapped; default 2. It is
	// ignored if it leaves less than half of the width.
	Hang int
}

// TextLine returns a line in one style. The text may be anything.
func TextLine(text string, style render.Style) Line {
	return Line{Cells: []render.Cell{{Text: text, Style: style}}}
}

// TextLines returns the lines of a text such as a stack, split at newlines.
func TextLines(text string, style render.Style) []Line {
	parts := render.SafeLines(text)
	lines := make([]Line, len(parts))
	for i, part := range parts {
		lines[i] = TextLine(part, style)
	}
	return lines
}

// Text returns the text of the line, made safe.
func (l Line) Text() string { return l.flatten().text }

// Width returns how many cells the line takes if it is not cut.
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

// Draw draws the line into the first row of a canvas and cuts it at the edge.
func (l Line) Draw(c Canvas) {
	short := Line{Cells: make([]render.Cell, len(l.Cells))}
	for i, cell := range l.Cells {
		short.Cells[i] = render.Cell{Text: bounded(cell.Text, c.W+1), Style: cell.Style}
	}
	short.flatten().cut(c, 0, 0, c.W, c.Theme.Style)
}

// flatten joins the pieces, made safe. A very long piece is shortened.
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
