package widget

import (
	"slices"
	"strings"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"github.com/kagzi/kagzi/tui/theme"
)

// Lines shows lines of text to scroll through: errors with their stacks, events, help. It has no cursor.
type Lines struct {
	*tview.Box
	look   func() *theme.Theme
	lines  []Line
	wrap   bool
	follow bool
	left   int   // cells scrolled out on the left, when lines are not wrapped
	top    place // the first row on the screen

	width, height int // of the screen at the last draw
	laid          layouts

	find  *finder
	hits  []lineHit // in the order of the lines
	found int       // the current one
}

// lineHit is a piece of a line that was searched for.
type lineHit struct{ line, from, to int }

// NewLines makes an empty viewer that wraps its lines.
func NewLines(look func() *theme.Theme) *Lines {
	return &Lines{Box: tview.NewBox(), look: look, wrap: true, laid: layouts{}}
}

// SetLines shows other lines. The place on the screen stays as far as there is one.
func (l *Lines) SetLines(lines []Line) *Lines {
	l.lines = slices.Clip(lines) // what is added later does not go into the caller's
	clear(l.laid)
	l.research()
	return l
}

// Append adds lines at the end.
func (l *Lines) Append(lines ...Line) {
	from := len(l.lines)
	l.lines = append(l.lines, lines...)
	l.searchFrom(from)
}

// Trim takes lines away from the beginning until no more than most are left. What is on the screen stays where it is.
func (l *Lines) Trim(most int) {
	gone := len(l.lines) - max(most, 0)
	if gone <= 0 {
		return
	}
	l.lines = slices.Clone(l.lines[gone:])
	l.top = place{max(l.top.line-gone, 0), l.top.row}
	if l.top.line == 0 {
		l.top.row = 0
	}
	clear(l.laid)
	l.research()
}

// Len is how many lines there are.
func (l *Lines) Len() int { return len(l.lines) }

// Text is all lines as plain text, for copying.
func (l *Lines) Text() string {
	var b strings.Builder
	for _, line := range l.lines {
		b.WriteString(line.Text())
		b.WriteByte('\n')
	}
	return b.String()
}

// SetWrap says whether lines that are too long go on in the next row, which is the default, or can be scrolled sideways.
func (l *Lines) SetWrap(wrap bool) {
	l.wrap, l.left, l.top.row = wrap, 0, 0
	clear(l.laid)
}

// Wrap says whether lines are wrapped.
func (l *Lines) Wrap() bool { return l.wrap }

// SetFollow says whether the last line stays on the screen when lines are added. Scrolling up ends it.
func (l *Lines) SetFollow(follow bool) { l.follow = follow }

// Follow says whether the end is followed.
func (l *Lines) Follow() bool { return l.follow }

// Scroll moves by rows of the screen, down or, below zero, up.
func (l *Lines) Scroll(rows int) {
	if rows < 0 {
		l.follow = false
	}
	l.top = step(l, l.top, rows)
	l.settle()
}

// Top shows the beginning.
func (l *Lines) Top() { l.top, l.left, l.follow = place{}, 0, false }

// End shows the end.
func (l *Lines) End() { l.top = l.end() }

// AtEnd says whether the last line is on the screen.
func (l *Lines) AtEnd() bool {
	return !l.top.before(l.end())
}

// InputHandler scrolls.
func (l *Lines) InputHandler() func(*tcell.EventKey, func(tview.Primitive)) {
	return l.WrapInputHandler(func(event *tcell.EventKey, _ func(tview.Primitive)) { l.Key(event) })
}

// Key does what a key means to the viewer; ok is false when it means nothing.
func (l *Lines) Key(event *tcell.EventKey) (ok bool) {
	page := max(l.height-1, 1)
	switch KeyName(event) {
	case "j", "down":
		l.Scroll(1)
	case "k", "up":
		l.Scroll(-1)
	case "pgdn", "space":
		l.Scroll(page)
	case "pgup":
		l.Scroll(-page)
	case "ctrl-d":
		l.Scroll(max(page/2, 1))
	case "ctrl-u":
		l.Scroll(-max(page/2, 1))
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
		return false
	}
	return true
}

// sideways is how many cells one key scrolls.
const sideways = 8

// MouseHandler scrolls with the wheel.
func (l *Lines) MouseHandler() func(tview.MouseAction, *tcell.EventMouse, func(tview.Primitive)) (bool, tview.Primitive) {
	return mouse(l.Box, l.Scroll, func(int, int, bool) {})
}
