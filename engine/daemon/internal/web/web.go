// Package web serves the HTTP port of a server: the API, the page, hooks, agents, metrics and health.
//
//   - web.go: what is served at which path. proxy.go: requests through proxies, and the base path.
//   - sessions.go: logins of the page.
//   - metrics.go, metrics_handler.go, scrape.go: metrics.
package web

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/daemon/internal/output"
	"github.com/kagzi/kagzi/engine/server"
	"github.com/kagzi/kagzi/engine/server/rest"
)

// stopLimit limits how long answers in progress may take when the server stops. The server has ended
// long polls and streams before.
const stopLimit = 5 * time.Second

// Options configures what is served.
type Options struct {
	Gate    rest.GateOptions
	Version string
	Log     *slog.Logger
	// Agents returns the handler of /mcp, which calls the server by a connection; nil: there is none.
	Agents func(grpc.ClientConnInterface) http.Handler
	// Page returns the page below the base path; nil: there is none. It is asked twice: without
	// logins, for a server that needs no key, and with.
	Page    func(Page) http.Handler
	Base    string   // path before all others, such as "/kagzi"; empty: none
	Proxies []string // networks whose X-Forwarded headers are believed, such as "10.0.0.0/8"
}

// Page is what the page needs of the server.
type Page struct {
	Conn     grpc.ClientConnInterface
	Base     string
	Sessions *Sessions // nil: nobody logs in
	// Secure reports whether the browser's side of a request uses TLS.
	Secure func(*http.Request) bool
}

// Serve serves the API, metrics and health until ctx ends.
func Serve(ctx context.Context, l net.Listener, srv *server.Server, o Options) error {
	handler, err := handler(srv, o)
	if err != nil {
		return err
	}
	h := rest.NewHTTPServer(handler, o.Log)
	stopped := make(chan struct{})
	go func() {
		<-ctx.Done()
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
		defer cancel()
		if h.Shutdown(bounded) != nil {
			_ = h.Close() // abort the answers that are still in progress
		}
		close(stopped)
	}()
	err = h.Serve(l)
	if ctx.Err() == nil {
		return err // the listener failed
	}
	<-stopped
	return nil
}

// formType is the media type of the page's forms.
const formType = "application/x-www-form-urlencoded"

// handler serves everything below the base path, and /healthz and /readyz, which probes ask for behind
// no proxy, at the root too. Hooks are for those who sign; all else is behind a gate. It uses no
// http.ServeMux for the API, because that changes paths with dots and doubled slashes.
func handler(srv *server.Server, o Options) (http.Handler, error) {
	direct := srv.Direct()
	o.Gate.Keyless, o.Gate.Log = direct.Keyless, o.Log
	gate, err := rest.NewGate(o.Gate)
	if err != nil {
		return nil, err
	}
	calls, err := rest.New(direct, gate, o.Log)
	if err != nil {
		return nil, err
	}
	var proxies []netip.Prefix
	for _, text := range o.Proxies {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, err
		}
		proxies = append(proxies, network)
	}
	api, none := gate.Handler(calls, rest.Types...), gate.Handler(http.HandlerFunc(gate.NotFound))
	agents, page := none, none
	if o.Agents != nil {
		agents = gate.Handler(calls.Door(o.Agents(direct)), "application/json")
	}
	if o.Page != nil {
		page = gate.Handler(pageOf(direct, o), formType)
	}
	health := http.NewServeMux()
	health.Handle("GET /healthz", verdict(srv.Healthy, nil))
	health.Handle("GET /readyz", verdict(srv.Ready, srv.Notice))
	hooks := gate.Signed(rest.Hooks(direct, o.Log))
	mux := http.NewServeMux()
	mux.Handle("GET /openapi.json", gate.Handler(rest.Description()))
	mux.Handle("GET /openapi", gate.Handler(rest.Description()))
	mux.Handle("GET /metrics", gate.Handler(newMetricsHandler(srv, o.Version, o.Log)))
	inside := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/healthz", "/readyz":
			health.ServeHTTP(w, r)
		case "/metrics", "/openapi.json", "/openapi":
			mux.ServeHTTP(w, r)
		case "/mcp":
			agents.ServeHTTP(w, r)
		default:
			switch path := r.URL.EscapedPath(); {
			case strings.HasPrefix(path, "/v1/"):
				api.ServeHTTP(w, r)
			case strings.HasPrefix(path, engine.HookPath):
				hooks.ServeHTTP(w, r)
			case isPage(r.URL.Path):
				page.ServeHTTP(w, r)
			default:
				none.ServeHTTP(w, r)
			}
		}
	})
	outside := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/healthz", "/readyz":
			health.ServeHTTP(w, r)
		default:
			none.ServeHTTP(w, r)
		}
	})
	return behindProxy(below(o.Base, inside, outside), proxies), nil
}

// isPage reports whether a path is one of the page's.
func isPage(path string) bool {
	switch path {
	case "/", "/login", "/logout", "/live":
		return true
	}
	return strings.HasPrefix(path, "/n/") || strings.HasPrefix(path, "/admin/") || strings.HasPrefix(path, "/assets/")
}

// pageOf returns the page, with logins while calls need a key. The page knows its base path itself, so
// it gets the whole path.
func pageOf(direct server.Direct, o Options) http.Handler {
	open := o.Page(Page{Conn: direct, Base: o.Base, Secure: secure})
	keyed := o.Page(Page{Conn: direct, Base: o.Base, Secure: secure, Sessions: &Sessions{direct}})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		whole, at := *r, *r.URL
		at.Path, at.RawPath = o.Base+at.Path, o.Base+at.EscapedPath()
		whole.URL = &at
		if direct.Keyless(r.Context()) {
			open.ServeHTTP(w, &whole)
			return
		}
		keyed.ServeHTTP(w, &whole)
	})
}

// verdict answers 200, or 503 with the error. A notice is added to a 200; nil: there is none.
func verdict(of func(context.Context) error, notice func() string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := of(r.Context()); err != nil {
			say(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		text := "ok"
		if notice != nil {
			if more := notice(); more != "" {
				text += ": " + more
			}
		}
		say(w, http.StatusOK, text)
	})
}

// say answers with a line of text.
func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, output.Plain(text)+"\n") // the client has gone
}
