package view

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/view/internal/tables"
	"github.com/kagzi/kagzi/tui/widget"
)

// auditPage shows who changed what in the namespace, or the changes to keys, which belong to none.
type auditPage struct {
	listPage[*kagziv1.AuditEvent]
	ofKeys bool
}

// auditOfKeys is the argument of the view that shows the changes to keys.
const auditOfKeys = "--keys"

func openAudit(a *App, args []string) (page, error) {
	p := &auditPage{}
	if i := slices.Index(args, auditOfKeys); i >= 0 {
		p.ofKeys, args = true, slices.Delete(slices.Clone(args), i, i+1)
	}
	items := model.NewAudit(a.link, func() bool { return p.ofKeys })
	row := func(e *kagziv1.AuditEvent) widget.Row { return a.tables.Audit(e, items.ID(e)) }
	p.listPage = newListPage(a, "audit", "Audit", tables.AuditColumns, items, row)
	p.order = map[string]func(a, b *kagziv1.AuditEvent) int{
		"when": func(a, b *kagziv1.AuditEvent) int { return b.GetAt().AsTime().Compare(a.GetAt().AsTime()) },
	}
	p.empty = func() []widget.Line {
		return []widget.Line{
			widget.TextLine("No changes"+p.where()+".", render.Plain),
			widget.TextLine("What people and keys do is listed here, and what was refused to them.", render.Dim),
		}
	}
	p.tab.Opened = func(string) { a.done(p.open(nil)) }
	if len(args) > 0 {
		p.items.SetFilter(strings.Join(args, " "))
	}
	return p, p.SortBy("when", false)
}

func (p *auditPage) where() string {
	if p.ofKeys {
		return " to keys"
	}
	return fmt.Sprintf(" in namespace %q", p.app.link.Namespace())
}

// Crumb and Title say whose changes these are.
func (p *auditPage) Crumb() string {
	if p.ofKeys {
		return "audit of keys"
	}
	return "audit"
}

func (p *auditPage) Title() string {
	if p.ofKeys {
		return strings.Replace(p.listPage.Title(), "Audit", "Audit of keys", 1)
	}
	return p.listPage.Title()
}

// Failure says what a key needs that may not read the log.
func (p *auditPage) Failure() error {
	err := p.listPage.Failure()
	if p.ofKeys && status.Code(err) == codes.PermissionDenied {
		return fmt.Errorf("%s (a shows the changes in the namespace)", sentence(err))
	}
	return err
}

// Actions open what was changed, and switch to the changes of keys.
func (p *auditPage) Actions() []*Action {
	return []*Action{
		{Name: "open", Keys: []string{"enter"}, Help: "open what was changed", Group: GroupMove, Hint: 1, Run: p.open},
		{Name: "describe", Keys: []string{"d"}, Help: "show all details", Group: GroupView, Hint: 2,
			Run: p.describe},
		{Name: "keys-or-all", Keys: []string{"a"}, Short: "of keys", Group: GroupView, Hint: 3,
			Help: "show the changes to keys, or in the namespace", Run: func([]string) error {
				p.ofKeys = !p.ofKeys
				p.Refresh()
				return nil
			}},
	}
}

// subjects maps the kinds of things that are changed to the views that show one.
var subjects = map[string]string{"run": "run", "schedule": "schedule", "worker": "worker"}

// open opens what was changed; if no view shows that, it shows all details of the change.
func (p *auditPage) open([]string) error {
	e, ok := p.under()
	if !ok {
		return errNothingUnder
	}
	if view := subjects[e.GetSubject()]; view != "" && e.GetSubjectId() != "" {
		return p.app.pushView(view, e.GetSubjectId())
	}
	return p.describe(nil)
}

func (p *auditPage) describe([]string) error {
	e, ok := p.under()
	if !ok {
		return errNothingUnder
	}
	p.app.readPairs("Audit: "+e.GetMethod(), render.AuditPairs(e, p.app.clock.View()))
	return nil
}
