package view

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/widget"
)

// layer lies over the page and takes all keys while it is open.
type layer interface {
	Draw(c widget.Canvas)
	Key(event *tcell.EventKey)
	Paste(text string)
	Mouse(action tview.MouseAction, event *tcell.EventMouse)
}

// layer returns the topmost layer; nil if the page gets the keys.
func (a *App) layer() layer {
	if len(a.layers) == 0 {
		return nil
	}
	return a.layers[len(a.layers)-1]
}

// lay opens a layer on top.
func (a *App) lay(l layer) { a.layers = append(a.layers, l) }

// lift closes a layer, wherever it is in the stack.
func (a *App) lift(l layer) {
	for i := len(a.layers) - 1; i >= 0; i-- {
		if a.layers[i] == l {
			a.layers = append(a.layers[:i], a.layers[i+1:]...)
			return
		}
	}
}

// place returns the area of a widget on a screen of w by h cells.
type place func(w, h int) (x, y, width, height int)

// everywhere covers the screen except its edge, wholeScreen all of it, bottomLine the command line.
func everywhere(w, h int) (int, int, int, int)  { return min(w/20, 4), 1, w - 2*min(w/20, 4), h - 2 }
func wholeScreen(w, h int) (int, int, int, int) { return 0, 0, w, h }
func bottomLine(w, h int) (int, int, int, int)  { return 0, h - 1, w, 1 }

// over is a layer made of a widget.
type over struct {
	primitive tview.Primitive
	place     place
	title     string                // of the box around it; empty: no box
	hints     []hint                // of its keys
	keys      func(key string) bool // gets keys first; true: handled
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

func (o *over) Mouse(action tview.MouseAction, event *tcell.EventMouse) {
	o.primitive.MouseHandler()(action, event, func(tview.Primitive) {})
}

// formHints returns the keys of a form.
func formHints(submit string) []hint {
	return []hint{{"tab", "next field"}, {"ctrl-s", strings.ToLower(submit)}, {"esc", "cancel"}}
}

// reader shows a widget to read over the screen until esc or q. hints are those of its other keys.
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

// filling is a form that closes once its action succeeds. If the server refuses it, the values can
// be changed and tried again.
type filling struct {
	app  *App
	form *widget.Form
	over *over
	// deed returns the action for the values.
	deed func(values map[string]string) (deed, error)
	// names maps the server's names to fields, so that a refusal is shown at its field.
	names  map[string]string
	unique string            // the field to blame if the thing exists already
	closed func()            // called when the form is closed; nil: nothing
	values map[string]string // last tried
	tried  deed              // with them: the same values repeat the same request, which has no second effect
	gone   bool              // cancelled, or its action succeeded
}

// fill shows a form over the page.
func (a *App) fill(title, label string, fields []widget.Field, f filling) *filling {
	f.app, f.form = a, widget.NewForm(a.theme, title, fields)
	p := &f
	p.over = &over{primitive: p.form, place: wholeScreen, hints: formHints(label)}
	p.form.SubmitLabel = label
	p.form.Submit, p.form.Cancel, p.form.Edit = p.submit, p.close, a.edit
	a.lay(p.over)
	return p
}

func (p *filling) close() {
	if p.gone {
		return
	}
	p.gone = true
	p.app.lift(p.over)
	if p.closed != nil {
		p.closed()
	}
}

// submit performs the action. The form stays open until that succeeds.
func (p *filling) submit(values map[string]string) {
	if p.values == nil || !maps.Equal(values, p.values) {
		d, err := p.deed(values)
		if err != nil {
			p.form.SetError(fieldOf(err), sentence(err))
			return
		}
		if d.action.Name == "" { // no change
			p.close()
			return
		}
		done := d.done
		d.done = func(j *model.Job) {
			p.close()
			if done != nil {
				done(j)
			}
		}
		d.failed = p.refused
		p.values, p.tried = values, d
	}
	p.app.carryOut(p.tried)
}

// refused shows the error in the form.
func (p *filling) refused(r model.Result) {
	text := problem(r)
	if p.gone {
		p.app.complain(errors.New(text))
		return
	}
	for name, field := range p.names {
		if rest, ok := strings.CutPrefix(text, name+": "); ok {
			p.form.SetError(field, rest)
			return
		}
	}
	field := ""
	if status.Code(r.Err) == codes.AlreadyExists {
		field = p.unique
	}
	p.form.SetError(field, text)
}

const (
	toastFor    = 4 * time.Second
	complainFor = 6 * time.Second
	maxMessages = 500
)

// toast is a line over the hints about what just happened.
type toast struct {
	text  string
	role  theme.Role
	until time.Time
}

// message is a toast kept for :messages.
type message struct {
	at   time.Time
	text string
	bad  bool
}

// say reports a success.
func (a *App) say(format string, args ...any) {
	a.tell(fmt.Sprintf(format, args...), theme.Success, toastFor)
}

// complain reports an error.
func (a *App) complain(err error) {
	a.tell(sentence(err), theme.Danger, complainFor)
}

func (a *App) tell(text string, role theme.Role, lasts time.Duration) {
	a.toast = toast{text, role, a.options.Now().Add(lasts)}
	a.keep(text, role == theme.Danger)
	time.AfterFunc(lasts, func() { a.post(func() {}) })
}

// keep adds a line to :messages.
func (a *App) keep(text string, bad bool) {
	a.messages = append(a.messages, message{a.options.Now(), text, bad})
	a.messages = a.messages[max(len(a.messages)-maxMessages, 0):]
}

// sentence returns an error as people read it: the server's message without gRPC's wrapping.
func sentence(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	s, ok := status.FromError(err)
	if !ok {
		return err.Error()
	}
	switch s.Code() {
	case codes.Unimplemented:
		return "the server does not offer this; it may be older than this program"
	case codes.DeadlineExceeded:
		return "no answer in time"
	case codes.Unauthenticated:
		what, _, _ := strings.Cut(s.Message(), ": give ") // the server's advice is longer and for all clients
		return what + ": give a key with --api-key-file or KAGZI_API_KEY"
	case codes.Unavailable:
		if _, reason, found := strings.Cut(s.Message(), "rror while dialing: "); found {
			// newer gRPC writes "error", older "Error"
			return "no server answers: " + strings.TrimSuffix(reason, `"`)
		}
		if why := tui.WhyUnreached("", s.Message()); !why.Absent {
			return why.Text
		}
	}
	return s.Message()
}

// remedy returns what to do about a failed connection; empty for errors that pass by themselves.
// reach holds the flags that lead a command line to the server, address its address.
func remedy(err error, address, reach string) string {
	s := status.Convert(err)
	switch s.Code() {
	case codes.Unauthenticated:
		return "Give a key with:  kagzi tui" + reach +
			" --api-key-file FILE, or KAGZI_API_KEY, or a profile. An admin creates keys:  kagzi key create --help"
	case codes.PermissionDenied:
		return "Use a key with a role that allows this. See the current key:  kagzi doctor" + reach
	case codes.Unavailable:
		if strings.HasPrefix(s.Message(), "the server ") { // it is stopping, or silent
			return "See its state:  kagzi doctor" + reach
		}
		advice := tui.WhyUnreached(address, s.Message()).Advice
		advice = strings.Replace(advice, "start one with: ", "start one with:  ", 1)
		return strings.ToUpper(advice[:1]) + advice[1:]
	}
	return "See what is wrong:  kagzi doctor" + reach
}
