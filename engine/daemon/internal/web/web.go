// Package web serves a server's metrics and health over HTTP.
package web

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/kagzi/kagzi/engine/daemon/internal/output"
	"github.com/kagzi/kagzi/engine/server"
)

// stopLimit limits how long answers in progress may take when the server stops.
const stopLimit = time.Second

// Serve serves metrics and health until ctx ends.
func Serve(ctx context.Context, l net.Listener, srv *server.Server, version string, log *slog.Logger) error {
	h := &http.Server{
		Handler: handler(srv, version, log), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second,
		IdleTimeout:  2 * time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
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
	err := h.Serve(l)
	if ctx.Err() == nil {
		return err // the listener failed
	}
	<-stopped
	return nil
}

// handler serves /metrics, /healthz and /readyz. Health only tells whether the server is well.
func handler(srv *server.Server, version string, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", newMetricsHandler(srv, version, log))
	mux.Handle("GET /healthz", verdict(srv.Healthy, nil))
	mux.Handle("GET /readyz", verdict(srv.Ready, srv.Notice))
	return mux
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
