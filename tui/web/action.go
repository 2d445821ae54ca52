package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	g "maragu.dev/gomponents"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	h "github.com/kagzi/kagzi/tui/web/internal/markup"
)

const (
	mostTargets   = 500 // of an action on marked objects
	listedTargets = 8   // that a question names
	mostCommand   = 4000
)

// actionKind is something that a person can do.
type actionKind struct {
	name  string // in addresses
	title string // of the button
	noun  string // of its targets: "run"; for those that create something, of what they create
	least kagziv1.KeyRole
	// makes is set for actions that have no target.
	makes  bool
	danger bool
	fields func(p *page, q *question) []field
	// current returns the values that the fields have of the target now; nil for actions that edit
	// nothing.
	current func(p *page, q *question) (map[string]string, error)
	// action returns what the form asks for, with sentences about what it does. It may be called for
	// a form that is not complete.
	action func(p *page, q *question) (model.Action, []string, error)
}

// question is an action that is asked about.
type question struct {
	kind    *actionKind
	targets []string
	values  url.Values // of the fields
	runs    []*kagziv1.Workflow
	labels  []string // of the first targets
	facts   []string // about the targets
}

// value returns what is in a field. Browsers send lines with CRLF.
func (q *question) value(name string) string { return strings.TrimSpace(lf(q.values.Get(name))) }

// kindOf returns an action by its name, if the caller may do it.
func (p *page) kindOf(name string) (*actionKind, error) {
	i := slices.IndexFunc(actionKinds, func(a *actionKind) bool { return a.name == name })
	switch {
	case i < 0:
		return nil, status.Error(codes.NotFound, "there is no such action")
	case p.ReadOnly:
		return nil, status.Error(codes.PermissionDenied, "this page is read-only")
	case !p.may(actionKinds[i].least):
		key := p.me.GetKey()
		return nil, status.Errorf(codes.PermissionDenied,
			"your key %s has the role %s, which may not do this; that needs "+
				"the role %s", key.GetName(), render.KeyRole(key.GetRole()), render.KeyRole(actionKinds[i].least))
	}
	return actionKinds[i], nil
}

// questionOf reads the question that a query or a form asks.
func (p *page) questionOf(values url.Values) (*question, error) {
	kind, err := p.kindOf(values.Get("do"))
	if err != nil {
		return nil, err
	}
	q := &question{kind: kind, targets: values["id"], values: values}
	if kind.makes {
		q.targets = nil
		return q, nil
	}
	slices.Sort(q.targets)
	q.targets = slices.Compact(q.targets)
	if len(q.targets) == 0 || len(q.targets) > mostTargets {
		return nil, status.Errorf(codes.InvalidArgument, "mark 1 to %d of them first", mostTargets)
	}
	return q, p.learn(q)
}

// learn reads what the question says about its first targets.
func (p *page) learn(q *question) error {
	for _, id := range q.targets[:min(len(q.targets), listedTargets)] {
		switch q.kind.noun {
		case "run":
			r, err := p.workflow(p.ctx, id)
			if err != nil {
				return err
			}
			q.runs = append(q.runs, r)
			q.labels = append(q.labels, r.GetWorkflowType()+" "+runName(r)+", "+theme.OfRun(r).Word)
		case "schedule":
			answer, err := p.API.GetWorkflowSchedule(p.ctx, &kagziv1.GetWorkflowScheduleRequest{Namespace: p.ns,
				ScheduleId: id})
			if err != nil {
				return err
			}
			q.labels = append(q.labels, scheduleName(answer.GetSchedule()))
		case "key":
			if err := p.learnKeys(q); err != nil {
				return err
			}
			return nil
		default:
			q.labels = append(q.labels, id)
		}
	}
	return nil
}

// ask shows the question before an action.
func (p *page) ask() error {
	q, err := p.questionOf(p.r.URL.Query())
	if err != nil {
		return err
	}
	if err := p.fillIn(q); err != nil {
		return err
	}
	return p.showQuestion(http.StatusOK, q, "", uuid.Must(uuid.NewV7()).String())
}

