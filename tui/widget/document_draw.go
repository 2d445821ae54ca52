package widget

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/gdamore/tcell/v2"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
)

const (
	level    = 2 // cells of a level
	foldMark = 2 // cells of a fold mark
)

// Draw draws the path of the cursor's row, the visible rows, and the remark.
func (d *Document) Draw(screen tcell.Screen) {
	x, y, w, h := d.GetInnerRect()
	look := d.look()
	c := On(screen, look, x, y, w, h)
	c.Clear(look.Role(theme.Text))
	remark := d.remark()
	height := h - 1
	if remark != "" {
		height--
	}
	if width := max(w-edge, 1); width != d.width || max(height, 0) != d.height {
		clear(d.laid)
		d.width, d.height = width, max(height, 0)
		d.reveal()
	}
	w = d.width
	n := c.Cut(0, 0, w, d.title, look.Role(theme.Title))
	if len(d.tokens) == 0 {
		c.Cut(0, 1, w, "empty", look.Role(theme.Faint))
		return
	}
	if n > 0 {
		n += 2
	}
	c.Cut(n, 0, w-n, d.path(w-n), look.Role(theme.Faint))
	d.settle()
	at, more := d.top, true
	for row := 0; row < d.height && more; row++ {
		d.drawRow(c.Part(0, 1+row, w, 1), at)
		at, more = below(d, at)
	}
	c.marks(0, d.height, d.top != (place{}), more)
	if remark != "" && h > 1 {
		c.Cut(0, h-1, w, remark, look.Role(theme.Faint))
	}
}

func (d *Document) drawRow(c Canvas, at place) {
	t := &d.tokens[at.line]
	style := styler(c.Theme.Style)
	if at.line == d.cursor {
		selected := c.Theme.Role(theme.Selected)
		c.Clear(selected)
		style = func(render.Style) tcell.Style { return selected }
	}
	x := d.indent(t)
	if at.row == 0 && t.opens() {
		mark := theme.Unfolded
		if t.folded {
			mark = theme.Folded
		}
		c.Text(x, 0, c.Theme.Glyph(mark), style(render.Dim))
	}
	x += d.mark()
	laid := d.layout(at.line)
	hits := d.hitsOf(at.line, laid.text)
	if !d.wrap && len(hits) == 0 {
		laid.cut(c, x, 0, c.W-x, style)
		return
	}
	if at.row > 0 {
		x += hang
	}
	from, to := laid.span(at.row)
	laid.draw(c, x, 0, from, to, hits, style)
}

// indent returns where a token's row begins. Deep levels stay within the left half; the path shows
// how deep they are.
func (d *Document) indent(t *token) int {
	return min(int(t.depth)*level, max(d.width/2-level, 0))
}

// mark returns the width of fold marks: 0 if nothing can be folded.
func (d *Document) mark() int {
	if d.JSON() {
		return foldMark
	}
	return 0
}

func (d *Document) layout(at int) layout {
	width := 0
	if d.wrap {
		width = max(d.width-d.indent(&d.tokens[at])-d.mark(), 2*hang)
	}
	return d.laid.of(at, func() Line { return d.line(at) }, width)
}

// line returns the content of a token's row.
func (d *Document) line(at int) Line {
	t := &d.tokens[at]
	var cells []render.Cell
	if t.keyTo > t.keyFrom {
		cells = append(d.piece(t.keyFrom, t.keyTo, render.Busy), render.Cell{Text: ": "})
	}
	cells = append(cells, d.value(t)...)
	comma := t.comma
	if t.folded {
		comma = d.tokens[t.partner].comma
	}
	if comma {
		cells = append(cells, render.Cell{Text: ","})
	}
	return Line{Cells: cells}
}

// tokenStyles maps kinds of values to styles.
var tokenStyles = map[tokenKind]render.Style{
	stringToken: render.Good, numberToken: render.Waiting, literalToken: render.Paused}

func (d *Document) value(t *token) []render.Cell {
	switch {
	case t.kind == textToken:
		cells := d.piece(t.from, t.to, render.Plain)
		cells[0].Text = strings.ReplaceAll(cells[0].Text, "\t", "    ")
		return cells
	case t.kind == bytesToken:
		return dump(t.from, d.data[t.from:t.to])
	case t.kind == cutToken:
		return []render.Cell{{Text: render.Bytes(int64(len(d.data))-int64(t.from)) + " more", Style: render.Dim}}
	case t.folded && t.kind == objectToken:
		return []render.Cell{{Text: "{...} "}, {Text: plural(t.count, "key"), Style: render.Dim}}
	case t.folded:
		return []render.Cell{{Text: "[...] "}, {Text: plural(t.count, "item"), Style: render.Dim}}
	case t.kind == emptyToken:
		return []render.Cell{{Text: string([]byte{d.data[t.from], d.data[t.to-1]})}} // without blanks in between
	}
	return d.piece(t.from, t.to, tokenStyles[t.kind])
}

func plural(n int32, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// piece returns a piece of the data as it was sent, limited to what fits on a screen.
func (d *Document) piece(from, to int32, style render.Style) []render.Cell {
	end := from + min(to-from, longest)
	for end < to && end > from && !utf8.RuneStart(d.data[end]) {
		end--
	}
	cells := []render.Cell{{Text: string(d.data[from:end]), Style: style}}
	if end < to {
		cells = append(cells, render.Cell{Text: " ... " + render.Bytes(int64(to-end)) + " more", Style: render.Dim})
	}
	return cells
}

// dump returns a row of a hex dump: offset, hexadecimal bytes, printable characters.
func dump(offset int32, data []byte) []render.Cell {
	var hex, letters strings.Builder
	for i := range dumpBytes {
		if i%8 == 0 {
			hex.WriteByte(' ')
		}
		if i >= len(data) {
			hex.WriteString("   ")
			continue
		}
		fmt.Fprintf(&hex, " %02x", data[i])
		if data[i] >= 0x20 && data[i] < 0x7f {
			letters.WriteByte(data[i])
		} else {
			letters.WriteByte('.')
		}
	}
	return []render.Cell{{Text: fmt.Sprintf("%08x", offset), Style: render.Dim}, {Text: hex.String()},
		{Text: "  " + letters.String(), Style: render.Good}}
}
