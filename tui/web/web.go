// Package web serves the page: HTML that the server writes, with links and forms, so that it works
// without JavaScript. A small script adds live updates and keys. The page calls the API as its
// client does; keys, roles, limits and the audit log are as for everyone.
//
//   - web.go: options, routes, headers, errors. session.go: login, cookies, tokens of forms.
//   - layout.go, parts.go: what all pages share. urls.go: every link; none is made of users' texts.
//   - runs.go, run*.go, diff.go, timeline.go, sdks.go: runs. overview.go, lists.go, schedule*.go, admin.go: the rest.
//   - action*.go: questions before actions, and what they do; once.go lets each act once. bulk.go: many runs.
//   - live.go, assets/page.js: live updates.
//
// HTML comes from gomponents, which builds it of nodes and escapes texts and attributes; package markup
// has the elements in use. It adds 16 KB to the program. html/template would add 4 MB, because it calls
// methods by name, for which the linker keeps all methods of all types. gomponents takes only an
// escaping function of it, so the rest stays out.
package web

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	g "maragu.dev/gomponents"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/internal/clock"
	h "github.com/kagzi/kagzi/tui/web/internal/markup"
)

const (
	// callTime limits the calls of one page: a query that takes longer should be narrowed.
	callTime = 2 * time.Second
	// actTime limits an action.
	actTime = 20 * time.Second
	// maxForm limits the body of a form, in bytes: a payload of a start, and its names.
	maxForm = 4 << 20
)

// Options configures the page.
type Options struct {
	API      tui.API
	Base     string   // base path, "" or "/kagzi"
	Version  string   // of this program
	ReadOnly bool     // no action is offered or taken
	Sessions Sessions // nil: nobody logs in
	Title    string   // of the browser's window; empty: "Kagzi"
	Banner   string   // shown on every page: "read-only copy of kagzi.db"; empty: none
	// Secure reports whether the browser's side of a request uses TLS; nil: the request itself does.
	Secure func(*http.Request) bool
	Now    func() time.Time // nil: time.Now
}

// Sessions are logins.
type Sessions interface {
	// Login changes an API key into a session token.
	Login(ctx context.Context, key string, r *http.Request) (token string, expires time.Time, err error)
	// Identify adds the session's authority to the context for calls of the API, or returns an error
	// when the session is over.
	Identify(ctx context.Context, token string) (context.Context, error)
	// Logout ends a session.
	Logout(ctx context.Context, token string) error
}

// server serves the pages.
type server struct {
	Options
	assets map[string]*asset // by path below /assets/
	script string            // names of the assets
	style  string
	icon   string
	build  string // changes with the program
	lives  streams
	once   once
}

