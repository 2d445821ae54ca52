package widget

import (
	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"github.com/kagzi/kagzi/tui/theme"
)

// Prompt is one line to type in. What could complete it stands behind the cursor and is taken with
// tab, ctrl-f or the right arrow; up and down go through what was typed before.
type Prompt struct {
	*tview.Box
	look    func() *theme.Theme
	label   string
	input   input
	ghost   string
	problem string
	history []string
	at      int    // in the history; its length: none of it
	draft   string // what was typed before going into the history

	// Complete is asked for texts that begin with what was typed, the likeliest first, Changed is
	// told of every change, and Done of the end: ok with enter, not with esc. Each may be nil.
	Complete func(text string) []string
	Changed  func(text string)
	Done     func(text string, ok bool)
}

// NewPrompt makes an empty one with a label in front.
func NewPrompt(look func() *theme.Theme, label string) *Prompt {
	return &Prompt{Box: tview.NewBox(), look: look, label: label}
}

// SetText replaces what was typed; nobody is told.
func (p *Prompt) SetText(text string) {
	p.input.set(text)
	p.problem = ""
	p.guess()
}

// Text is what was typed.
func (p *Prompt) Text() string { return p.input.text }

// SetHistory is what was typed before, the newest last.
func (p *Prompt) SetHistory(history []string) { p.history, p.at = history, len(history) }

// Error shows what is wrong with the text beside it until the text changes; empty for nothing.
func (p *Prompt) Error(problem string) { p.problem = problem }

// guess looks for what could complete the text.
func (p *Prompt) guess() { p.ghost = p.input.rest(p.Complete) }

func (p *Prompt) changed() {
	p.problem = ""
	p.guess()
	if p.Changed != nil {
		p.Changed(p.input.text)
	}
}

// InputHandler types.
func (p *Prompt) InputHandler() func(*tcell.EventKey, func(tview.Primitive)) {
	return p.WrapInputHandler(func(event *tcell.EventKey, _ func(tview.Primitive)) { p.Key(event) })
}

// Key does what a key means to the prompt; ok is false when it means nothing.
func (p *Prompt) Key(event *tcell.EventKey) (ok bool) {
	switch name := KeyName(event); name {
	case "enter", "esc":
		if p.Done != nil {
			p.Done(p.input.text, name == "enter")
		}
	case "up":
		p.recall(p.at - 1)
	case "down":
		p.recall(p.at + 1)
	case "tab":
		p.accept()
	case "right", "ctrl-f":
		if p.ghost != "" {
			p.accept()
			return true
		}
		p.input.key(event)
		p.guess()
	default:
		changed, ok := p.input.key(event)
		if changed {
			p.at = len(p.history)
			p.changed()
		} else {
			p.guess()
		}
		return ok
	}
	return true
}

// accept takes the completion.
func (p *Prompt) accept() {
	if p.ghost == "" {
		return
	}
	p.input.set(p.input.text + p.ghost)
	p.changed()
}

// recall shows an entry of the history, or behind its end what was being typed.
func (p *Prompt) recall(at int) {
	if at < 0 || at > len(p.history) || at == p.at {
		return
	}
	if p.at == len(p.history) {
		p.draft = p.input.text
	}
	p.at = at
	if at == len(p.history) {
		p.input.set(p.draft)
	} else {
		p.input.set(p.history[at])
	}
	p.changed()
}

// PasteHandler types what was pasted, on one line.
func (p *Prompt) PasteHandler() func(string, func(tview.Primitive)) {
	return p.WrapPasteHandler(func(text string, _ func(tview.Primitive)) { p.Paste(text) })
}

// Paste types text at the cursor.
func (p *Prompt) Paste(text string) {
	p.input.insert(text)
	p.changed()
}

// Draw draws the label, the text, and what is wrong with it.
func (p *Prompt) Draw(screen tcell.Screen) {
	x, y, w, h := p.GetInnerRect()
	look := p.look()
	c := On(screen, look, x, y, w, h)
	c.Clear(look.Role(theme.Text))
	n := c.Cut(0, 0, w/2, p.label, look.Role(theme.Key))
	room := w - n
	if p.problem != "" {
		wanted := min(textWidth(p.problem, w)+2, room*2/3)
		room -= wanted
		c.Cut(n+room+1, 0, wanted-1, p.problem, look.Role(theme.Danger))
	}
	p.input.draw(c, n, room, p.ghost, true)
}
