package widget

import (
	"fmt"
	"strings"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"
	"github.com/rivo/uniseg"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
)

// put draws a primitive of tview over the whole canvas. Text in the first room cells of a row is
// drawn, and ends in an ellipsis if it is longer; blanks are drawn in all cells. What tview draws in
// reverse looks like selected, text of tagged as the theme says, and the rest like style. Text is
// made safe cell by cell, because tview draws most characters as they are.
func (c Canvas) put(p tview.Primitive, style, selected tcell.Style, room int) {
	c.Clear(style)
	spare := 0 // cells beyond the edge, to see that a text is longer even if a gap is at the edge
	if room < c.W {
		spare = 2 * columnGap
	}
	p.SetRect(c.X, c.Y, c.W+spare, c.H)
	p.Draw(&shield{Screen: c.Screen, canvas: c, style: style, selected: selected, end: c.X + room})
	p.SetRect(c.X, c.Y, c.W, c.H)
}

// shield is a screen for primitives of tview. Without a screen of its own it shows nothing.
type shield struct {
	tcell.Screen
	canvas          Canvas
	style, selected tcell.Style
	end             int // of the cells for text
}

// Size returns the size of the screen, which ends where the canvas does.
func (s *shield) Size() (w, h int) {
	return s.canvas.X + s.canvas.W + 2*columnGap, s.canvas.Y + s.canvas.H
}

// SetContent draws a cell within the canvas, safely and in the look of the theme.
func (s *shield) SetContent(x, y int, letter rune, marks []rune, style tcell.Style) {
	c := s.canvas
	if s.Screen == nil || x < c.X || y < c.Y || y >= c.Y+c.H {
		return
	}
	text := string(append([]rune{letter}, marks...))
	if letter == bracket {
		letter = '['
	} else if render.Safe(text) != text {
		letter, marks = '?', nil
	}
	look := s.look(style)
	if letter != ' ' && (x >= s.end || x == s.end-1 && uniseg.StringWidth(text) > 1) {
		if s.end-1 >= c.X {
			c.Text(s.end-1-c.X, y-c.Y, c.Theme.Glyph(theme.Ellipsis), look)
		}
		letter, marks = ' ', nil
		if x < s.end {
			return
		}
	}
	if x < c.X+c.W {
		c.Screen.SetContent(x, y, letter, marks, look)
	}
}

// look returns the style for what tview draws in a style.
func (s *shield) look(style tcell.Style) tcell.Style {
	letters, _, attributes := style.Decompose()
	if attributes&tcell.AttrReverse != 0 {
		return s.selected
	}
	n := int(letters.Hex())
	switch {
	case !letters.IsRGB():
		return s.style
	case n >= roleTags:
		return s.canvas.Theme.Role(theme.Role(n - roleTags))
	}
	return s.canvas.Theme.Style(render.Style(n))
}

// ShowCursor moves the cursor; HideCursor hides it.
func (s *shield) ShowCursor(x, y int) {
	if s.Screen != nil {
		s.Screen.ShowCursor(x, y)
	}
}

func (s *shield) HideCursor() { s.ShowCursor(-1, -1) }

// bracket stands for an opening bracket in texts for tview, which would take it for the begin of a
// tag; tview.Escape misses tags with links. It is a private character, which no safe text holds.
const bracket = '\uE05B'

// roleTags is the number of the first theme.Role in a tag.
const roleTags = 0x100

// tagged writes a text for tview. The colour of its tag is the number of a render.Style, or of a
// theme.Role after roleTags, so that another theme needs no other text.
func tagged(look int, text string) string {
	return fmt.Sprintf("[#%06x]", look) + strings.ReplaceAll(render.Safe(text), "[", string(bracket))
}
