package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/view/internal/tables"
	"github.com/kagzi/kagzi/tui/widget"
)

// namespacesPage shows all namespaces; enter switches to one.
type namespacesPage struct {
	listPage[*kagziv1.Namespace]
	figures *model.Figures
}

func openNamespaces(a *App, _ []string) (page, error) {
	figures := model.NewFigures(a.link)
	row := func(n *kagziv1.Namespace) widget.Row {
		return a.tables.Namespace(n, a.link.Namespace(), figures.Of(n.GetNamespace()))
	}
	p := &namespacesPage{listPage: newListPage(a, "namespaces", "Namespaces", tables.NamespaceColumns,
		model.NewNamespaces(a.link), row), figures: figures}
	of := func(figure func(*kagziv1.GetStatsResponse) int64) func(a, b *kagziv1.Namespace) int {
		return func(a, b *kagziv1.Namespace) int {
			return cmp.Compare(figure(figures.Of(a.GetNamespace())), figure(figures.Of(b.GetNamespace())))
		}
	}
	p.order = map[string]func(a, b *kagziv1.Namespace) int{
		"running":   of((*kagziv1.GetStatsResponse).GetRunningWorkflows),
		"pending":   of((*kagziv1.GetStatsResponse).GetPendingWorkflows),
		"workers":   of((*kagziv1.GetStatsResponse).GetOnlineWorkers),
		"schedules": of((*kagziv1.GetStatsResponse).GetEnabledSchedules),
		"created": func(a, b *kagziv1.Namespace) int {
			return b.GetCreatedAt().AsTime().Compare(a.GetCreatedAt().AsTime())
		},
		"retention": func(a, b *kagziv1.Namespace) int {
			return cmp.Compare(a.GetRetention().AsDuration(), b.GetRetention().AsDuration())
		},
	}
	p.empty = func() []widget.Line { return []widget.Line{widget.TextLine("No namespaces.", render.Plain)} }
	p.tab.Opened = func(name string) { a.done(a.useAndShow(name)) }
	p.tab.Viewed = func(first, last int) {
		var names []string
		for i := first; i < last; i++ {
			if n, ok := p.items.Row(i); ok {
				names = append(names, n.GetNamespace())
			}
		}
		figures.View(names)
	}
	return p, p.SortBy("name", false)
}

func (p *namespacesPage) Show() {
	p.listPage.Show()
	p.figures.Show()
}

func (p *namespacesPage) Hide() {
	p.figures.Hide()
	p.listPage.Hide()
}

func (p *namespacesPage) Close() {
	p.figures.Close()
	p.listPage.Close()
}

// Banner says if the current namespace is disabled.
func (p *namespacesPage) Banner() string {
	if n, ok := p.items.Get(p.app.link.Namespace()); ok && !n.GetEnabled() {
		return fmt.Sprintf("the current namespace %q is disabled: no run starts or is claimed", n.GetNamespace())
	}
	return ""
}

// Actions switch to a namespace, and create, edit, enable, disable and delete them.
func (p *namespacesPage) Actions() []*Action {
	one := func(do func(*kagziv1.Namespace) error) func([]string) error {
		return func([]string) error {
			n, ok := p.under()
			if !ok {
				return errNothingUnder
			}
			return do(n)
		}
	}
	a := p.app
	return []*Action{
		{Name: "use", Keys: []string{"enter"}, Help: "switch to this namespace", Group: GroupMove, Hint: 1,
			Run: one(func(n *kagziv1.Namespace) error { return a.useAndShow(n.GetNamespace()) })},
		{Name: "describe", Keys: []string{"d"}, Help: "show all details", Group: GroupView, Hint: 8,
			Run: one(func(n *kagziv1.Namespace) error {
				a.readPairs("Namespace "+n.GetNamespace(), render.NamespacePairs(n, a.clock.View()))
				return nil
			})},
		{Name: "new", Keys: []string{"n"}, Help: "create a namespace", Group: GroupAct, Changes: true, Least: admins,
			Hint: 2, Run: func([]string) error { a.newNamespace(); return nil }},
		{Name: "edit", Keys: []string{"e"}, Help: "edit the namespace", Group: GroupAct, Changes: true, Least: admins,
			Hint: 3, Run: one(func(n *kagziv1.Namespace) error { a.changeNamespace(n); return nil })},
		{Name: "toggle", Keys: []string{"x"}, Short: "disable or enable",
			Help: "disable or enable namespaces", Group: GroupAct, Changes: true,
			Least: admins, Hint: 4,
			Run: func([]string) error { return a.disableOrEnable(targetsOf(&p.listPage)) }},
		{Name: "disable", Help: "disable namespaces: no run starts", Group: GroupAct, Changes: true, Least: admins,
			Run: func([]string) error { return a.disableNamespaces(targetsOf(&p.listPage)) }},
		{Name: "enable", Help: "enable namespaces: runs start again", Group: GroupAct, Changes: true, Least: admins,
			Run: func([]string) error { return a.enableNamespaces(targetsOf(&p.listPage)) }},
		{Name: "delete", Help: "delete empty namespaces", Group: GroupAct, Changes: true, Least: admins,
			Run: func([]string) error { return a.deleteNamespaces(targetsOf(&p.listPage)) }},
	}
}

