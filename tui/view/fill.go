package view

import (
	"errors"
	"maps"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/widget"
)

// filling is a form that is given up only once what it asks for has been done: what the server refuses can be changed and tried again.
type filling struct {
	app  *App
	form *widget.Form
	over *over
	// deed makes of the values what is to be done.
	deed func(values map[string]string) (deed, error)
	// names are the fields by what the server calls them, so that what it refuses is said in its place.
	names  map[string]string
	unique string            // the field that is wrong when the thing exists already
	closed func()            // when the form is there no more; nil: nothing
	values map[string]string // that were tried last
	tried  deed              // with them: the same values are the same request, which has no second effect
	gone   bool              // it was given up, or what it asks for has been done
}

// fill lays a form over the page.
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

// submit does it. The form stays until that has worked.
func (p *filling) submit(values map[string]string) {
	if p.values == nil || !maps.Equal(values, p.values) {
		d, err := p.deed(values)
		if err != nil {
			p.form.SetError(fieldOf(err), sentence(err))
			return
		}
		if d.action.Name == "" { // nothing is to be done
			p.close()
			return
		}
		d.done = func(*model.Job) { p.close() }
		d.failed = p.refused
		p.values, p.tried = values, d
	}
	p.app.carryOut(p.tried)
}

// refused says in the form what is wrong.
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
