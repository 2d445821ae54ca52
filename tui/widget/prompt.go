package widget

import (
	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"github.com/kagzi/kagzi/tui/theme"
)

// Prompt is a line of input. A completion is shown after the cursor; tab, ctrl-f or the right arrow
// accepts it. Up and down go through the history.
type Prompt struct {
	*tview.Box
	look    func() *theme.Theme
	label   string
	input   input
	ghost   string
	problem string
	history []string
	at      int    // index in history; its length: none
	draft   string // the typed text before going into the history

	// Complete returns texts that begin with the typed one, best first. Changed is called after
	// every change, and Done at the end: ok with enter, not with esc. Each may be nil.
	Complete func(text string) []string
	Changed  func(text string)
	Done     func(text string, ok bool)
}

// NewPrompt returns an empty prompt with a label.
func NewPrompt(look func() *theme.Theme, label string) *Prompt {
	return &Prompt{Box: tview.NewBox(), look: look, label: label}
}

// SetText replaces the text without calling Changed.
func (p *Prompt) SetText(text string) {
	p.input.set(text)
	p.problem = ""
	p.guess()
}

// Text returns the typed text.
func (p *Prompt) Text() string { return p.input.text }

// SetHistory sets the history, newest last.
func (p *Prompt) SetHistory(history []string) { p.history, p.at = history, len(history) }

// Error shows a problem beside the text until the text changes; empty for none.
func (p *Prompt) Error(problem string) { p.problem = problem }

// guess updates the completion.
func (p *Prompt) guess() { p.ghost = p.input.rest(p.Complete) }

func (p *Prompt) changed() {
	p.problem = ""
	p.guess()
	if p.Changed != nil {
		p.Changed(p.input.text)
	}
}

// InputHandler edits the text.
func (p *Prompt) InputHandler() func(*tcell.EventKey, func(tview.Primitive)) {
	return p.WrapInputHandler(func(event *tcell.EventKey, _ func(tview.Primitive)) { p.Key(event) })
}

// Key handles a key; ok is false if it has no meaning.
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

// accept inserts the completion.
func (p *Prompt) accept() {
	if p.ghost == "" {
		return
	}
	p.input.set(p.input.text + p.ghost)
	p.changed()
}

// recall shows an entry of the history, or after its end the typed text.
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

// PasteHandler types the pasted text on one line.
func (p *Prompt) PasteHandler() func(string, func(tview.Primitive)) {
	return p.WrapPasteHandler(func(text string, _ func(tview.Primitive)) { p.Paste(text) })
}

// Paste inserts text at the cursor.
func (p *Prompt) Paste(text string) {
	p.input.insert(text)
	p.changed()
}

// Draw draws the label, the text and the problem.
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
