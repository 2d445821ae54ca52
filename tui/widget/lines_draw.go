package widget

import (
	"sort"

	"github.com/gdamore/tcell/v2"

	"github.com/kagzi/kagzi/tui/theme"
)

// Draw draws the rows that are on the screen.
func (l *Lines) Draw(screen tcell.Screen) {
	x, y, w, h := l.GetInnerRect()
	look := l.look()
	c := On(screen, look, x, y, w, h)
	c.Clear(look.Role(theme.Text))
	if w != l.width {
		clear(l.laid)
	}
	l.width, l.height = w, h
	l.settle()
	at, more := l.top, len(l.lines) > 0
	for row := 0; row < h && more; row++ {
		l.drawRow(c, row, at)
		at, more = below(l, at)
	}
	if l.top != (place{}) {
		c.Text(w-1, 0, look.Glyph(theme.Up), look.Role(theme.Faint))
	}
	if more && h > 0 {
		c.Text(w-1, h-1, look.Glyph(theme.Down), look.Role(theme.Faint))
	}
}

func (l *Lines) drawRow(c Canvas, y int, at place) {
	laid := l.layout(at.line)
	from, to := laid.span(at.row)
	x := 0
	if at.row > 0 {
		x = laid.hang
	}
	laid.draw(c, x-l.left, y, from, to, l.hitsOf(at.line), c.Theme.Style)
}

// hitsOf are the hits in a line.
func (l *Lines) hitsOf(line int) []hit {
	var hits []hit
	for i := sort.Search(len(l.hits), func(i int) bool { return l.hits[i].line >= line }); i < len(l.hits) && l.hits[i].line == line; i++ {
		hits = append(hits, hit{l.hits[i].from, l.hits[i].to, i == l.found})
	}
	return hits
}

// measure is how many rows the lines take when a row has width cells, counted up to most.
func (l *Lines) measure(width, most int) int {
	if width != l.width {
		clear(l.laid)
		l.width = width
	}
	rows := 0
	for i := 0; i < len(l.lines) && rows < most; i++ {
		rows += l.rows(i)
	}
	return min(rows, most)
}

func (l *Lines) layout(line int) layout {
	width := 0
	if l.wrap {
		width = max(l.width, 2*hang)
	}
	return l.laid.of(line, func() Line { return l.lines[line] }, width)
}

func (l *Lines) rows(line int) int          { return len(l.layout(line).starts) }
func (l *Lines) after(line int) (int, bool) { return line + 1, line+1 < len(l.lines) }
func (l *Lines) ahead(line int) (int, bool) { return line - 1, line > 0 }

// end is the first row on the screen when the last is on it too.
func (l *Lines) end() place {
	if len(l.lines) == 0 {
		return place{}
	}
	last := len(l.lines) - 1
	return step(l, place{last, l.rows(last) - 1}, 1-max(l.height, 1))
}

// settle keeps the screen within the lines.
func (l *Lines) settle() {
	if len(l.lines) == 0 {
		l.top = place{}
		return
	}
	l.top.line = min(l.top.line, len(l.lines)-1)
	l.top.row = min(l.top.row, l.rows(l.top.line)-1)
	if l.follow || l.AtEnd() {
		l.top = l.end()
	}
}
