package daemon

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

// metricsDoor answers /metrics: as long as no call needs a key, for everybody, and then for the keys of those who look at things. Who may
// look at some namespaces only learns the names of their queues, and the sums over all.
type metricsDoor struct {
	server  *server.Server
	scraper *scraper
	all     *prometheus.Registry
	log     *slog.Logger
	turns   chan struct{} // holds one for each answer under way
}

func newMetricsDoor(srv *server.Server, version string, log *slog.Logger) *metricsDoor {
	scraper := newScraper(srv, version, log)
	return &metricsDoor{server: srv, scraper: scraper, all: newRegistry(scraper), log: log, turns: make(chan struct{}, maxScrapes)}
}

func (d *metricsDoor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key, err := d.server.KeyOf(r.Context(), r.Header.Get("Authorization"))
	switch {
	case engine.KindOf(err) == engine.KindNoKey:
		w.Header().Set("WWW-Authenticate", `Bearer realm="kagzi"`)
		say(w, http.StatusUnauthorized, err.Error())
		return
	case err != nil:
		say(w, http.StatusServiceUnavailable, err.Error())
		return
	case key != nil && !looks(key.Role):
		say(w, http.StatusForbidden, "metrics are for keys with the role viewer, operator or admin")
		return
	}
	select {
	case d.turns <- struct{}{}:
		defer func() { <-d.turns }()
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

// looks says whether keys with the role are for looking at a server.
func looks(r engine.KeyRole) bool {
	return r == engine.RoleAdmin || r == engine.RoleOperator || r == engine.RoleViewer
}
