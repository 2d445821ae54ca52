package web

import (
	"cmp"
	"slices"
	"strings"

	g "maragu.dev/gomponents"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
	h "github.com/kagzi/kagzi/tui/web/internal/markup"
)

// tab is a page in the navigation.
type tab struct {
	name, key string // key opens it after g
	url       string
}

// tabs returns the navigation: what belongs to a namespace, then what belongs to the server.
func (p *page) tabs() []tab {
	ns := p.home0()
	list := []tab{
		{"Overview", "o", p.nsURL(ns, "")}, {"Runs", "r", p.nsURL(ns, "runs")},
		{"Schedules", "s", p.nsURL(ns, "schedules")}, {"Workers", "w", p.nsURL(ns, "workers")},
		{"Queues", "q", p.nsURL(ns, "queues")}, {"Hooks", "h", p.nsURL(ns, "hooks")},
		{"Namespaces", "n", p.admin("namespaces")},
	}
	if !p.monitors() { // the role sees neither workers nor hooks
		list = slices.DeleteFunc(list, func(t tab) bool { return t.key == "w" || t.key == "h" })
	} else {
		list = append(list, tab{"Audit", "a", p.admin("audit", "ns", ns)})
	}
	if p.may(admins) && p.keyed() {
		list = append(list, tab{"Keys", "k", p.admin("keys")})
	}
	return append(list, tab{"Server", "i", p.admin("server")})
}

// home0 returns the namespace that links of the navigation lead to.
func (p *page) home0() string { return cmp.Or(p.ns, p.r.URL.Query().Get("ns"), "default") }

// bare returns a document without navigation.
func (p *page) bare(title string, body ...g.Node) g.Node {
	return p.html(title, h.Main(append([]g.Node{h.ID("main"), h.Class("bare")}, body...)...))
}

// html returns a document.
func (p *page) html(title string, body ...g.Node) g.Node {
	live := ""
	if p.ns != "" {
		live = p.Base + "/live"
	}
	return h.Doctype(h.HTML(h.Lang("en"), h.Data("build", p.build), h.Data("live", live), h.Data("ns", p.ns), h.Data("base", p.Base+"/"),
		h.Data("now", p.now.UTC().Format("2006-01-02T15:04:05Z")),
		h.Head(
			h.Meta(h.Charset("utf-8")), h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1")),
			h.Meta(h.Name("color-scheme"), h.Content("light dark")),
			h.TitleEl(text(title+" · "+p.Title)),
			h.Link(h.Rel("icon"), h.Type("image/svg+xml"), h.Href(p.assetURL(p.icon))),
			h.Link(h.Rel("stylesheet"), h.Href(p.assetURL(p.style))),
			h.Script(h.Src(p.assetURL(p.script)), h.Defer()),
		),
		h.Body(body...)))
}

// document returns a page with navigation. current is the name of its tab.
func (p *page) document(title, current string, body ...g.Node) g.Node {
	return p.html(title,
		h.A(h.Class("skip"), h.Href("#main"), h.Text("Skip to the content")),
		h.Header(h.Class("top"),
			h.A(h.Class("brand"), h.Href(p.Base+"/"), h.Text("Kagzi")),
			g.If(p.ns != "", h.A(h.Class("ns"), h.Href(p.admin("namespaces")), h.Title("Namespace; choose another"),
				text(p.ns))),
			h.Nav(h.Aria("label", "Pages"), g.Map(p.tabs(), func(t tab) g.Node {
				return h.A(h.Href(t.url), h.Data("go", t.key),
					g.If(t.name == current, h.Aria("current", "page")), h.Text(t.name))
			})),
			h.Div(h.Class("state"),
				h.Span(h.ID("live"), h.Class("live"), h.Role("status")),
				h.Button(h.ID("pause"), h.Type("button"), h.Class("quiet"), h.Is("hidden"), h.Text("Pause")),
				p.who(),
			)),
		h.Aside(h.Aria("label", "About this page"), g.If(p.Banner != "", h.P(h.Class("banner"), text(p.Banner))),
			h.P(h.ID("renewed"), h.Class("banner"), h.Is("hidden"), h.Text("The server has a new version. "),
				h.A(h.Href(""), h.Text("Reload the page")))),
		h.Main(append([]g.Node{h.ID("main"), h.TabIndex("-1"), p.flash()}, body...)...),
		helpDialog(p.tabs()),
	)
}

// who shows whose session it is, and ends it.
func (p *page) who() g.Node {
	if p.Sessions == nil {
		return nil
	}
	k := p.me.GetKey()
	return h.Form(h.Method("post"), h.Action(p.Base+"/logout"), h.Class("who"), p.hidden(),
		h.Span(h.Title("Your key and its role"), text(k.GetName()+" ("+render.KeyRole(k.GetRole())+")")),
		h.Button(h.Type("submit"), h.Class("quiet"), h.Text("Log out")))
}

// helpDialog lists the keys.
func helpDialog(tabs []tab) g.Node {
	keys := [][2]string{
		{"/", "go to the filter"}, {"j k", "go down and up the rows"}, {"enter", "open the row"},
		{"x", "mark the row"}, {"esc", "leave the field; close this"}, {"u", "go up a level"},
		{"p", "pause or continue live updates"}, {"?", "show this"},
	}
	for _, t := range tabs {
		keys = append(keys, [2]string{"g " + t.key, "open " + strings.ToLower(t.name)})
	}
	return h.El("dialog", h.ID("help"), h.Aria("label", "Keys"), h.H2(h.Text("Keys")),
		h.Dl(g.Map(keys, func(k [2]string) g.Node {
			return g.Group{h.Dt(h.El("kbd", h.Text(k[0]))), h.Dd(h.Text(k[1]))}
		})),
		h.Form(h.Method("dialog"), h.Button(h.Type("submit"), h.Text("Close"))))
}

// Roles by what they may change; each includes the ones below it.
const (
	admins    = kagziv1.KeyRole_KEY_ROLE_ADMIN
	operators = kagziv1.KeyRole_KEY_ROLE_OPERATOR
	clients   = kagziv1.KeyRole_KEY_ROLE_CLIENT
)

// may reports whether the caller's role includes another. Without keys everything is allowed.
func (p *page) may(least kagziv1.KeyRole) bool {
	key := p.me.GetKey()
	return key == nil || key.GetRole() <= least
}

// keyed reports whether the server asks for keys.
func (p *page) keyed() bool { return p.me.GetKeysRequired() }

// monitors reports whether the caller sees workers and the audit log: clients do not.
func (p *page) monitors() bool {
	return p.me.GetKey() == nil || p.me.GetKey().GetRole() != clients
}

// offers reports whether actions that need a role are offered.
func (p *page) offers(least kagziv1.KeyRole) bool { return !p.ReadOnly && p.may(least) }