// namespaceName matches valid names.
var namespaceName = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)

func checkNamespaceName(name string) error {
	if !namespaceName.MatchString(name) {
		return fmt.Errorf("%q is not a valid namespace name: want lower-case letters, digits and '-', at most 63", name)
	}
	return nil
}

// use switches to another namespace.
func (a *App) use(name string) error {
	if err := checkNamespaceName(name); err != nil {
		return err
	}
	if name == a.link.Namespace() {
		a.say("already in namespace %q", name)
		return nil
	}
	a.link.SetNamespace(name)
	a.say("switched to namespace %q", name)
	return nil
}

// useAndShow switches to another namespace and shows its runs.
func (a *App) useAndShow(name string) error {
	if err := a.use(name); err != nil {
		return err
	}
	return a.command("runs")
}

// useNamespace is the command for use. The namespace need not exist yet.
func useNamespace(a *App, args []string) (page, error) {
	name := args[0]
	if err := a.use(name); err != nil {
		return nil, err
	}
	model.Ask(a.link, func(ctx context.Context) (*kagziv1.GetNamespaceResponse, error) {
		return a.link.API().GetNamespace(ctx, &kagziv1.GetNamespaceRequest{Namespace: name})
	}, func(_ *kagziv1.GetNamespaceResponse, err error) {
		if status.Code(err) == codes.NotFound && a.link.Namespace() == name {
			a.say("namespace %q does not exist: kagzi namespace create %s", name, name)
		}
	})
	return nil, nil
}

// completeNamespace completes names of namespaces, which are loaded on first use.
func completeNamespace(a *App, text string) []string {
	if a.names == nil {
		a.names = model.NewNamespaces(a.link)
		a.names.Show()
	}
	var names []string
	for _, n := range a.names.All() {
		names = append(names, n.GetNamespace())
	}
	return beginning(names, text)
}

// newNamespace shows the form that creates a namespace.
func (a *App) newNamespace() {
	fields := append([]widget.Field{{
		Name: "namespace", Label: "Name", Required: true, Check: checkNamespaceName,
		Note: whenEmpty("lower-case letters, digits and '-'"),
	}}, namespaceFields(&kagziv1.Namespace{})...)
	a.fill("New namespace", "Create", fields,
		filling{names: namespaceNames, unique: "namespace", deed: func(values map[string]string) (deed, error) {
			v := trimmed(values)
			request := &kagziv1.CreateNamespaceRequest{
				Namespace: v["namespace"], DisplayName: v["title"], Retention: retentionOf(v["retention"]),
				FailureTaskQueue: v["failures"],
			}
			if v["description"] != "" {
				request.Description = new(v["description"])
			}
			return deed{action: a.scope().CreateNamespace(request), what: request.GetNamespace()}, nil
		}})
}

// changeNamespace shows the form for a namespace and updates only the changed fields.
func (a *App) changeNamespace(old *kagziv1.Namespace) {
	a.fill("Namespace "+old.GetNamespace(), "Change", namespaceFields(old),
		filling{names: namespaceNames, deed: func(values map[string]string) (deed, error) {
			request, changed := updateNamespace(old, values)
			if !changed {
				a.say("%q has no changes", old.GetNamespace())
				return deed{}, nil
			}
			return deed{action: a.scope().UpdateNamespace(old, request), what: old.GetNamespace()}, nil
		}})
}

// namespaceNames maps the server's field names to those of the forms.
var namespaceNames = map[string]string{
	"namespace": "namespace", "display_name": "title", "description": "description", "retention": "retention",
	"failure_task_queue": "failures",
}