// perform does what the form of a question asks for, or shows the question again.
func (p *page) perform() error {
	q, err := p.questionOf(p.r.PostForm)
	if err != nil {
		return err
	}
	request := p.r.PostForm.Get("request")
	if p.r.PostForm.Has("preview") {
		return p.showQuestion(http.StatusOK, q, "", request)
	}
	for _, f := range q.kind.fieldsOf(p, q) {
		if f.required && q.value(f.name) == "" {
			return p.showQuestion(http.StatusBadRequest, q, f.label+": enter a value", request)
		}
	}
	changed, err := p.stale(q)
	if err != nil {
		return err
	}
	if changed != "" {
		return p.showQuestion(http.StatusConflict, q, changed, request)
	}
	action, _, err := q.kind.action(p, q)
	if err != nil {
		return p.showQuestion(http.StatusBadRequest, q, sentence(err), request)
	}
	id, parsed := uuid.Parse(request)
	if parsed != nil {
		return status.Error(codes.InvalidArgument, "the form has no request id: reload the page")
	}
	action = action.WithRequest(id)
	key, d, err := p.doOnce(q.title(), p.backFrom(q), actTime, func(ctx context.Context, d *deed) {
		d.result = action.Do(ctx, p.API)
	})
	if err != nil {
		return err
	}
	to := p.at("done/" + key)
	if d.ended() && d.err == nil && len(d.result) == 1 {
		r := d.result[0]
		switch {
		case r.Err != nil && q.kind.makes && status.Code(r.Err) == codes.InvalidArgument:
			// what was asked for was not taken: the form can be corrected, as another request
			return p.showQuestion(http.StatusBadRequest, q, sentence(r.Err), uuid.Must(uuid.NewV7()).String())
		case r.Err == nil && r.Secret == "":
			to = withQuery(p.afterwards(q, r), "done", key)
		}
	}
	http.Redirect(p.w, p.r, to, http.StatusSeeOther)
	return nil
}

func withQuery(address, name, value string) string {
	sign := "?"
	if strings.Contains(address, "?") {
		sign = "&"
	}
	return address + sign + queryOf(name, value)[1:]
}

func (a *actionKind) fieldsOf(p *page, q *question) []field {
	if a.fields == nil {
		return nil
	}
	return a.fields(p, q)
}

// title is what is asked: "Cancel the run order-7?"
func (q *question) title() string {
	switch {
	case q.kind.makes:
		return q.kind.title
	case len(q.targets) == 1 && len(q.labels) == 1:
		return q.kind.title + " the " + q.kind.noun + " " + q.labels[0]
	}
	return fmt.Sprintf("%s %d %ss", q.kind.title, len(q.targets), q.kind.noun)
}

// backFrom returns the page that a question came from.
func (p *page) backFrom(q *question) string {
	one := ""
	if len(q.targets) == 1 {
		one = q.targets[0]
	}
	switch q.kind.noun {
	case "run":
		if one != "" {
			return p.runURL(one, "")
		}
		return p.at("runs")
	case "schedule":
		if one != "" && q.kind.name != "delete-schedule" {
			return p.scheduleURL(one)
		}
		return p.at("schedules")
	case "worker":
		if one != "" {
			return p.workerURL(one)
		}
		return p.at("workers")
	case "namespace":
		return p.admin("namespaces")
	case "hook":
		return p.at("hooks")
	}
	return p.admin("keys")
}

// afterwards returns the page that shows the effect of an action that worked.
func (p *page) afterwards(q *question, r model.Result) string {
	switch {
	case r.ID != "" && (q.kind.name == "start" || q.kind.name == "retry" || q.kind.name == "trigger"):
		return p.runURL(r.ID, "")
	case r.ID != "" && q.kind.name == "create-schedule":
		return p.scheduleURL(r.ID)
	}
	return p.backFrom(q)
}

// showQuestion shows what an action would do, how the command line does it, and its fields. Doing
// nothing comes first; enter in a field shows the command again.
func (p *page) showQuestion(code int, q *question, problem, request string) error {
	action, consequences, err := q.kind.action(p, q)
	command := ""
	if err == nil {
		command = render.Safe(action.CommandLine())
	} else if problem == "" && p.r.Method == http.MethodPost {
		problem = sentence(err)
	}
	named := g.If(len(q.targets) > 1, h.Ul(h.Class("targets"), g.Map(q.labels, func(s string) g.Node {
		return h.Li(cut(s, 120))
	}), g.If(len(q.targets) > len(q.labels), h.Li(h.Text(fmt.Sprintf("and %d more", len(q.targets)-len(q.labels)))))))
	fields := q.kind.fieldsOf(p, q)
	class := "primary"
	if q.kind.danger {
		class = "danger"
	}
	return p.write(code, p.document(q.kind.title, "",
		h.Form(h.Class("question"), h.Method("post"), h.Action(p.at("act")), p.hidden(),
			h.Input(h.Type("hidden"), h.Name("request"), h.Value(request)),
			h.Input(h.Type("hidden"), h.Name("do"), h.Value(q.kind.name)),
			g.Map(q.targets, func(id string) g.Node { return h.Input(h.Type("hidden"), h.Name("id"), h.Value(id)) }),
			h.H1(cut(q.title(), 160), h.Text("?")),
			g.If(problem != "", h.P(h.Class("problem"), h.Role("alert"), text(problem))),
			named,
			h.Ul(h.Class("consequences"), g.Map(append(consequences, q.facts...),
				func(s string) g.Node { return h.Li(text(s)) })),
			fieldNodes(q, fields),
			h.H2(h.Text("The same on the command line")),
			h.Div(h.ID("command"), commandNode(command)),
			h.Div(h.Class("choices"),
				g.If(len(fields) > 0, h.Button(h.Type("submit"), h.Name("preview"), h.Value("1"),
					h.Text("Update the command"))),
				h.A(h.Class("button primary"), h.ID("leave"), h.Href(p.backFrom(q)), h.Text("Leave as is")),
				h.Button(h.Class(class), h.Type("submit"), h.Name("act"), h.Value("1"), h.Text(q.verb()))))))
}

