package widget

import (
	"slices"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"github.com/kagzi/kagzi/tui/theme"
)

// Question is what a Dialog asks.
type Question struct {
	Title   string
	Lines   []Line
	Command string   // the command line that would do the same; empty: none
	Buttons []string // the first does nothing and has the focus: "Cancel". None: one that says "OK"
	Danger  bool     // what the others do cannot be taken back
	Want    string   // what must be typed before the others can be chosen; empty: nothing
}

// Dialog asks something in a box in the middle of what is below it.
type Dialog struct {
	*tview.Box
	look    func() *theme.Theme
	ask     Question
	focus   int // button
	input   input
	text    *Lines
	buttons []buttonPlace // at the last draw

	// Choose is called with the button that was chosen; esc chooses the first. It may be nil.
	Choose func(button int)
}

// buttonPlace is where a button is on the screen.
type buttonPlace struct{ x, y, w int }

// NewDialog makes a dialog whose first button has the focus.
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

// Enabled says whether a button can be chosen now.
func (d *Dialog) Enabled(button int) bool {
	return button == 0 || d.ask.Want == "" || d.input.text == d.ask.Want
}

// Focused is the button that enter would choose.
func (d *Dialog) Focused() int { return d.focus }

// InputHandler moves between the buttons and chooses.
func (d *Dialog) InputHandler() func(*tcell.EventKey, func(tview.Primitive)) {
	return d.WrapInputHandler(func(event *tcell.EventKey, _ func(tview.Primitive)) { d.Key(event) })
}

// Key does what a key means to the dialog; ok is false when it means nothing.
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

// move puts the focus on the next button that can be chosen.
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

// PasteHandler types what was pasted.
func (d *Dialog) PasteHandler() func(string, func(tview.Primitive)) {
	return d.WrapPasteHandler(func(text string, _ func(tview.Primitive)) {
		if d.ask.Want != "" {
			d.input.insert(text)
		}
	})
}

// MouseHandler scrolls with the wheel and chooses the button that is clicked.
func (d *Dialog) MouseHandler() func(tview.MouseAction, *tcell.EventMouse, func(tview.Primitive)) (bool, tview.Primitive) {
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
