package widget

import (
	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"github.com/kagzi/kagzi/tui/theme"
)

// buttons is a row of buttons at the right edge of a Dialog or a Form, which keep it in sight while
// what is above scrolls. tview has a row of buttons in its Form only, where it scrolls too.
type buttons struct {
	labels []string
	places []Canvas // at the last draw
}

const buttonGap = 2

func buttonWidth(label string) int { return textWidth(label, dialogMost) + 4 }

// width returns the cells that all buttons take.
func (b *buttons) width() int {
	width := -buttonGap
	for _, label := range b.labels {
		width += buttonWidth(label) + buttonGap
	}
	return width
}

// draw draws the buttons into the first row. style returns the look of one without the focus.
func (b *buttons) draw(c Canvas, focus int, style func(button int) theme.Role) {
	x := max(c.W-b.width(), 0)
	b.places = b.places[:0]
	for i, label := range b.labels {
		look := c.Theme.Role(style(i))
		if i == focus {
			look = c.Theme.Role(theme.Selected).Bold(true)
		}
		n := c.Text(x, 0, "[ "+label+" ]", look)
		b.places = append(b.places, c.Part(x, 0, n, 1))
		x += n + buttonGap
	}
}

// at returns the button at a position of the screen, or -1.
func (b *buttons) at(x, y int) int {
	for i, p := range b.places {
		if y == p.Y && x >= p.X && x < p.X+p.W {
			return i
		}
	}
	return -1
}

// takes returns the handler of a widget for keys.
func takes(box *tview.Box, key func(event *tcell.EventKey)) func(*tcell.EventKey, func(tview.Primitive)) {
	return box.WrapInputHandler(func(event *tcell.EventKey, _ func(tview.Primitive)) { key(event) })
}

// pastes returns the handler of a widget for pasted text.
func pastes(box *tview.Box, paste func(text string)) func(string, func(tview.Primitive)) {
	return box.WrapPasteHandler(func(text string, _ func(tview.Primitive)) { paste(text) })
}