// verb is the text of the button that acts.
func (q *question) verb() string {
	switch n := len(q.targets); {
	case q.kind.makes:
		return q.kind.title
	case n == 1:
		return q.kind.title + " the " + q.kind.noun
	default:
		return q.kind.title + " " + format.Number(int64(n)) + " " + q.kind.noun + "s"
	}
}

func commandNode(command string) g.Node {
	if command == "" {
		return h.P(h.Class("empty"), h.Text("Fill in the fields to see it."))
	}
	if len(command) > mostCommand {
		command = render.Truncate(command, mostCommand)
	}
	return h.Pre(h.Class("command"), h.TabIndex("0"), h.Text(command))
}

// outcome shows what became of an action.
func (p *page) outcome() error {
	d := p.once.find(p.r.PathValue("request"), ownerOf(p.cookie))
	if d == nil {
		return status.Error(codes.NotFound,
			"this server does not know that action any more; the audit log has what was done")
	}
	if !d.ended() {
		return p.write(http.StatusOK, p.document("In progress", "", h.H1(cut(d.title, 160)), h.Div(h.ID("progress"),
			h.Data("again", "1"), h.P(h.Class("lead"), h.Text(d.progress()))), h.P(h.A(h.Href(p.r.URL.RequestURI()),
			h.Text("Show how far it is")))))
	}
	if d.err != nil {
		return p.write(http.StatusConflict, p.document("Nothing was done", "", h.H1(h.Text("Nothing was done")),
			h.P(h.Class("lead problem"), text(sentence(d.err))), h.P(h.A(h.Href(d.back), h.Text("Back")))))
	}
	failed := slices.DeleteFunc(slices.Clone(d.result), func(r model.Result) bool { return r.Err == nil })
	title := "Done"
	if len(failed) > 0 {
		title = fmt.Sprintf("%d of %d failed", len(failed), len(d.result))
	}
	body := g.Group{h.H1(h.Text(title)), h.P(h.Class("lead"), cut(d.title, 200)),
		g.If(d.matched > 0, h.P(h.Text(d.progress())))}
	for _, r := range d.result {
		switch {
		case r.Secret != "":
			body = append(body, p.secretNodes(r))
		case r.Err != nil && r.Uncertain():
			body = append(body, h.P(h.Class("problem"), text(r.Target+": it may have worked ("+sentence(r.Err)+")")))
		case r.Err != nil:
			body = append(body, h.P(h.Class("problem"), text(r.Target+": "+sentence(r.Err))))
		case len(d.result) <= listedTargets:
			body = append(body, h.P(text(r.Target+": "+r.Text)))
		}
	}
	return p.write(http.StatusOK, p.document(title, "", body, h.P(h.A(h.Class("button"), h.Href(d.back),
		h.Text("Back")))))
}

// secretNodes shows the secret of a new key, or of a hook with its address.
func (p *page) secretNodes(r model.Result) g.Node {
	what, advice := "key", "It is not stored, and cannot be shown again later. Put it in a file for --api-key-file, or in "+
		"KAGZI_API_KEY."
	hook := strings.HasPrefix(r.ID, "/") // the ids of keys have none
	if hook {
		what, advice = "hook", "It cannot be shown again later: give it to the sender now."
	}
	return g.Group{
		g.If(hook, h.P(h.Text("Deliveries go to "), h.Code(text(p.site()+r.ID)))),
		h.P(h.Text("The secret of the "+what+" "), text(r.Target), h.Text(":")),
		h.Pre(h.Class("command secret"), h.ID("secret"), text(r.Secret)),
		h.Button(h.Type("button"), h.Data("copy", "secret"), h.Is("hidden"), h.Text("Copy")),
		h.P(h.Text(advice))}
}

// progress says how far a deed is.
func (d *deed) progress() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.matched == 0 {
		return "It is running."
	}
	said := fmt.Sprintf("%s of %s done, %s failed.", format.Number(d.done), format.Number(d.matched),
		format.Number(d.refused))
	if d.last != "" {
		said += " The last failure: " + render.Safe(d.last)
	}
	return said
}

// flash says what the action did that led to this page.
func (p *page) flash() g.Node {
	d := p.once.find(p.r.URL.Query().Get("done"), ownerOf(p.cookie))
	if d == nil || !d.ended() || len(d.result) != 1 {
		return nil
	}
	return h.P(h.Class("flash"), h.Role("status"), cut(d.title+": "+d.result[0].Text, 300))
}
