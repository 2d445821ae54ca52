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
	// manyTargets is the number of targets above which a question asks to type their number.
	manyTargets = 10
	// listedTargets limits how many targets a question names.
	listedTargets = 8
	// longestCommand limits the length of the equivalent command line in a question.
	longestCommand = 600
)

// scope returns the namespace and server that actions apply to.
func (a *App) scope() model.Scope {
	return model.Scope{Namespace: a.link.Namespace(), Address: a.options.Address, Home: a.options.Home}
}

// deed is an action together with the question that confirms it.
type deed struct {
	action model.Action
	what   string                     // "2 runs of type order", "the worker w-1"
	name   func(target string) string // name of a target for people; nil: the target itself
	lines  []string                   // further lines of the question
	// other is an action of another button with this name; empty: there is none
	other     model.Action
	otherName string
	done      func(j *model.Job) // called after all targets, if at least one worked; nil: nothing
	// failed replaces the error message of an action on one target; nil: the usual message
	failed func(r model.Result)
}

// confirm asks before it performs an action. The question names the targets and the equivalent
// command line. Enter chooses the button that does nothing.
func (a *App) confirm(d deed) {
	verb := strings.ToUpper(d.action.Name[:1]) + d.action.Name[1:]
	question := widget.Question{
		Title: verb + " " + d.what + "?", Command: shortened(d.action.CommandLine(), longestCommand),
		Danger:  d.action.Danger,
		Buttons: []string{"Cancel", verb}, Want: a.wanted(d.action),
	}
	if d.action.Name == "cancel" {
		question.Buttons = []string{"Leave as is", "Cancel " + several(len(d.action.Targets), "the run", "runs")}
	}
	if d.otherName != "" {
		question.Buttons = append(question.Buttons, d.otherName)
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
			widget.TextLine(fmt.Sprintf("Type %s to continue.", question.Want), render.Strong))
	}
	dialog := widget.NewDialog(a.theme, question)
	o := &over{primitive: dialog, place: wholeScreen,
		hints: []hint{{"tab", "next button"}, {"enter", "choose"}, {"esc", "cancel"}}}
	dialog.Choose = func(button int) {
		a.lift(o)
		if button > 1 {
			d.action = d.other
		}
		if button > 0 {
			a.do(d)
		}
	}
	a.lay(o)
}

// wanted returns the text to type before an action on many targets or in a protected namespace;
// empty if none is needed.
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

// carryOut performs an action without a question, because it creates something or one key undoes
// it.
func (a *App) carryOut(d deed) {
	if a.wanted(d.action) != "" {
		a.confirm(d)
		return
	}
	a.do(d)
}

// do performs an action and reports the result.
func (a *App) do(d deed) {
	a.keep("$ "+d.action.CommandLine(), false) // :messages shows, and copies, what was done
	a.job = model.Perform(a.link, d.action, func(j *model.Job) { a.progress(d, j) })
}

// progress reports how far an action is, and at the end its result.
func (a *App) progress(d deed, j *model.Job) {
	n := len(j.Results)
	if j.Running() {
		a.say("%s: %d of %d", d.action.Name, j.Tried, n)
		return
	}
	if j.Failed > 0 {
		a.job = j // another may have started since; :again in the text below means this one
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
		a.complain(fmt.Errorf("%s: %d of %d failed; :again retries those", d.action.Name, j.Failed, n))
		a.showFailures(d, j)
	}
}

// problem says why a target failed, and whether the action may have worked all the same.
func problem(r model.Result) string {
	if r.Uncertain() {
		return "it may have worked; :again repeats the request and never does it twice (" + sentence(r.Err) + ")"
	}
	return sentence(r.Err)
}

// showFailures lists the failed targets and why.
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

// again repeats the last action for the targets that failed.
func (a *App) again() error {
	if a.job == nil || a.job.Failed == 0 {
		return errors.New("the last action has no failures")
	}
	if a.job.Running() {
		return errors.New("the action is still running")
	}
	a.job.Again()
	return nil
}

// form shows a form over the page. submit gets the values; if it returns an error, the form stays
// open. A field named input is edited in the person's editor.
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

// fieldError is an error about one field of a form.
type fieldError struct {
	field string
	err   error
}

func (e *fieldError) Error() string { return e.err.Error() }
func (e *fieldError) Unwrap() error { return e.err }

// fieldOf returns the field that an error is about, or an empty string.
func fieldOf(err error) string {
	if f, ok := errors.AsType[*fieldError](err); ok {
		return f.field
	}
	return ""
}

// shortened cuts a text that would fill the screen.
func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return render.Truncate(render.Safe(text), most)
}

// several writes a number of things: "1 run", "3 runs".
func several(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return strconv.Itoa(n) + " " + many
}

// common returns the one value that all have; empty if they differ.
func common(values []string) string {
	if len(values) == 0 || slices.ContainsFunc(values, func(v string) bool { return v != values[0] }) {
		return ""
	}
	return values[0]
}

// Roles by what they may change; each includes the ones below it. The enum's numbers run the other
// way.
const (
	admins    = kagziv1.KeyRole_KEY_ROLE_ADMIN
	operators = kagziv1.KeyRole_KEY_ROLE_OPERATOR
	clients   = kagziv1.KeyRole_KEY_ROLE_CLIENT
)

// role returns the role of the caller's key. ok is false if the server asks for no key or has not
// answered yet.
func (a *App) role() (role kagziv1.KeyRole, ok bool) {
	if a.overview == nil {
		return 0, false
	}
	key := a.overview.Me().GetKey()
	return key.GetRole(), key != nil
}

// looksOnly reports that nothing can be changed: the options ask for that, or the key allows only
// reading.
func (a *App) looksOnly() bool {
	role, ok := a.role()
	return a.options.ReadOnly || ok && role > clients
}

// forbid marks an action that the caller's key does not allow with the reason. The server would
// refuse it.
func (a *App) forbid(action *Action) {
	role, ok := a.role()
	least := cmp.Or(action.Least, operators)
	if !ok || !action.Changes || role <= least {
		return
	}
	name := a.overview.Me().GetKey().GetName()
	action.Off = func() string {
		return fmt.Sprintf("your key %s has the role %s, which may not %s; that needs the role %s", name,
			render.KeyRole(role), action.Name, render.KeyRole(least))
	}
}
