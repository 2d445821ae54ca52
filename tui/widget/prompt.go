package widget

import (
	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"github.com/kagzi/kagzi/tui/theme"
)

// Prompt is a line of input. A completion is shown after the cursor; tab, ctrl-f or the right arrow
// accepts it. Up and down go through the history. It is not tview's InputField, which has no history,
// and which lists completions below the line, where the last line of the screen has no room.
type Prompt struct {
	*tview.Box
	look    func() *theme.Theme
	label   string
	typed   *entry
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
	p := &Prompt{Box: tview.NewBox(), look: look, label: label, typed: newEntry(false)}
	p.typed.complete = func(text string) []string {
		if p.Complete == nil {
			return nil
		}
		return p.Complete(text)
	}
	return p
}

// SetText replaces the text without calling Changed.
func (p *Prompt) SetText(text string) {
	p.typed.set(text)
	p.problem = ""
}

// Text returns the typed text.
func (p *Prompt) Text() string { return p.typed.text() }

// SetHistory sets the history, newest last.
func (p *Prompt) SetHistory(history []string) { p.history, p.at = history, len(history) }

// Error shows a problem beside the text until the text changes; empty for none.
func (p *Prompt) Error(problem string) { p.problem = problem }

func (p *Prompt) changed() {
	p.problem = ""
	if p.Changed != nil {
		p.Changed(p.Text())
	}
}

// InputHandler edits the text.
func (p *Prompt) InputHandler() func(*tcell.EventKey, func(tview.Primitive)) {
	return takes(p.Box, p.key)
}

func (p *Prompt) key(event *tcell.EventKey) {
	switch name := KeyName(event); name {
	case "enter", "esc":
		if p.Done != nil {
			p.Done(p.Text(), name == "enter")
		}
	case "up":
		p.recall(p.at - 1)
	case "down":
		p.recall(p.at + 1)
	case "tab", "right", "ctrl-f":
		if p.typed.accept() {
			p.changed()
			return
		}
		p.typed.key(event)
	default:
		if p.typed.key(event) {
			p.at = len(p.history)
			p.changed()
		}
	}
}

// recall shows an entry of the history, or after its end the typed text.
func (p *Prompt) recall(at int) {
	if at < 0 || at > len(p.history) || at == p.at {
		return
	}
	if p.at == len(p.history) {
		p.draft = p.Text()
	}
	p.at = at
	if at == len(p.history) {
		p.typed.set(p.draft)
	} else {
		p.typed.set(p.history[at])
	}
	p.changed()
}

// PasteHandler types the pasted text on one line.
func (p *Prompt) PasteHandler() func(string, func(tview.Primitive)) {
	return pastes(p.Box, func(text string) {
		p.typed.insert(text)
		p.changed()
	})
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
	p.typed.draw(c.Part(n, 0, room, 1), true)
}
