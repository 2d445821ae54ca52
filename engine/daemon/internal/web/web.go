// Package web serves the HTTP port of a server: the API, agents, metrics and health.
package web

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc"

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
	// Page returns the handler of the page for browsers, which calls the server by a connection; nil: there
	// is none.
	Page func(grpc.ClientConnInterface) http.Handler
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

// handler serves /healthz and /readyz to everyone, and behind a gate the API, /mcp, the page and /metrics. It uses
// no http.ServeMux for the API, because that changes paths with dots and doubled slashes.
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
	api, none := gate.Handler(calls, rest.Types...), gate.Handler(http.HandlerFunc(gate.NotFound))
	agents := none
	if o.Agents != nil {
		agents = gate.Handler(calls.Door(o.Agents(direct)), "application/json")
	}
	page := none
	if o.Page != nil {
		page = gate.Handler(o.Page(direct), "application/x-www-form-urlencoded")
	}
	mux := http.NewServeMux()
	mux.Handle("GET /openapi.json", gate.Handler(rest.Description()))
	mux.Handle("GET /openapi", gate.Handler(rest.Description()))
	mux.Handle("GET /metrics", gate.Handler(newMetricsHandler(srv, o.Version, o.Log)))
	mux.Handle("GET /healthz", verdict(srv.Healthy, nil))
	mux.Handle("GET /readyz", verdict(srv.Ready, srv.Notice))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/metrics", "/healthz", "/readyz", "/openapi.json", "/openapi":
			mux.ServeHTTP(w, r)
			return
		case "/mcp":
			agents.ServeHTTP(w, r)
			return
		}
		if strings.HasPrefix(r.URL.EscapedPath(), "/v1/") {
			api.ServeHTTP(w, r)
			return
		}
		if isPage(r.URL.Path) {
			page.ServeHTTP(w, r)
			return
		}
		none.ServeHTTP(w, r)
	}), nil
}

// isPage reports whether a path is one of the page for browsers.
func isPage(path string) bool {
	switch path {
	case "/", "/login", "/logout":
		return true
	}
	return strings.HasPrefix(path, "/n/") || strings.HasPrefix(path, "/admin/") || strings.HasPrefix(path, "/assets/")
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
