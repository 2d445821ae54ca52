package widget

import (
	"strings"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
)

// Choice is an entry of a Picker.
type Choice struct {
	ID   string
	Line Line
}

// Picker is a small list in a box. Typing narrows it to the entries that contain the text.
type Picker struct {
	*tview.Box
	look    func() *theme.Theme
	title   string
	choices []Choice
	shown   []int // indexes of the choices that contain the text
	cursor  int   // index in shown
	offset  int
	height  int
	filter  input

	// OnMove is called with each choice that the cursor moves to, as a preview. Done is called with
	// the chosen one, or with the one under the cursor and ok false if the picker is cancelled.
	// Each may be nil.
	OnMove func(id string)
	Done   func(id string, ok bool)
}

// NewPicker returns a list with the cursor on the choice current, or else on the first.
func NewPicker(look func() *theme.Theme, title string, choices []Choice, current string) *Picker {
	p := &Picker{Box: tview.NewBox(), look: look, title: title, choices: choices}
	for i, choice := range choices {
		p.shown = append(p.shown, i)
		if choice.ID == current {
			p.cursor = i
		}
	}
	return p
}

// Selected returns the choice under the cursor; ok is false if none contains the text.
func (p *Picker) Selected() (id string, ok bool) {
	if p.cursor >= len(p.shown) {
		return "", false
	}
	return p.choices[p.shown[p.cursor]].ID, true
}

func (p *Picker) move(to int) {
	was, _ := p.Selected()
	p.cursor = max(min(to, len(p.shown)-1), 0)
	if id, ok := p.Selected(); ok && id != was && p.OnMove != nil {
		p.OnMove(id)
	}
}

// narrow keeps the choices that contain the text, and the cursor on its choice if possible.
func (p *Picker) narrow() {
	was, _ := p.Selected()
	find := strings.ToLower(p.filter.text)
	p.shown, p.cursor = nil, 0
	for i, choice := range p.choices {
		if strings.Contains(strings.ToLower(choice.Line.Text()+" "+choice.ID), find) {
			if choice.ID == was {
				p.cursor = len(p.shown)
			}
			p.shown = append(p.shown, i)
		}
	}
	if id, ok := p.Selected(); ok && id != was && p.OnMove != nil {
		p.OnMove(id)
	}
}

// InputHandler moves, narrows and chooses.
func (p *Picker) InputHandler() func(*tcell.EventKey, func(tview.Primitive)) {
	return p.WrapInputHandler(func(event *tcell.EventKey, _ func(tview.Primitive)) { p.Key(event) })
}

// Key handles a key; ok is false if it has no meaning.
func (p *Picker) Key(event *tcell.EventKey) (ok bool) {
	switch KeyName(event) {
	case "down", "ctrl-n", "tab":
		p.move(p.cursor + 1)
	case "up", "ctrl-p", "shift-tab":
		p.move(p.cursor - 1)
	case "pgdn":
		p.move(p.cursor + max(p.height-1, 1))
	case "pgup":
		p.move(p.cursor - max(p.height-1, 1))
	case "enter":
		if id, ok := p.Selected(); ok && p.Done != nil {
			p.Done(id, true)
		}
	case "esc":
		if id, _ := p.Selected(); p.Done != nil {
			p.Done(id, false)
		}
	default:
		changed, ok := p.filter.key(event)
		if changed {
			p.narrow()
		}
		return ok
	}
	return true
}

// PasteHandler narrows by the pasted text.
func (p *Picker) PasteHandler() func(string, func(tview.Primitive)) {
	return p.WrapPasteHandler(func(text string, _ func(tview.Primitive)) {
		p.filter.insert(text)
		p.narrow()
	})
}

// MouseHandler moves with the wheel, selects with a click and chooses with a double click.
func (p *Picker) MouseHandler() func(tview.MouseAction, *tcell.EventMouse, func(tview.Primitive)) (bool,
	tview.Primitive) {
	return mouse(p.Box, func(rows int) { p.move(p.cursor + rows) }, func(_, y int, double bool) {
		_, top, _, _ := p.GetInnerRect()
		row := y + top - p.firstRow()
		if row < 0 || row >= p.height || p.offset+row >= len(p.shown) {
			return
		}
		p.move(p.offset + row)
		if id, ok := p.Selected(); ok && double && p.Done != nil {
			p.Done(id, true)
		}
	})
}

// firstRow returns the screen row of the first entry.
func (p *Picker) firstRow() int {
	_, y, _, h := p.GetInnerRect()
	_, boxHeight := p.size()
	return y + max((h-boxHeight)/2, 0) + 2
}

// size returns the size of the box: what its entries need, within the screen.
func (p *Picker) size() (w, h int) {
	_, _, width, height := p.GetInnerRect()
	w = textWidth(p.title, width) + 8
	for _, choice := range p.choices {
		w = max(w, choice.Line.width(width)+4)
	}
	return min(max(w, 30), width), min(len(p.choices)+3, height)
}

// Draw draws the box in the middle and leaves the cells around it unchanged.
func (p *Picker) Draw(screen tcell.Screen) {
	x, y, w, h := p.GetInnerRect()
	look := p.look()
	outer := On(screen, look, x, y, w, h)
	bw, bh := p.size()
	c := outer.Part((w-bw)/2, (h-bh)/2, bw, bh)
	c.Clear(look.Role(theme.Text))
	c = c.Box(p.title, look.Role(theme.Border))
	p.height = max(c.H-1, 0)
	p.filter.draw(c, 1, c.W-2, "", true)
	rows := max(p.height, 1)
	p.offset = min(max(p.offset, p.cursor-rows+1), p.cursor)
	p.offset = max(min(p.offset, len(p.shown)-rows), 0)
	for i := p.offset; i < min(p.offset+p.height, len(p.shown)); i++ {
		row := c.Part(0, 1+i-p.offset, c.W, 1)
		style := styler(look.Style)
		if i == p.cursor {
			selected := look.Role(theme.Selected)
			row.Clear(selected)
			style = func(render.Style) tcell.Style { return selected }
		}
		p.choices[p.shown[i]].Line.draw(row.Part(1, 0, c.W-2, 1), style)
	}
	if len(p.shown) == 0 && p.height > 0 {
		c.Cut(1, 1, c.W-2, "no matches", look.Role(theme.Faint))
	}
}
