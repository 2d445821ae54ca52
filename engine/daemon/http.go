package daemon

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/kagzi/kagzi/engine/server"
)

const (
	// httpStop is how long answers under way may take when the server stops.
	httpStop = time.Second
	// maxScrapes is how many collectors may ask for the metrics at the same time.
	maxScrapes = 4
)

// listenHTTP opens the door for metrics and health, if there is to be one. Where nobody asked for its address and it cannot be had, as
// when another server on this machine has it, the server goes on without.
func (p *process) listenHTTP(ctx context.Context, address string) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	l, err := listen(ctx, "--http", address)
	if err == nil || p.config.Load().Sources["http"] != "" {
		return l, err
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		p.log.Warn("metrics and health are not served: another program, perhaps a server, listens there; choose another address with --http, or off", "http", address)
	} else {
		p.log.Warn("metrics and health are not served", "error", err)
	}
	return nil, nil
}

// serveHTTP is the part that serves metrics and health.
func serveHTTP(ctx context.Context, l net.Listener, srv *server.Server, version string, log *slog.Logger) error {
	h := &http.Server{
		Handler: httpHandler(srv, version, log), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	stopped := make(chan struct{})
	go func() {
		<-ctx.Done()
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), httpStop)
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

// httpHandler answers /metrics, /healthz and /readyz.
func httpHandler(srv *server.Server, version string, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(newRegistry(srv, version, log), promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: maxScrapes,
	}))
	mux.Handle("GET /healthz", verdict(srv.Healthy))
	mux.Handle("GET /readyz", verdict(srv.Ready))
	return mux
}

// verdict answers 200, or 503 with what is wrong.
func verdict(of func(context.Context) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		text := "ok"
		if err := of(r.Context()); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			text = plain(err.Error())
		}
		_, _ = io.WriteString(w, text+"\n") // who does not wait for it does not want it
	})
}
