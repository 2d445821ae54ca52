package web

import (
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server"
)

// maxScrapes is how many collectors may ask for the metrics at the same time.
const maxScrapes = 4

// metricsHandler answers /metrics: for everybody as long as no call needs a key, then for keys with
// a role that reads. A key for some namespaces gets the names of the queues in these only, and the
// sums over all.
type metricsHandler struct {
	server  *server.Server
	scraper *scraper
	all     *prometheus.Registry
	log     *slog.Logger
	slots   chan struct{} // holds one for each answer under way
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
		say(w, http.StatusForbidden, "metrics are for keys with the role viewer, operator or admin")
		return
	}
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	default:
		say(w, http.StatusServiceUnavailable, "too many collectors ask for the metrics at once; try again")
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

// readsMetrics says whether keys with the role may read metrics.
func readsMetrics(r engine.KeyRole) bool {
	return r == engine.RoleAdmin || r == engine.RoleOperator || r == engine.RoleViewer
}
