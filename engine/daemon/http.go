package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/kagzi/kagzi/engine/server"
)

// httpStop is how long answers under way may take when the server stops.
const httpStop = time.Second

// listenHTTP opens the door for metrics and health, if there is to be one. Where nobody asked for its address and it cannot be had, as
// when another server on this machine has it, the server goes on without.
func (p *process) listenHTTP(ctx context.Context, address string, encrypted bool) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	l, err := listen(ctx, "--http", address)
	if err == nil && encrypted {
		l = tls.NewListener(l, p.certs.Web())
	}
	if err == nil || p.config.Load().Sources["http"] != "" {
		return l, err
	}
	if errors.Is(err, errInUse) {
		p.log.Warn("metrics and health are not served: another program, perhaps a server, listens there; choose another address with --http, or off", "http", address)
	} else {
		p.log.Warn("metrics and health are not served", "error", err)
	}
	return nil, nil
}

// webEncrypted says whether metrics and health are served over TLS: where other machines can reach them, if the server has a certificate.
// On this machine they are plain, so that a health check needs no certificate.
func (p *process) webEncrypted(at *addresses) bool { return p.certs != nil && at.http.exposed }

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

// httpHandler answers /metrics, /healthz and /readyz. Health tells everybody no more than whether the server is well.
func httpHandler(srv *server.Server, version string, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", newMetricsDoor(srv, version, log))
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
	_, _ = io.WriteString(w, plain(text)+"\n") // who does not wait for it does not want it
}