// namespaceFields returns the fields of a namespace except its name.
func namespaceFields(n *kagziv1.Namespace) []widget.Field {
	retention := ""
	if d := n.GetRetention().AsDuration(); d != 0 {
		retention = render.Days(d)
	}
	return []widget.Field{
		{Name: "title", Label: "Title", Value: n.GetDisplayName()},
		{Name: "description", Label: "Description", Value: n.GetDescription()},
		{Name: "retention", Label: "Keep runs for", Kind: widget.DurationField, Value: retention, Check: checkRetention,
			Note: whenEmpty("such as 30d; empty means the server's setting")},
		{Name: "failures", Label: "Failures to", Value: n.GetFailureTaskQueue(),
			Note: whenEmpty("queue for failure handler runs if no worker serves the handler")},
	}
}

func checkRetention(value string) error {
	d, err := query.ParseDuration(value)
	if err != nil {
		return err
	}
	if d != 0 && d < time.Minute {
		return fmt.Errorf("want at least one minute")
	}
	return nil
}

// retentionOf returns how long ended runs are kept; nil for the server's setting.
func retentionOf(text string) *durationpb.Duration {
	d, err := query.ParseDuration(text)
	if err != nil || d == 0 {
		return nil
	}
	return durationpb.New(d)
}

// updateNamespace returns the request that changes the fields whose values differ.
func updateNamespace(old *kagziv1.Namespace, values map[string]string) (r *kagziv1.UpdateNamespaceRequest,
	changed bool) {
	v, r := trimmed(values), &kagziv1.UpdateNamespaceRequest{}
	for _, text := range []struct {
		field, was string
		to         **string
	}{{"title", old.GetDisplayName(), &r.DisplayName}, {"description", old.GetDescription(), &r.Description},
		{"failures", old.GetFailureTaskQueue(), &r.FailureTaskQueue}} {
		if v[text.field] != text.was {
			*text.to, changed = new(v[text.field]), true
		}
	}
	if d := retentionOf(v["retention"]); d.AsDuration() != old.GetRetention().AsDuration() {
		r.Retention, changed = durationpb.New(d.AsDuration()), true // zero restores the server's setting
	}
	return r, changed
}

// disableOrEnable disables the enabled ones; if none is enabled, it enables all.
func (a *App) disableOrEnable(list []*kagziv1.Namespace) error {
	if slices.ContainsFunc(list, (*kagziv1.Namespace).GetEnabled) {
		return a.disableNamespaces(list)
	}
	return a.enableNamespaces(list)
}

// disableNamespaces asks, then disables the enabled ones.
func (a *App) disableNamespaces(list []*kagziv1.Namespace) error {
	return a.turnNamespaces(list, true, "already disabled", a.scope().DisableNamespaces,
		model.DisabledText, model.DisableText)
}

// enableNamespaces asks, because due runs start at once, then enables the disabled ones.
func (a *App) enableNamespaces(list []*kagziv1.Namespace) error {
	return a.turnNamespaces(list, false, "already enabled", a.scope().EnableNamespaces,
		model.EnableText)
}

// deleteNamespaces asks, then deletes those that are empty. One that is not is refused with the
// command line that deletes it with everything in it.
func (a *App) deleteNamespaces(list []*kagziv1.Namespace) error {
	if len(list) == 0 {
		return errNothingUnder
	}
	var names []string
	for _, n := range list {
		names = append(names, n.GetNamespace())
	}
	if slices.Contains(names, "default") {
		return errors.New("namespace default always exists and cannot be deleted; delete what is in it instead")
	}
	a.confirm(deed{action: a.scope().DeleteNamespaces(names, false, ""), what: naming(names),
		lines: []string{model.DeleteNamespaceText,
			"This cannot be undone."}})
	return nil
}

// turnNamespaces asks about the namespaces whose enabled state is the given one; none is the error
// if there are none.
func (a *App) turnNamespaces(list []*kagziv1.Namespace, enabled bool, none string,
	do func(names []string, reason string) model.Action, lines ...string) error {
	var names []string
	for _, n := range list {
		if n.GetEnabled() == enabled {
			names = append(names, n.GetNamespace())
		}
	}
	switch {
	case len(list) == 0:
		return errNothingUnder
	case len(names) == 0:
		return errors.New(none)
	}
	a.confirm(deed{action: do(names, ""), what: naming(names), lines: lines})
	return nil
}
