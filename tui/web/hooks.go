package web

import (
	"net/http"
	"strings"
	"time"

	g "maragu.dev/gomponents"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	h "github.com/kagzi/kagzi/tui/web/internal/markup"
)

// hooks lists the hooks of the namespace.
func (p *page) hooks() error {
	answer, err := p.API.ListHooks(p.ctx, &kagziv1.ListHooksRequest{Namespace: p.ns, Page: p.pageRequest()})
	if err != nil {
		return err
	}
	list := answer.GetHooks()
	t := table{Table: render.HooksTable(list, p.view()), caption: "Hooks",
		empty: "There are none. A hook starts a run for each delivery of a webhook.",
		key:   func(row int) string { return list[row].GetHookId() }}
	if p.offers(operators) {
		t.more = func(row int) g.Node {
			act := func(do, title string) g.Node {
				return h.A(h.Href(p.at("act", "do", do, "id", list[row].GetName())), h.Text(title),
					h.Span(h.Class("sr"), text(" "+list[row].GetName())))
			}
			return g.Group{act("rotate-hook", "Rotate"), act("delete-hook", "Delete")}
		}
	}
	return p.write(http.StatusOK, p.document("Hooks", "Hooks", h.Div(h.Class("head"), h.H1(h.Text("Hooks")),
		g.If(p.offers(operators), h.A(h.Class("button"), h.Href(p.at("act", "do", "create-hook")), h.Text("New hook")))),
		h.P(h.Text("Deliveries go to "), h.Code(text(p.site())), h.Text(" and the path of the hook, or to the address of "+
			"a proxy before it.")),
		h.Div(h.ID("list"), t.node(), p.pages(answer.GetPage(),
			func(token string) string { return p.at("hooks", "page", token) }))))
}

// site returns the address of the HTTP port as the browser sees it.
func (p *page) site() string {
	scheme := "http://"
	if p.Secure(p.r) {
		scheme = "https://"
	}
	return scheme + p.r.Host + p.Base
}

var secretField = field{name: "secret", label: "Secret", kind: "secret",
	note: "only if the sender makes it, such as Stripe; empty: the server makes one"}

// signatures are how deliveries are signed; the first is the usual one.
var signatures = []string{"github", "stripe", "plain"}

var hookKinds = []*actionKind{
	{name: "create-hook", title: "Create a hook", noun: "hook", least: operators, makes: true,
		fields: func(*page, *question) []field {
			return []field{{name: "name", label: "Name", kind: "text", required: true},
				{name: "type", label: "Type", kind: "text", required: true, note: "of the runs that it starts"},
				{name: "queue", label: "Queue", kind: "text", note: `empty means "default"`},
				{name: "hmac", label: "Signature", kind: "choice", choices: signatures,
					note: "github: X-Hub-Signature-256; stripe: Stripe-Signature; plain: the secret itself, only over TLS"},
				secretField}
		},
		action: func(p *page, q *question) (model.Action, []string, error) {
			r := &kagziv1.CreateHookRequest{Name: q.value("name"), WorkflowType: q.value("type"),
				TaskQueue: q.value("queue"), Secret: q.value("secret"), Signature: kagziv1.HookSignature(
					kagziv1.HookSignature_value["HOOK_SIGNATURE_"+strings.ToUpper(q.value("hmac"))])}
			switch {
			case r.Name == "":
				return model.Action{}, nil, invalid("Name: enter a name for the hook")
			case r.WorkflowType == "":
				return model.Action{}, nil, invalid("Type: enter the type of the workflow")
			case r.Signature == kagziv1.HookSignature_HOOK_SIGNATURE_UNSPECIFIED:
				return model.Action{}, nil, invalid("Signature: want %s", strings.Join(signatures, ", "))
			}
			return p.scope().CreateHook(r), []string{model.CreateHookText}, nil
		}},
	{name: "rotate-hook", title: "Rotate the secret of", noun: "hook", least: operators,
		fields: func(*page, *question) []field {
			return []field{{name: "overlap", label: "Overlap", kind: "text",
				note: "how long the secret from before stays valid, at most 30d; 0s: not at all; empty means 24h"},
				secretField}
		},
		action: func(p *page, q *question) (model.Action, []string, error) {
			if len(q.targets) != 1 {
				return model.Action{}, nil, invalid("works on one hook at a time")
			}
			overlap := 24 * time.Hour
			if text := q.value("overlap"); text != "" {
				var err error
				if overlap, err = query.ParseDuration(text); err != nil || overlap < 0 {
					return model.Action{}, nil, invalid("Overlap: want a time such as 0s, 24h or 30d")
				}
			}
			said := "The secret from before is valid until " + p.now.Add(overlap).UTC().Format(time.RFC3339) + "."
			if overlap == 0 {
				said = "Deliveries with a secret from before are refused from now on."
			}
			return p.scope().RotateHook(q.targets[0], q.value("secret"), overlap), []string{said, model.CreateHookText}, nil
		}},
	{name: "delete-hook", title: "Delete", noun: "hook", least: operators, danger: true,
		action: simple(func(s model.Scope, names []string, _ string) model.Action { return s.DeleteHooks(names) },
			model.DeleteHookText)},
}
