package view

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/widget"
)

const (
	// manyTargets is how many things an action may be for before their number is to be typed.
	manyTargets = 10
	// listedTargets is how many of them a question names.
	listedTargets = 8
	// longestCommand is how much of an equivalent command line a question shows.
	longestCommand = 600
)

// scope is where actions are done now.
func (a *App) scope() model.Scope {
	return model.Scope{Namespace: a.link.Namespace(), Address: a.options.Address, Home: a.options.Home}
}

// deed is an action that a person is asked about before it is done.
type deed struct {
	action model.Action
	what   string                     // "2 runs of type order", "the worker w-1"
	name   func(target string) string // of a target, for people; nil: the target itself
	lines  []string                   // what else there is to say
	done   func(j *model.Job)         // after all targets, when at least one worked; nil: nothing
	// in place of a complaint, when it has one target and that failed; nil: a complaint
	failed func(r model.Result)
}

// confirm asks whether something is to be done, and does it. The question names what it is done to
// and the command line that does the same; nothing is what enter chooses.
func (a *App) confirm(d deed) {
	verb := strings.ToUpper(d.action.Name[:1]) + d.action.Name[1:]
	question := widget.Question{
		Title: verb + " " + d.what + "?", Command: shortened(d.action.CommandLine(), longestCommand),
		Danger:  d.action.Danger,
		Buttons: []string{"Cancel", verb}, Want: a.wanted(d.action),
	}
	if d.action.Name == "cancel" {
		question.Buttons = []string{"Leave as is", "Cancel " + d.what}
	}
	for _, line := range d.lines {
		question.Lines = append(question.Lines, widget.TextLine(line, render.Plain))
	}
	if n := len(d.action.Targets); n > 1 {
		for _, target := range d.action.Targets[:min(n, listedTargets)] {
			question.Lines = append(question.Lines, widget.TextLine("  "+d.nameOf(target), render.Dim))
		}
		if n > listedTargets {
			question.Lines = append(question.Lines,
				widget.TextLine(fmt.Sprintf("  and %d more", n-listedTargets), render.Dim))
		}
	}
	if question.Want != "" {
		question.Lines = append(question.Lines, widget.Line{},
			widget.TextLine(fmt.Sprintf("Type %s to go on.", question.Want), render.Strong))
	}
	dialog := widget.NewDialog(a.theme, question)
	o := &over{primitive: dialog, place: wholeScreen,
		hints: []hint{{"tab", "next button"}, {"enter", "choose"}, {"esc", "cancel"}}}
	dialog.Choose = func(button int) {
		a.lift(o)
		if button > 0 {
			a.do(d)
		}
	}
	a.lay(o)
}

// wanted is what is to be typed before something is done to many things, or in a namespace that the person protects.
func (a *App) wanted(action model.Action) string {
	if len(action.Targets) > manyTargets {
		return strconv.Itoa(len(action.Targets))
	}
	for _, pattern := range a.options.Config.Protected {
		if ok, err := path.Match(pattern, a.link.Namespace()); ok || err != nil && pattern == a.link.Namespace() {
			return a.link.Namespace()
		}
	}
	return ""
}

func (d *deed) nameOf(target string) string {
	if d.name == nil {
		return target
	}
	return d.name(target)
}

// carryOut does something without asking: what makes something new, or can be taken back with one key.
func (a *App) carryOut(d deed) {
	if a.wanted(d.action) != "" {
		a.confirm(d)
		return
	}
	a.do(d)
}

// do does it and tells what came of it.
func (a *App) do(d deed) {
	a.keep("$ "+d.action.CommandLine(), false) // what was done can be read, and copied, in :messages
	a.job = model.Perform(a.link, d.action, func(j *model.Job) { a.progress(d, j) })
}

// progress tells how far an action has come, and in the end what it came to.
func (a *App) progress(d deed, j *model.Job) {
	n := len(j.Results)
	if j.Running() {
		a.say("%s: %d of %d", d.action.Name, j.Tried, n)
		return
	}
	if j.Failed > 0 {
		a.job = j // another may have begun since: what is said below of :again is about this one
	}
	if j.Failed < n && d.done != nil {
		d.done(j)
	}
	switch {
	case j.Failed == 0 && n == 1:
		a.say("%s %s: %s", d.action.Name, d.nameOf(j.Results[0].Target), j.Results[0].Text)
	case j.Failed == 0:
		a.say("%s: all %d done", d.action.Name, n)
	case n == 1 && d.failed != nil:
		d.failed(j.Results[0])
	case n == 1:
		a.complain(fmt.Errorf("%s %s: %s", d.action.Name, d.nameOf(j.Results[0].Target), problem(j.Results[0])))
	default:
		a.complain(fmt.Errorf("%s: %d of %d failed; :again tries those once more", d.action.Name, j.Failed, n))
		a.showFailures(d, j)
	}
}

