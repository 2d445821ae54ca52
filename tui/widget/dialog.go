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

// Dialog asks a question in a box in the middle of the screen.
type Dialog struct {
	*tview.Box
	look    func() *theme.Theme
	ask     Question
	focus   int // button
	input   input
	text    *Lines
	buttons []buttonPlace // at the last draw

	// Choose is called with the chosen button; esc chooses the first. It may be nil.
	Choose func(button int)
}

// buttonPlace is the area of a button on the screen.
type buttonPlace struct{ x, y, w int }

// NewDialog returns a dialog whose first button has the focus.
func NewDialog(look func() *theme.Theme, ask Question) *Dialog {
	if len(ask.Buttons) == 0 {
		ask.Buttons = []string{"OK"}
	}
	lines := slices.Clone(ask.Lines)
	if ask.Command != "" {
		lines = append(lines, Line{}, Line{Cells: commandCells(ask.Command)})
	}
	return &Dialog{Box: tview.NewBox(), look: look, ask: ask, text: NewLines(look).SetLines(lines)}
}

// Enabled reports whether a button can be chosen now.
func (d *Dialog) Enabled(button int) bool {
	return button == 0 || d.ask.Want == "" || d.input.text == d.ask.Want
}

// Focused returns the button that enter chooses.
func (d *Dialog) Focused() int { return d.focus }

// InputHandler moves between the buttons and chooses one.
func (d *Dialog) InputHandler() func(*tcell.EventKey, func(tview.Primitive)) {
	return d.WrapInputHandler(func(event *tcell.EventKey, _ func(tview.Primitive)) { d.Key(event) })
}

// Key handles a key; ok is false if it has no meaning.
func (d *Dialog) Key(event *tcell.EventKey) (ok bool) {
	switch KeyName(event) {
	case "enter":
		d.choose(d.focus)
		return true
	case "esc":
		d.choose(0)
		return true
	case "tab", "right":
		d.move(1)
		return true
	case "shift-tab", "left":
		d.move(-1)
		return true
	case "up", "down", "pgup", "pgdn":
		return d.text.Key(event)
	}
	if d.ask.Want == "" {
		return d.text.Key(event)
	}
	changed, ok := d.input.key(event)
	if changed && !d.Enabled(d.focus) {
		d.focus = 0
	}
	return ok
}

// move focuses the next enabled button.
func (d *Dialog) move(step int) {
	for range d.ask.Buttons {
		d.focus = around(d.focus, step, len(d.ask.Buttons))
		if d.Enabled(d.focus) {
			return
		}
	}
}

func (d *Dialog) choose(button int) {
	if d.Choose != nil && d.Enabled(button) {
		d.Choose(button)
	}
}

// PasteHandler types the pasted text.
func (d *Dialog) PasteHandler() func(string, func(tview.Primitive)) {
	return d.WrapPasteHandler(func(text string, _ func(tview.Primitive)) {
		if d.ask.Want != "" {
			d.input.insert(text)
		}
	})
}

// MouseHandler scrolls with the wheel and chooses a clicked button.
func (d *Dialog) MouseHandler() func(tview.MouseAction, *tcell.EventMouse, func(tview.Primitive)) (bool,
	tview.Primitive) {
	return mouse(d.Box, d.text.Scroll, func(x, y int, _ bool) {
		left, top, _, _ := d.GetInnerRect()
		for i, b := range d.buttons {
			if y+top == b.y && x+left >= b.x && x+left < b.x+b.w {
				d.choose(i)
				return
			}
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
	rows := d.text.measure(width, h)
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
	d.text.SetRect(c.X, c.Y, c.W, min(room, rows))
	d.text.Draw(screen)
	bottom := c.Part(0, c.H-below, c.W, below)
	if d.ask.Want != "" {
		d.drawWant(bottom.Part(0, 1, c.W, 1))
	}
	d.drawButtons(bottom.Part(0, below-1, c.W, 1))
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
	buttons := 0
	for _, label := range d.ask.Buttons {
		buttons += buttonWidth(label) + buttonGap
	}
	return max(min(max(width, buttons), dialogMost, screen-4), 0)
}

func (d *Dialog) drawWant(c Canvas) {
	n := c.Cut(0, 0, c.W*2/3, "type "+d.ask.Want+" to continue: ", c.Theme.Role(theme.Text))
	d.input.draw(c, n, c.W-n, "", true)
}

const buttonGap = 2

func buttonWidth(label string) int { return textWidth(label, dialogMost) + 4 }

// drawButtons draws the buttons at the right edge and records where they are.
func (d *Dialog) drawButtons(c Canvas) {
	total := -buttonGap
	for _, label := range d.ask.Buttons {
		total += buttonWidth(label) + buttonGap
	}
	x := max(c.W-total, 0)
	d.buttons = d.buttons[:0]
	for i, label := range d.ask.Buttons {
		style := c.Theme.Role(theme.Text)
		switch {
		case !d.Enabled(i):
			style = c.Theme.Role(theme.Faint)
		case i == d.focus:
			style = c.Theme.Role(theme.Selected).Bold(true)
		case i > 0 && d.ask.Danger:
			style = c.Theme.Role(theme.Danger)
		}
		n := c.Text(x, 0, "[ "+label+" ]", style)
		d.buttons = append(d.buttons, buttonPlace{c.X + x, c.Y, n})
		x += n + buttonGap
	}
}