// Handler serves the page under the base path: below /n/ what belongs to a namespace, below /admin/
// what belongs to the server, /assets/, /live, /login and /logout. Serve it behind the checks of hosts and
// origins.
func Handler(o Options) http.Handler {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Secure == nil {
		o.Secure = func(r *http.Request) bool { return r.TLS != nil }
	}
	if o.Title == "" {
		o.Title = "Kagzi"
	}
	o.Base = strings.TrimRight(o.Base, "/")
	s := &server{Options: o, lives: streams{callers: map[string]int{}}, once: once{deeds: map[string]*deed{}}}
	s.loadAssets()
	mux := http.NewServeMux()
	at := func(method, path string, handler http.Handler) { mux.Handle(method+" "+s.Base+path, handler) }
	at("GET", "/assets/{name}", http.HandlerFunc(s.serveAsset))
	at("GET", "/login", http.HandlerFunc(s.loginPage))
	at("POST", "/login", http.HandlerFunc(s.login))
	at("POST", "/logout", http.HandlerFunc(s.logout))
	at("GET", "/{$}", s.show((*page).home))
	for path, show := range map[string]func(*page) error{
		"/n/{ns}/{$}": (*page).overview, "/n/{ns}/runs": (*page).runs, "/n/{ns}/runs/{run}": (*page).run,
		"/n/{ns}/runs/{run}/steps": (*page).runSteps, "/n/{ns}/runs/{run}/timeline": (*page).runTimeline,
		"/n/{ns}/runs/{run}/events": (*page).runEvents, "/n/{ns}/runs/{run}/tree": (*page).runTree,
		"/n/{ns}/runs/{run}/payloads": (*page).runPayloads, "/n/{ns}/runs/{run}/step": (*page).runStep,
		"/n/{ns}/runs/{run}/diff": (*page).runDiff, "/n/{ns}/runs/{run}/download": (*page).download,
		"/n/{ns}/workers": (*page).workers, "/n/{ns}/workers/{worker}": (*page).worker,
		"/n/{ns}/queues": (*page).queues, "/n/{ns}/hooks": (*page).hooks, "/n/{ns}/schedules": (*page).schedules,
		"/n/{ns}/schedules/{schedule}": (*page).schedule, "/n/{ns}/act": (*page).ask,
		"/n/{ns}/bulk": (*page).askBulk, "/n/{ns}/done/{request}": (*page).outcome,
		"/admin/namespaces": (*page).namespaces, "/admin/keys": (*page).keys, "/admin/audit": (*page).audit,
		"/admin/server": (*page).serverFacts,
	} {
		at("GET", path, s.show(show))
	}
	at("POST", "/n/{ns}/act", s.act((*page).perform))
	at("POST", "/n/{ns}/bulk", s.act((*page).performBulk))
	at("GET", "/live", http.HandlerFunc(s.live))
	mux.Handle(s.Base+"/", s.show((*page).missing))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.secureHeaders(w, r)
		if s.Base != "" && r.URL.Path == s.Base {
			http.Redirect(w, r, s.Base+"/", http.StatusSeeOther)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// secureHeaders sets what every answer has. Browsers send Origin: null with a form when a page asks for
// no referrer. Over plain HTTP to another machine nothing else tells where the form was, so there the
// policy is same-origin, which also tells other sites nothing.
func (s *server) secureHeaders(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; "+
		"connect-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	header.Set("Referrer-Policy", "no-referrer")
	if !s.Secure(r) && !loopback(r.Host) {
		header.Set("Referrer-Policy", "same-origin")
	}
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// page is one request for a page.
type page struct {
	*server
	ctx    context.Context
	w      http.ResponseWriter
	r      *http.Request
	cookie string                  // value of the session's cookie
	me     *kagziv1.WhoAmIResponse // nil: the server has no keys
	ns     string                  // of the path; empty on pages of the server
	now    time.Time
	clock  *clock.Clock
	sdks   map[string]string // by worker id: raw text, empty for a worker that does not say; see workerName
}

// show serves a page.
func (s *server) show(show func(*page) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "this path takes GET", http.StatusMethodNotAllowed)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), callTime)
		defer cancel()
		if p := s.enter(ctx, w, r); p != nil {
			if err := show(p); err != nil {
				p.fail(err)
			}
		}
	})
}

// act serves a form: its token is checked before anything is done.
func (s *server) act(act func(*page) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), actTime)
		defer cancel()
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		p := s.enter(ctx, w, r)
		if p == nil {
			return
		}
		err := p.checkForm()
		if err == nil {
			err = act(p)
		}
		if err != nil {
			p.fail(err)
		}
	})
}

// newPage returns a page of the request, before it is known who asks.
func (s *server) newPage(ctx context.Context, w http.ResponseWriter, r *http.Request) *page {
	p := &page{server: s, ctx: ctx, w: w, r: r, ns: r.PathValue("ns"), now: s.Now()}
	p.clock = &clock.Clock{Now: func() time.Time { return p.now }, Style: "relative", Zone: time.UTC}
	return p
}

