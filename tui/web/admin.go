package web

import (
	"fmt"
	"net/http"
	"strings"

	g "maragu.dev/gomponents"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
	h "github.com/kagzi/kagzi/tui/web/internal/markup"
)

// namespaces lists the namespaces that the caller may see, to choose one and to change them.
func (p *page) namespaces() error {
	answer, err := p.API.ListNamespaces(p.ctx, &kagziv1.ListNamespacesRequest{Page: p.pageRequest()})
	if err != nil {
		return err
	}
	list := answer.GetNamespaces()
	t := table{Table: render.NamespacesTable(list, p.view()), caption: "Namespaces", empty: "There are none.",
		key: func(row int) string { return list[row].GetNamespace() },
		link: func(row, column int) string {
			if column == 0 {
				return p.nsURL(list[row].GetNamespace(), "")
			}
			return ""
		}}
	if p.offers(admins) {
		t.more = func(row int) g.Node {
			name := list[row].GetNamespace()
			act := func(do, title string) g.Node {
				return h.A(h.Href(p.nsURL(name, "act", "do", do, "id", name)), h.Text(title),
					h.Span(h.Class("sr"), h.Text(" "+name)))
			}
			return g.Group{act("edit-namespace", "Edit"),
				g.If(list[row].GetEnabled(), act("disable-namespace", "Disable")),
				g.If(!list[row].GetEnabled(), act("enable-namespace", "Enable")),
				g.If(name != "default", act("delete-namespace", "Delete"))}
		}
	}
	return p.write(http.StatusOK, p.document("Namespaces", "Namespaces", h.Div(h.Class("head"),
		h.H1(h.Text("Namespaces")),
		g.If(p.offers(admins), h.A(h.Class("button"), h.Href(p.nsURL(p.home0(), "act", "do", "create-namespace")),
			h.Text("New namespace")))), h.Div(h.ID("list"), t.node(), p.pages(answer.GetPage(),
		func(token string) string {
			return p.admin("namespaces", "page", token)
		}))))
}

// keys lists the API keys; only admins see them.
func (p *page) keys() error {
	answer, err := p.API.ListKeys(p.ctx, &kagziv1.ListKeysRequest{Page: p.pageRequest()})
	if err != nil {
		return err
	}
	list := answer.GetKeys()
	t := table{Table: render.KeysTable(list, p.view()), caption: "API keys",
		empty: "There are no keys: every call is allowed.",
		key:   func(row int) string { return list[row].GetKeyId() }}
	if p.offers(admins) {
		t.more = func(row int) g.Node {
			if list[row].GetRevokedAt() != nil {
				return nil
			}
			return h.A(h.Href(p.nsURL(p.home0(), "act", "do", "revoke-key", "id", list[row].GetKeyId())),
				h.Text("Revoke"),
				h.Span(h.Class("sr"), text(" "+list[row].GetName())))
		}
	}
	return p.write(http.StatusOK, p.document("Keys", "Keys", h.Div(h.Class("head"), h.H1(h.Text("API keys")),
		g.If(p.offers(admins) && p.keyed(), h.A(h.Class("button"), h.Href(p.nsURL(p.home0(), "act", "do",
			"create-key")),
			h.Text("New key")))), h.Div(h.ID("list"), t.node(), p.pages(answer.GetPage(), func(token string) string {
		return p.admin("keys", "page", token)
	}))))
}

// audit shows who changed what: in a namespace, or with the keys.
func (p *page) audit() error {
	query := p.r.URL.Query()
	request := &kagziv1.ListAuditEventsRequest{Namespace: p.home0(), Page: p.pageRequest()}
	ofKeys := query.Get("of") == "keys"
	if ofKeys {
		request.Namespace = "" // of no namespace
	}
	if id := strings.TrimSpace(query.Get("subject")); id != "" {
		request.SubjectId = &id
	}
	answer, err := p.API.ListAuditEvents(p.ctx, request)
	if err != nil {
		return err
	}
	title := "Changes in " + request.GetNamespace()
	if ofKeys {
		title = "Changes to keys"
	}
	here := func(pairs ...string) string {
		return p.admin("audit", append(pairs, "ns", p.home0(), "subject", query.Get("subject"))...)
	}
	return p.write(http.StatusOK, p.document("Audit log", "Audit", h.H1(text(title)),
		h.Nav(h.Class("chips"), h.Aria("label", "What was changed"),
			h.A(h.Href(here()), g.If(!ofKeys, h.Aria("current", "true")), h.Text("Namespace")),
			g.If(p.may(admins), h.A(h.Href(here("of", "keys")), g.If(ofKeys, h.Aria("current", "true")),
				h.Text("Keys")))),
		h.Form(h.Method("get"), h.Action(p.admin("audit")), h.Class("filter"), h.Role("search"),
			h.Input(h.Type("hidden"), h.Name("ns"), h.Value(p.home0())), g.If(ofKeys, h.Input(h.Type("hidden"),
				h.Name("of"), h.Value("keys"))),
			h.Label(h.Class("sr"), h.For("q"), h.Text("Id of the changed object")),
			h.Input(h.ID("q"), h.Name("subject"), h.Type("search"), h.Value(clean(query.Get("subject"))),
				h.Placeholder("id of a run, schedule …")),
			h.Button(h.Type("submit"), h.Text("Filter"))),
		h.Div(h.ID("list"), table{Table: render.ChangesTable(answer.GetEvents(), p.view()), caption: title,
			empty: "Nobody has changed anything.", link: func(row, column int) string {
				if e := answer.GetEvents()[row]; column == 3 && e.GetSubject() == "run" {
					return RunPath(p.Base, p.home0(), e.GetSubjectId())
				}
				return ""
			}}.node(), p.pages(answer.GetPage(), func(token string) string {
			return here("page", token, "of", query.Get("of"))
		}))))
}

// serverFacts shows what the server reports about itself.
func (p *page) serverFacts() error {
	info, err := p.API.GetServerInfo(p.ctx, &kagziv1.GetServerInfoRequest{})
	if err != nil {
		return err
	}
	body := g.Group{h.H1(h.Text("Server")), facts(render.ServerPairs(info, p.view()), nil)}
	for _, w := range info.GetWarnings() {
		body = append(body, h.P(h.Class("waiting"), h.Span(h.Aria("hidden", "true"), h.Text("▲ ")), text(w)))
	}
	var sections []string
	bySection := map[string][]render.Pair{}
	for _, f := range info.GetFacts() {
		if bySection[f.GetSection()] == nil {
			sections = append(sections, f.GetSection())
		}
		value := f.GetValue()
		if f.GetSource() != "" {
			value += " (" + f.GetSource() + ")"
		}
		bySection[f.GetSection()] = append(bySection[f.GetSection()], render.Pair{Label: render.Safe(f.GetName()),
			Lines: []string{render.Safe(value)}})
	}
	for i, name := range sections {
		body = append(body, section(fmt.Sprintf("facts-%d", i), render.Safe(strings.ToUpper(name[:min(1, len(name))])+
			name[min(1, len(name)):]), facts(bySection[name], nil)))
	}
	if key := p.me.GetKey(); key != nil {
		body = append(body, section("key", "Your key", facts(render.KeyPairs(key, p.view()), nil)))
	}
	return p.write(http.StatusOK, p.document("Server", "Server", body))
}
