package widget

import (
	"sort"
	"strings"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"
	"github.com/rivo/uniseg"

	"github.com/kagzi/kagzi/tui/theme"
)

// Lines shows scrollable lines of text: errors with stacks, events, help. It has no cursor. It is not
// tview's TextView, whose wrapped lines cannot hang below their text, and which measures all text above
// the screen again whenever some changes: at the end of 10,000 lines that takes tenths of a second.
type Lines struct {
	*tview.Box
	look  func() *theme.Theme
	lines []Line
	wrap  bool
	left  int   // cells scrolled out on the left, if lines are not wrapped
	top   place // first visible row

	width, height int // for text, at the last draw
	laid          layouts

	find  *finder
	hits  []lineHit // in line order
	found int       // current hit
}

// lineHit is a search hit in a line.
type lineHit struct{ line, from, to int }

// NewLines returns an empty viewer that wraps its lines.
func NewLines(look func() *theme.Theme) *Lines {
	return &Lines{Box: tview.NewBox(), look: look, wrap: true, laid: layouts{}}
}

// SetLines replaces the lines. The scroll position is kept if possible.
func (l *Lines) SetLines(lines []Line) *Lines {
	l.lines = lines
	clear(l.laid)
	l.research()
	return l
}

// Text returns all lines as plain text, for copying.
func (l *Lines) Text() string {
	var b strings.Builder
	for _, line := range l.lines {
		b.WriteString(line.Text())
		b.WriteByte('\n')
	}
	return b.String()
}

// SetWrap sets whether long lines are wrapped, which is the default, or scrolled sideways.
func (l *Lines) SetWrap(wrap bool) {
	l.wrap, l.left, l.top.row = wrap, 0, 0
	clear(l.laid)
}

// Wrap reports whether lines are wrapped.
func (l *Lines) Wrap() bool { return l.wrap }

// Scroll scrolls by rows, down if positive.
func (l *Lines) Scroll(rows int) {
	l.top = step(l, l.top, rows)
	l.settle()
}

// Top shows the start.
func (l *Lines) Top() { l.top, l.left = place{}, 0 }

// End shows the end.
func (l *Lines) End() { l.top = l.end() }

// InputHandler scrolls.
func (l *Lines) InputHandler() func(*tcell.EventKey, func(tview.Primitive)) {
	return takes(l.Box, func(event *tcell.EventKey) { l.Key(event) })
}

// Key handles a key; ok is false if it has no meaning.
func (l *Lines) Key(event *tcell.EventKey) (ok bool) {
	switch key := KeyName(event); key {
	case "space":
		l.Scroll(max(l.height-1, 1))
	case "g", "home":
		l.Top()
	case "G", "end":
		l.End()
	case "h", "left":
		l.left = max(l.left-sideways, 0)
	case "l", "right":
		if !l.wrap {
			l.left += sideways
		}
	case "w":
		l.SetWrap(!l.wrap)
	case "n":
		l.Next()
	case "N":
		l.Prev()
	default:
		rows, ok := MovesBy(key, 0, l.height)
		l.Scroll(rows)
		return ok
	}
	return true
}

// sideways is how many cells one key scrolls.
const sideways = 8

// MouseHandler scrolls with the wheel.
func (l *Lines) MouseHandler() mouseHandler {
	return mouse(l.Box, l.Scroll, func(int, int, bool) {})
}

// Draw draws the visible rows.
func (l *Lines) Draw(screen tcell.Screen) {
	x, y, w, h := l.GetInnerRect()
	look := l.look()
	c := On(screen, look, x, y, w, h)
	c.Clear(look.Role(theme.Text))
	l.measure(w, 0)
	l.height = h
	l.settle()
	text := c.Part(0, 0, l.width, h)
	at, more := l.top, len(l.lines) > 0
	for row := 0; row < h && more; row++ {
		l.drawRow(text, row, at)
		at, more = below(l, at)
	}
	c.marks(0, h-1, l.top != (place{}), more)
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

// hitsOf returns the hits in a line.
func (l *Lines) hitsOf(line int) []hit {
	var hits []hit
	for i := sort.Search(len(l.hits), func(i int) bool { return l.hits[i].line >= line }); i < len(l.hits) &&
		l.hits[i].line == line; i++ {
		hits = append(hits, hit{l.hits[i].from, l.hits[i].to, i == l.found})
	}
	return hits
}

// measure sets the width of the widget, and returns how many rows the lines take, counted up to
// most.
func (l *Lines) measure(width, most int) int {
	width = max(width-edge, min(width, 2*hang))
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

// end returns the first visible row if the last row is visible too.
func (l *Lines) end() place {
	if len(l.lines) == 0 {
		return place{}
	}
	last := len(l.lines) - 1
	return step(l, place{last, l.rows(last) - 1}, 1-max(l.height, 1))
}

// settle keeps the scroll position within the lines.
func (l *Lines) settle() {
	if len(l.lines) == 0 {
		l.top = place{}
		return
	}
	l.top.line = min(l.top.line, len(l.lines)-1)
	l.top.row = min(l.top.row, l.rows(l.top.line)-1)
	if end := l.end(); end.before(l.top) {
		l.top = end
	}
}

// Search marks every hit, shows the first one from the top of the screen on, and returns the number
// of hits. Case matters only if the text has upper case. An empty text ends the search.
func (l *Lines) Search(text string) int {
	l.find, l.found = newFinder(text), 0
	l.research()
	if len(l.hits) == 0 {
		return 0
	}
	first := sort.Search(len(l.hits), func(i int) bool { return l.hits[i].line >= l.top.line })
	l.show(first % len(l.hits))
	return len(l.hits)
}

// Found returns the number of the current hit, from 1, and the number of hits.
func (l *Lines) Found() (current, of int) {
	if len(l.hits) == 0 {
		return 0, 0
	}
	return l.found + 1, len(l.hits)
}

// Next shows the next hit, and wraps around.
func (l *Lines) Next() { l.show(around(l.found, 1, len(l.hits))) }

// Prev shows the previous hit.
func (l *Lines) Prev() { l.show(around(l.found, -1, len(l.hits))) }

// research searches all lines again.
func (l *Lines) research() {
	l.hits = nil
	for i := 0; i < len(l.lines) && l.find != nil; i++ {
		for _, at := range l.find.all(l.lines[i].Text()) {
			l.hits = append(l.hits, lineHit{i, at.from, at.to})
		}
	}
	l.found = max(min(l.found, len(l.hits)-1), 0)
}

// show makes a hit the current one and scrolls to it if needed.
func (l *Lines) show(i int) {
	if i >= len(l.hits) {
		return
	}
	l.found = i
	h := l.hits[i]
	if !l.wrap {
		l.reveal(h)
	}
	row := place{h.line, rowAt(l.layout(h.line).starts, h.from)}
	if row.before(l.top) || step(l, l.top, max(l.height, 1)-1).before(row) {
		l.top = step(l, row, -max(l.height, 1)/3)
		l.settle()
	}
}

// reveal scrolls sideways to a hit if needed.
func (l *Lines) reveal(h lineHit) {
	text := l.lines[h.line].Text()
	from := uniseg.StringWidth(text[:h.from])
	if to := from + uniseg.StringWidth(text[h.from:h.to]); from < l.left || to > l.left+l.width {
		l.left = max(from-l.width/3, 0)
	}
}