// enter identifies the caller. It returns nil if the request was answered with the login.
func (s *server) enter(ctx context.Context, w http.ResponseWriter, r *http.Request) *page {
	p := s.newPage(ctx, w, r)
	p.cookie = s.cookieOf(r)
	if s.Sessions != nil {
		identified, err := ctx, errForm
		if p.cookie != "" {
			identified, err = s.Sessions.Identify(ctx, p.cookie)
		}
		if err != nil {
			if strings.HasPrefix(r.Header.Get("Accept"), "text/event-stream") {
				http.Error(w, "the session is over", http.StatusUnauthorized)
				return nil
			}
			http.Redirect(w, r, s.loginURL(r), http.StatusSeeOther)
			return nil
		}
		p.ctx = identified
	} else if p.cookie == "" {
		p.cookie = newSecret()
		s.setCookie(w, r, p.cookie, time.Time{})
	}
	me, err := s.API.WhoAmI(p.ctx, &kagziv1.WhoAmIRequest{})
	if err != nil && status.Code(err) != codes.Unimplemented {
		p.fail(err)
		return nil
	}
	p.me = me
	return p
}

// home leads to the overview of a namespace: the default one, or the first that the key may see.
func (p *page) home() error {
	ns := "default"
	if list := p.me.GetKey().GetNamespaces(); len(list) > 0 {
		ns = list[0]
	}
	http.Redirect(p.w, p.r, p.nsURL(ns, ""), http.StatusSeeOther)
	return nil
}

func (*page) missing() error {
	return status.Error(codes.NotFound, "nothing has this address")
}

// write answers with a document.
func (p *page) write(code int, document g.Node) error {
	var text bytes.Buffer
	if err := document.Render(&text); err != nil {
		return err
	}
	p.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	p.w.WriteHeader(code)
	_, _ = p.w.Write(text.Bytes()) // the browser may have gone
	return nil
}

// httpCodes maps the codes of failed calls.
var httpCodes = map[codes.Code]int{
	codes.NotFound: http.StatusNotFound, codes.InvalidArgument: http.StatusBadRequest,
	codes.PermissionDenied: http.StatusForbidden, codes.Unauthenticated: http.StatusUnauthorized,
	codes.DeadlineExceeded: http.StatusGatewayTimeout, codes.Unavailable: http.StatusServiceUnavailable,
	codes.FailedPrecondition: http.StatusConflict, codes.AlreadyExists: http.StatusConflict,
	codes.ResourceExhausted: http.StatusTooManyRequests, codes.Aborted: http.StatusConflict,
}

// fail answers with an error.
func (p *page) fail(err error) {
	code, known := httpCodes[status.Code(err)]
	if !known {
		code = http.StatusInternalServerError
	}
	title := map[int]string{
		http.StatusNotFound: "Not found", http.StatusForbidden: "Not allowed",
		http.StatusUnauthorized:   "A key is needed",
		http.StatusGatewayTimeout: "That took too long", http.StatusServiceUnavailable: "The server is not available",
		http.StatusConflict: "Not possible now", http.StatusBadRequest: "Not understood",
	}[code]
	if title == "" {
		title = "Something went wrong"
	}
	_ = p.write(code, p.document(title, "", h.H1(h.Text(title)), h.P(h.Class("lead"), text(sentence(err))),
		h.P(h.A(h.Href(p.Base+"/"), h.Text("Back to the overview"))))) // the browser may have gone
}

// sentence says what an error means to people.
func sentence(err error) string {
	s := status.Convert(err)
	switch s.Code() {
	case codes.DeadlineExceeded:
		return "There was no answer within 2 s; narrow it, for example with since:1h or a type."
	case codes.Unauthenticated:
		what, _, _ := strings.Cut(s.Message(), ": give ") // the server's advice is for other clients
		return what
	case codes.Unimplemented:
		return "the server does not offer this"
	}
	return s.Message()
}
