// Package web serves the metrics and the health of a server over HTTP.
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

// stopLimit is how long answers under way may take when the server stops.
const stopLimit = time.Second

// Serve is the part that serves metrics and health.
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
			_ = h.Close() // who still waits for an answer gets none
		}
		close(stopped)
	}()
	err := h.Serve(l)
	if ctx.Err() == nil {
		return err // the listener broke
	}
	<-stopped
	return nil
}

// handler answers /metrics, /healthz and /readyz. Health tells everybody no more than whether the server is well.
func handler(srv *server.Server, version string, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", newMetricsHandler(srv, version, log))
	mux.Handle("GET /healthz", verdict(srv.Healthy))
	mux.Handle("GET /readyz", verdict(srv.Ready))
	return mux
}

// verdict answers 200, or 503 with what is wrong.
func verdict(of func(context.Context) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := of(r.Context()); err != nil {
			say(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		say(w, http.StatusOK, "ok")
	})
}

// say answers with a line of text.
func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, output.Plain(text)+"\n") // who does not wait for it does not want it
}