// problem is why a target failed, and whether it may have worked all the same.
func problem(r model.Result) string {
	if r.Uncertain() {
		return "it may have worked all the same; :again asks once more without doing it twice (" + sentence(r.Err) + ")"
	}
	return sentence(r.Err)
}

// showFailures lists what failed and why.
func (a *App) showFailures(d deed, j *model.Job) {
	var lines []widget.Line
	for _, r := range j.Results {
		if r.Err != nil {
			lines = append(lines, widget.Line{Cells: []render.Cell{
				{Text: d.nameOf(r.Target) + "  ", Style: render.Strong}, {Text: problem(r), Style: render.Bad}}})
		}
	}
	a.reader(fmt.Sprintf("%s: %d of %d failed", d.action.Name, j.Failed, len(j.Results)),
		widget.NewLines(a.theme).SetLines(lines), nil)
}

// again does the last action once more to what failed.
func (a *App) again() error {
	if a.job == nil || a.job.Failed == 0 {
		return errors.New("nothing has failed")
	}
	if a.job.Running() {
		return errors.New("it is still being done")
	}
	a.job.Again()
	return nil
}

// form lays a form over the page. submit gets the values; what it refuses can be changed. A field
// named input is edited in the person's editor.
func (a *App) form(title, label string, fields []widget.Field, submit func(values map[string]string) error) {
	f := widget.NewForm(a.theme, title, fields)
	f.SubmitLabel = label
	o := &over{primitive: f, place: wholeScreen, hints: formHints(label)}
	f.Cancel = func() { a.lift(o) }
	f.Edit = a.edit
	f.Submit = func(values map[string]string) {
		a.lift(o)
		if err := submit(values); err != nil {
			f.SetError(fieldOf(err), sentence(err))
			a.lay(o)
		}
	}
	a.lay(o)
}

// fieldError is what is wrong with one field of a form.
type fieldError struct {
	field string
	err   error
}

func (e *fieldError) Error() string { return e.err.Error() }
func (e *fieldError) Unwrap() error { return e.err }

// fieldOf is the field that an error is about; empty when it is about none.
func fieldOf(err error) string {
	if f, ok := errors.AsType[*fieldError](err); ok {
		return f.field
	}
	return ""
}

// shortened cuts a line that would fill the screen.
func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return render.Truncate(render.Safe(text), most)
}

// several is a number of things: "1 run", "3 runs".
func several(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return strconv.Itoa(n) + " " + many
}

// common is the one value that all have; empty when they differ.
func common(values []string) string {
	if len(values) == 0 || slices.ContainsFunc(values, func(v string) bool { return v != values[0] }) {
		return ""
	}
	return values[0]
}

// The roles by what they may change; each may also do what those below it may. The numbers grow the other way.
const (
	admins    = kagziv1.KeyRole_KEY_ROLE_ADMIN
	operators = kagziv1.KeyRole_KEY_ROLE_OPERATOR
	clients   = kagziv1.KeyRole_KEY_ROLE_CLIENT
)

// role is the role of the caller's key; ok is false where the server asks for no key, or has not said yet.
func (a *App) role() (role kagziv1.KeyRole, ok bool) {
	if a.overview == nil {
		return 0, false
	}
	key := a.overview.Me().GetKey()
	return key.GetRole(), key != nil
}

// looksOnly says that nothing can be changed here at all: as somebody wants it, or because the key allows nothing else.
func (a *App) looksOnly() bool {
	role, ok := a.role()
	return a.options.ReadOnly || ok && role > clients
}

// forbid gives an action that the caller's key does not allow a reason not to be done. The server would refuse it.
func (a *App) forbid(action *Action) {
	role, ok := a.role()
	least := cmp.Or(action.Least, operators)
	if !ok || !action.Changes || role <= least {
		return
	}
	name := a.overview.Me().GetKey().GetName()
	action.Off = func() string {
		return fmt.Sprintf("your key %s has the role %s, which may not %s; it takes the role %s", name,
			render.KeyRole(role), action.Name, render.KeyRole(least))
	}
}
