package view

import (
	"strings"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/widget"
)

// layer lies over the page and takes all keys while it is there.
type layer interface {
	Draw(c widget.Canvas)
	Key(event *tcell.EventKey)
	Paste(text string)
}

// layer is the one on top; nil when the page takes the keys.
func (a *App) layer() layer {
	if len(a.layers) == 0 {
		return nil
	}
	return a.layers[len(a.layers)-1]
}

// lay puts a layer on top.
func (a *App) lay(l layer) { a.layers = append(a.layers, l) }

// lift takes a layer away, wherever it lies.
func (a *App) lift(l layer) {
	for i := len(a.layers) - 1; i >= 0; i-- {
		if a.layers[i] == l {
			a.layers = append(a.layers[:i], a.layers[i+1:]...)
			return
		}
	}
}

// place is where a widget goes on a screen of that size.
type place func(w, h int) (x, y, width, height int)

// everywhere covers the screen but for its edge, wholeScreen all of it; bottomLine is where commands are typed.
func everywhere(w, h int) (int, int, int, int)  { return min(w/20, 4), 1, w - 2*min(w/20, 4), h - 2 }
func wholeScreen(w, h int) (int, int, int, int) { return 0, 0, w, h }
func bottomLine(w, h int) (int, int, int, int)  { return 0, h - 1, w, 1 }

// over is a layer made of a widget.
type over struct {
	primitive tview.Primitive
	place     place
	title     string                // of the box around it; no box when it is empty
	hints     []hint                // of its keys
	keys      func(key string) bool // sees keys first; true: they are done with
}

func (o *over) Draw(c widget.Canvas) {
	c = c.Part(o.place(c.W, c.H))
	if o.title != "" {
		c.Clear(c.Theme.Role(theme.Text))
		c = c.Box(o.title, c.Theme.Role(theme.Border))
	}
	o.primitive.SetRect(c.X, c.Y, c.W, c.H)
	o.primitive.Draw(c.Screen)
}

func (o *over) Key(event *tcell.EventKey) {
	if o.keys != nil && o.keys(widget.KeyName(event)) {
		return
	}
	if handler := o.primitive.InputHandler(); handler != nil {
		handler(event, func(tview.Primitive) {})
	}
}

func (o *over) Paste(text string) {
	if handler := o.primitive.PasteHandler(); handler != nil {
		handler(text, func(tview.Primitive) {})
	}
}

// formHints are the keys of a form.
func formHints(submit string) []hint {
	return []hint{{"tab", "next field"}, {"ctrl-s", strings.ToLower(submit)}, {"esc", "cancel"}}
}

// reader lays something to be read over the screen until esc or q is pressed. The hints are those of its other keys.
func (a *App) reader(title string, p tview.Primitive, more func(key string) bool, hints ...hint) {
	o := &over{primitive: p, place: everywhere, title: title, hints: append(hints, hint{"esc", "close"})}
	o.keys = func(key string) bool {
		switch key {
		case "esc", "q":
			a.lift(o)
			return true
		}
		return more != nil && more(key)
	}
	a.lay(o)
}
