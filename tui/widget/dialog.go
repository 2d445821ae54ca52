package widget

import (
	"slices"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
)

// Question is the content of a Dialog.
type Question struct {
	Title   string
	Lines   []Line
	Command string   // equivalent command line; empty: none
	Buttons []string // the first does nothing and has the focus: "Cancel". None: one button "OK"
	Danger  bool     // the other buttons do something that cannot be undone
	Want    string   // text to type before the other buttons are enabled; empty: none
}

// Dialog asks a question in a box in the middle of the screen. It is not tview's Modal, which
// does not scroll a text that is longer than the screen, and takes no text that must be typed.
type Dialog struct {
	*tview.Box
	look    func() *theme.Theme
	ask     Question
	focus   int // button
	typed   *entry
	text    *Lines
	buttons buttons

	// Choose is called with the chosen button; esc chooses the first. It may be nil.
	Choose func(button int)
}

// NewDialog returns a dialog whose first button has the focus.
func NewDialog(look func() *theme.Theme, ask Question) *Dialog {
	if len(ask.Buttons) == 0 {
		ask.Buttons = []string{"OK"}
	}
	lines := slices.Clone(ask.Lines)
	if ask.Command != "" {
		lines = append(lines, Line{}, Line{Cells: commandCells(ask.Command)})
	}
	return &Dialog{Box: tview.NewBox(), look: look, ask: ask, typed: newEntry(false),
		text: NewLines(look).SetLines(lines), buttons: buttons{labels: ask.Buttons}}
}

// enabled reports whether a button can be chosen now.
func (d *Dialog) enabled(button int) bool {
	return button == 0 || d.ask.Want == "" || d.typed.text() == d.ask.Want
}

// InputHandler moves between the buttons and chooses one.
func (d *Dialog) InputHandler() func(*tcell.EventKey, func(tview.Primitive)) {
	return takes(d.Box, d.key)
}

func (d *Dialog) key(event *tcell.EventKey) {
	switch KeyName(event) {
	case "enter":
		d.choose(d.focus)
	case "esc":
		d.choose(0)
	case "tab", "right":
		d.move(1)
	case "shift-tab", "left":
		d.move(-1)
	case "up", "down", "pgup", "pgdn":
		d.text.Key(event)
	default:
		if d.ask.Want == "" {
			d.text.Key(event)
		} else if d.typed.key(event) && !d.enabled(d.focus) {
			d.focus = 0
		}
	}
}

// move focuses the next enabled button.
func (d *Dialog) move(step int) {
	for range d.ask.Buttons {
		d.focus = around(d.focus, step, len(d.ask.Buttons))
		if d.enabled(d.focus) {
			return
		}
	}
}

func (d *Dialog) choose(button int) {
	if d.Choose != nil && d.enabled(button) {
		d.Choose(button)
	}
}

// PasteHandler types the pasted text.
func (d *Dialog) PasteHandler() func(string, func(tview.Primitive)) {
	return pastes(d.Box, func(text string) {
		if d.ask.Want != "" {
			d.typed.insert(text)
		}
	})
}

// MouseHandler scrolls with the wheel and chooses a clicked button.
func (d *Dialog) MouseHandler() mouseHandler {
	return mouse(d.Box, d.text.Scroll, func(x, y int, _ bool) {
		left, top, _, _ := d.GetInnerRect()
		if button := d.buttons.at(x+left, y+top); button >= 0 {
			d.choose(button)
		}
	})
}

const (
	dialogLeast = 36 // least width of a dialog in cells, if the screen allows
	dialogMost  = 84

	linesMeasured = 100 // lines of the text that count for the width
)

// commandCells returns a command line with the prefix of a quote.
func commandCells(command string) []render.Cell {
	return []render.Cell{{Text: "$ ", Style: render.Dim}, {Text: command, Style: render.Strong}}
}

// Draw draws the box in the middle and leaves the cells around it unchanged.
func (d *Dialog) Draw(screen tcell.Screen) {
	x, y, w, h := d.GetInnerRect()
	look := d.look()
	width := d.width(w)
	rows := d.text.measure(width+edge, h)
	below := 2 // a blank line and the buttons
	if d.ask.Want != "" {
		below += 2
	}
	height := min(rows+below+2, h)
	c := On(screen, look, x, y, w, h).Part((w-width-4)/2, (h-height)/2, width+4, height)
	c.Clear(look.Role(theme.Text))
	border := look.Role(theme.Border)
	if d.ask.Danger {
		border = look.Role(theme.Danger)
	}
	c = c.Box(d.ask.Title, border)
	c = c.Part(1, 0, c.W-2, c.H)
	room := max(c.H-below, 0)
	d.text.SetRect(c.X, c.Y, c.W+edge, min(room, rows)) // the edge is the margin of the box
	d.text.Draw(screen)
	bottom := c.Part(0, c.H-below, c.W, below)
	if d.ask.Want != "" {
		d.drawWant(bottom.Part(0, 1, c.W, 1))
	}
	d.buttons.draw(bottom.Part(0, below-1, c.W, 1), d.focus, func(button int) theme.Role {
		switch {
		case !d.enabled(button):
			return theme.Faint
		case button > 0 && d.ask.Danger:
			return theme.Danger
		}
		return theme.Text
	})
}

// width returns the inner width of the dialog: what its text and buttons need, within limits.
func (d *Dialog) width(screen int) int {
	width := max(dialogLeast, textWidth(d.ask.Title, dialogMost)+2)
	for i, line := range d.text.lines {
		if i == linesMeasured {
			break
		}
		width = max(width, line.width(dialogMost)+1)
	}
	return max(min(max(width, d.buttons.width()), dialogMost, screen-4), 0)
}

func (d *Dialog) drawWant(c Canvas) {
	n := c.Cut(0, 0, c.W*2/3, "type "+d.ask.Want+" to continue: ", c.Theme.Role(theme.Text))
	d.typed.draw(c.Part(n, 0, c.W-n, 1), true)
}
