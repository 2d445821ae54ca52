package widget

import (
	"strings"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
)

// Picker is tview's List in a box, with a line above it: typing narrows the list to the entries that
// contain the text.
type Picker struct {
	*tview.Box
	look    func() *theme.Theme
	title   string
	choices []string
	shown   []string // the choices that contain the text
	at      string   // the one under the cursor at the last OnMove
	list    *tview.List
	filter  *entry

	// OnMove is called with each choice that the cursor moves to, as a preview. Done is called with
	// the chosen one, or with the one under the cursor and ok false if the picker is cancelled.
	// Each may be nil.
	OnMove func(choice string)
	Done   func(choice string, ok bool)
}

// NewPicker returns a list with the cursor on the choice current, or else on the first.
func NewPicker(look func() *theme.Theme, title string, choices []string, current string) *Picker {
	p := &Picker{Box: tview.NewBox(), look: look, title: title, choices: choices, at: current, filter: newEntry(false),
		list: tview.NewList().ShowSecondaryText(false).SetHighlightFullLine(true).
			SetWrapAround(false).SetSelectedStyle(tcell.StyleDefault.Reverse(true))}
	p.list.SetSelectedFunc(func(i int, _, _ string, _ rune) {
		p.list.SetCurrentItem(i) // a click calls this first
		p.end(true)
	})
	p.narrow()
	return p
}

// Selected returns the choice under the cursor; ok is false if none contains the text.
func (p *Picker) Selected() (choice string, ok bool) {
	if i := p.list.GetCurrentItem(); i >= 0 && i < len(p.shown) {
		return p.shown[i], true
	}
	return "", false
}

// narrow lists the choices that contain the text, with the cursor on its choice if possible.
func (p *Picker) narrow() {
	find := strings.ToLower(p.filter.text())
	p.shown = nil
	p.list.Clear()
	for _, choice := range p.choices {
		if !strings.Contains(strings.ToLower(render.Safe(choice)), find) {
			continue
		}
		p.shown = append(p.shown, choice)
		p.list.AddItem(tagged(int(render.Plain), " "+choice), "", 0, nil)
		if choice == p.at {
			p.list.SetCurrentItem(len(p.shown) - 1)
		}
	}
	p.moved()
}

// moved tells of another choice under the cursor.
func (p *Picker) moved() {
	if choice, ok := p.Selected(); ok && choice != p.at {
		if p.at = choice; p.OnMove != nil {
			p.OnMove(choice)
		}
	}
}

func (p *Picker) end(chosen bool) {
	if choice, ok := p.Selected(); p.Done != nil && (ok || !chosen) {
		p.Done(choice, chosen)
	}
}

// InputHandler moves, narrows and chooses.
func (p *Picker) InputHandler() func(*tcell.EventKey, func(tview.Primitive)) {
	return takes(p.Box, p.key)
}

func (p *Picker) key(event *tcell.EventKey) {
	switch KeyName(event) {
	case "esc":
		p.end(false)
		return
	case "ctrl-n":
		event = tcell.NewEventKey(tcell.KeyDown, 0, tcell.ModNone)
	case "ctrl-p":
		event = tcell.NewEventKey(tcell.KeyUp, 0, tcell.ModNone)
	case "down", "tab", "up", "shift-tab", "pgdn", "pgup", "enter":
	default:
		if p.filter.key(event) {
			p.narrow()
		}
		return
	}
	p.list.InputHandler()(event, func(tview.Primitive) {})
	p.moved()
}

// PasteHandler narrows by the pasted text.
func (p *Picker) PasteHandler() func(string, func(tview.Primitive)) {
	return pastes(p.Box, func(text string) {
		p.filter.insert(text)
		p.narrow()
	})
}

// MouseHandler scrolls with the wheel, and chooses with a click.
func (p *Picker) MouseHandler() mouseHandler { return p.list.MouseHandler() }

// Draw draws the box in the middle, as large as its entries need, and leaves the cells around it
// unchanged.
func (p *Picker) Draw(screen tcell.Screen) {
	x, y, width, height := p.GetInnerRect()
	look := p.look()
	w := textWidth(p.title, width) + 8
	for _, choice := range p.choices {
		w = max(w, textWidth(choice, width)+4)
	}
	w, h := min(max(w, 30), width), min(len(p.choices)+3, height)
	c := On(screen, look, x, y, width, height).Part((width-w)/2, (height-h)/2, w, h)
	c.Clear(look.Role(theme.Text))
	c = c.Box(p.title, look.Role(theme.Border))
	p.filter.draw(c.Part(1, 0, c.W-2, 1), true)
	if len(p.shown) == 0 {
		c.Cut(1, 1, c.W-2, "no matches", look.Role(theme.Faint))
		return
	}
	c = c.Part(0, 1, c.W, c.H-1)
	c.put(p.list, look.Role(theme.Text), look.Role(theme.Selected), c.W-edge)
	first, _ := p.list.GetOffset()
	c.marks(0, c.H-1, first > 0, first+c.H < len(p.shown))
}
