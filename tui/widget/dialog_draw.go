package widget

import (
	"github.com/gdamore/tcell/v2"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
)

const (
	dialogLeast = 36 // cells between the edges of a dialog, if there are as many
	dialogMost  = 84

	linesMeasured = 100 // of the text, to find out how wide the dialog is to be
)

// commandCells is a command line as it is quoted in a text.
func commandCells(command string) []render.Cell {
	return []render.Cell{{Text: "$ ", Style: render.Dim}, {Text: command, Style: render.Strong}}
}

// Draw draws the box in the middle of the widget and leaves what is around it as it is.
func (d *Dialog) Draw(screen tcell.Screen) {
	x, y, w, h := d.GetInnerRect()
	look := d.look()
	width := d.width(w)
	rows := d.text.measure(width, h)
	below := 2 // a blank, the buttons
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

// width is how many cells the dialog has between its edges: as many as its text and buttons want, within bounds.
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
	n := c.Cut(0, 0, c.W*2/3, "type "+d.ask.Want+" to go on: ", c.Theme.Role(theme.Text))
	d.input.draw(c, n, c.W-n, "", true)
}

const buttonGap = 2

func buttonWidth(label string) int { return textWidth(label, dialogMost) + 4 }

// drawButtons draws the buttons at the right edge, and remembers where they are.
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
