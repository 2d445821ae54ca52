package web

import (
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server"
)

// maxScrapes limits concurrent scrapes.
const maxScrapes = 4

// metricsHandler serves /metrics: to everyone while no call needs a key, then to keys whose role
// may read. A key for some namespaces sees queue names only in these, and sums over all.
type metricsHandler struct {
	server  *server.Server
	scraper *scraper
	all     *prometheus.Registry
	log     *slog.Logger
	slots   chan struct{} // one per scrape in progress
}

func newMetricsHandler(srv *server.Server, version string, log *slog.Logger) *metricsHandler {
	scraper := newScraper(srv, version, log)
	return &metricsHandler{server: srv, scraper: scraper, all: newRegistry(scraper), log: log,
		slots: make(chan struct{}, maxScrapes)}
}

func (d *metricsHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key, err := d.server.KeyOf(r.Context(), r.Header.Get("Authorization"))
	switch {
	case engine.KindOf(err) == engine.KindNoKey:
		w.Header().Set("WWW-Authenticate", `Bearer realm="kagzi"`)
		say(w, http.StatusUnauthorized, err.Error())
		return
	case err != nil:
		say(w, http.StatusServiceUnavailable, err.Error())
		return
	case key != nil && !readsMetrics(key.Role):
		say(w, http.StatusForbidden, "metrics need a key with role viewer, operator or admin")
		return
	}
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	default:
		say(w, http.StatusServiceUnavailable, "too many concurrent scrapes; try again")
		return
	}
	registry := d.all
	if key != nil && len(key.Namespaces) > 0 {
		registry = newRegistry(d.scraper.within(key.Reaches))
	}
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(d.log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError,
	}).ServeHTTP(w, r)
}

// readsMetrics reports whether the role may read metrics.
func readsMetrics(r engine.KeyRole) bool {
	return r == engine.RoleAdmin || r == engine.RoleOperator || r == engine.RoleViewer
}
