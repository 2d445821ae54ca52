// Package widget provides the parts that screens are made of: tables, timelines, documents, forms.
// They know nothing of runs and servers. Everything is drawn through a Canvas, which makes text
// safe; nothing else writes to the screen. tview edits texts, lists choices and shows trees, through
// Canvas.put; each widget of our own says what tview's cannot do.
package widget

import (
	"unicode/utf8"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/uniseg"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
)

// Canvas is a rectangle of the screen. Drawing outside of it has no effect. tview's Print takes tags
// in texts for styles, and leaves control characters out instead of showing what they are.
type Canvas struct {
	Screen     tcell.Screen
	Theme      *theme.Theme
	X, Y, W, H int
}

// On returns a canvas over a rectangle of a screen.
func On(screen tcell.Screen, t *theme.Theme, x, y, w, h int) Canvas {
	return Canvas{Screen: screen, Theme: t, X: x, Y: y, W: max(w, 0), H: max(h, 0)}
}

// Part returns the rectangle of the canvas at x, y, clipped to the canvas.
func (c Canvas) Part(x, y, w, h int) Canvas {
	x, y = max(x, 0), max(y, 0)
	return On(c.Screen, c.Theme, c.X+x, c.Y+y, min(w, c.W-x), min(h, c.H-y))
}

// Clear fills the canvas with blanks of a style.
func (c Canvas) Clear(style tcell.Style) {
	for y := range c.H {
		c.uncover(0, y)
		for x := range c.W {
			c.Screen.SetContent(c.X+x, c.Y+y, ' ', nil, style)
		}
	}
}

// uncover blanks a wide character that starts in the cell before x: it would cover what is drawn at
// x.
func (c Canvas) uncover(x, y int) {
	if _, style, width := c.Screen.Get(c.X+x-1, c.Y+y); width > 1 && x < c.W {
		c.Screen.SetContent(c.X+x-1, c.Y+y, ' ', nil, style)
	}
}

// Fill repeats a glyph of one cell from x on.
func (c Canvas) Fill(x, y, n int, glyph string, style tcell.Style) {
	runes := []rune(render.Safe(glyph))
	if len(runes) == 0 || y < 0 || y >= c.H {
		return
	}
	for i := max(x, 0); i < min(x+n, c.W); i++ {
		c.Screen.SetContent(c.X+i, c.Y+y, runes[0], runes[1:], style)
	}
}

// Text writes text at x, y, made safe by render.Safe, and returns the number of cells written. It
// stops at the edge of the canvas.
func (c Canvas) Text(x, y int, s string, style tcell.Style) int {
	if y < 0 || y >= c.H || x >= c.W {
		return 0
	}
	c.uncover(max(x, 0), y)
	begin, state := x, -1
	for rest := render.Safe(bounded(s, c.W-x)); rest != ""; {
		var cluster string
		var width int
		cluster, rest, width, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if x+max(width, 1) > c.W {
			break
		}
		runes := []rune(cluster)
		if width == 0 { // a combining mark without a base: give it its own cell
			runes, width = append([]rune{'\u00b7'}, runes[1:]...), 1
		}
		if x >= 0 {
			c.Screen.SetContent(c.X+x, c.Y+y, runes[0], runes[1:], style)
		}
		x += width
	}
	return x - begin
}

// maxBytesPerCell limits how much of a text is processed for a line: a character of four bytes with
// as many marks as render.Safe keeps.
const maxBytesPerCell = 5 * 4

// bounded cuts off what cannot fit, so that a text of a megabyte costs no more than a short one.
func bounded(s string, cells int) string {
	limit := max(cells, 0) * maxBytesPerCell
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// Cut writes text into w cells from x on, with an ellipsis if it is longer, and returns the number
// of cells written.
func (c Canvas) Cut(x, y, w int, s string, style tcell.Style) int {
	w = min(w, c.W-x)
	if w <= 0 {
		return 0
	}
	s = render.Safe(bounded(s, w+1))
	if uniseg.StringWidth(s) <= w {
		return c.Text(x, y, s, style)
	}
	ellipsis := c.Theme.Glyph(theme.Ellipsis)
	n := c.Part(x, y, w-1, 1).Text(0, 0, s, style)
	return n + c.Text(x+n, y, ellipsis, style)
}

// Right writes text so that it ends w cells after x.
func (c Canvas) Right(x, y, w int, s string, style tcell.Style) {
	s = render.Safe(bounded(s, w+1))
	c.Cut(x+max(w-uniseg.StringWidth(s), 0), y, w, s, style)
}

// Box draws a frame with a title in its upper edge, and returns the canvas inside.
func (c Canvas) Box(title string, style tcell.Style) Canvas {
	if c.W < 2 || c.H < 2 {
		return c.Part(0, 0, 0, 0)
	}
	g := c.Theme.Glyph
	for _, y := range []int{0, c.H - 1} {
		c.Fill(1, y, c.W-2, g(theme.Line), style)
	}
	for y := 1; y < c.H-1; y++ {
		c.Text(0, y, g(theme.Bar), style)
		c.Text(c.W-1, y, g(theme.Bar), style)
	}
	c.Text(0, 0, g(theme.CornerTL), style)
	c.Text(c.W-1, 0, g(theme.CornerTR), style)
	c.Text(0, c.H-1, g(theme.CornerBL), style)
	c.Text(c.W-1, c.H-1, g(theme.CornerBR), style)
	if title != "" {
		c.Cut(2, 0, c.W-4, " "+title+" ", c.Theme.Role(theme.Title))
	}
	return c.Part(1, 1, c.W-2, c.H-2)
}

// edge is the column at the right of what scrolls: only the marks that there is more are drawn there.
const edge = 1

// marks draws in the last column that there is more above the row first and below the row last.
func (c Canvas) marks(first, last int, above, below bool) {
	style := c.Theme.Role(theme.Key)
	if above {
		c.Text(c.W-edge, first, c.Theme.Glyph(theme.Up), style)
	}
	if below && last > first {
		c.Text(c.W-edge, last, c.Theme.Glyph(theme.Down), style)
	}
}

// MovesBy returns how many rows a key moves the cursor in a list of n rows with height visible
// rows: negative is up, n or more goes to an end. ok is false if the key moves nothing.
func MovesBy(key string, n, height int) (rows int, ok bool) {
	page := max(height-1, 1)
	switch key {
	case "j", "down":
		return 1, true
	case "k", "up":
		return -1, true
	case "g", "home":
		return -n, true
	case "G", "end":
		return n, true
	case "pgdn":
		return page, true
	case "pgup":
		return -page, true
	case "ctrl-d":
		return max(page/2, 1), true
	case "ctrl-u":
		return -max(page/2, 1), true
	}
	return 0, false
}

// inView clamps the cursor to n rows and scrolls no further than needed to show it. It returns the
// cursor and the first visible row.
func inView(cursor, offset, n, height int) (at, first int) {
	at, height = max(min(cursor, n-1), 0), max(height, 1)
	first = min(max(offset, at-height+1), at)
	return at, max(min(first, n-height), 0)
}
