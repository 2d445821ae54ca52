package web

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/daemon/internal/output"
	"github.com/kagzi/kagzi/engine/server"
)

// newRegistry returns the server's own metrics, those of the Go runtime and those of the process.
// Values are computed only when scraped.
func newRegistry(of *scraper) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(of, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// figures is the source of the metrics.
type figures interface {
	Metrics() server.Metrics
	Read(context.Context) (server.Reading, error)
	Healthy(context.Context) error
}

// scraper collects a server's metrics when scraped.
type scraper struct {
	of      figures
	version string
	log     *slog.Logger
	failing *failing
	places  *places
	reaches func(namespace string) bool // nil: all
}

func newScraper(of figures, version string, log *slog.Logger) *scraper {
	return &scraper{of: of, version: version, log: log, failing: &failing{}, places: &places{}}
}

// within returns a scraper for a caller that may see names in some namespaces only.
func (c *scraper) within(reaches func(namespace string) bool) *scraper {
	narrow := *c
	narrow.reaches = reaches
	return &narrow
}

// failing is whether the last read of the database failed.
type failing struct {
	sync.Mutex
	yes bool
}

// scrape is the data of one answer.
type scrape struct {
	counted server.Metrics
	reading server.Reading
	read    bool // whether reading is set
	queues  []server.QueueReading
	healthy bool
	version string
}

// age returns how long something has been due, in seconds.
func (s *scrape) age(due time.Time) float64 {
	if due.IsZero() || due.After(s.reading.At) {
		return 0
	}
	return s.reading.At.Sub(due).Seconds()
}

// Describe implements prometheus.Collector.
func (c *scraper) Describe(to chan<- *prometheus.Desc) {
	for i := range allMetrics {
		to <- allMetrics[i].desc
	}
}

var allMetrics = slices.Concat(counted, stored)

// Collect implements prometheus.Collector. The store limits the time of its own answers.
func (c *scraper) Collect(to chan<- prometheus.Metric) {
	ctx := context.Background()
	s := &scrape{counted: c.of.Metrics(), version: c.version}
	// In parallel: if the database hangs, both answers are slow, and one after the other would
	// exceed the timeout of the collector.
	healthy := make(chan bool, 1)
	go func() { healthy <- c.of.Healthy(ctx) == nil }()
	reading, err := c.of.Read(ctx)
	s.healthy = <-healthy
	c.note(err)
	if s.read = err == nil; s.read {
		s.reading, s.queues = reading, c.places.assign(reading.Queues)
		if c.reaches != nil {
			s.queues = slices.DeleteFunc(s.queues, func(q server.QueueReading) bool { return !c.reaches(q.Namespace) })
		}
	}
	for i := range allMetrics {
		m := &allMetrics[i]
		switch {
		case m.held && !s.read:
		case m.values == nil:
			h := m.spread(&s.counted)
			to <- prometheus.MustNewConstHistogram(m.desc, h.count, h.sum, h.buckets)
		default:
			m.values(s, func(value float64, labels ...string) {
				to <- prometheus.MustNewConstMetric(m.desc, m.kind, value, labels...)
			})
		}
	}
}

// note logs when reading the database starts to fail, and when it works again.
func (c *scraper) note(err error) {
	c.failing.Lock()
	defer c.failing.Unlock()
	switch {
	case err != nil && !c.failing.yes:
		c.log.Warn("cannot read the database for metrics; leaving its metrics out", "error", err)
	case err == nil && c.failing.yes:
		c.log.Info("reading the database for metrics works again")
	}
	c.failing.yes = err != nil
}

const (
	// maxPlaces is how many queues have metrics of their own, because users can create any number
	// of queues.
	maxPlaces = 200
	// others stands for the remaining queues. It is not a valid queue name.
	others = "(others)"
)

// places are the queues that have metrics of their own. A queue keeps its place while it exists, so
// that its graph does not break off when others overtake it. Free places go to the queues with the
// most runs.
type places struct {
	mu   sync.Mutex
	held map[placeKey]bool
}

type placeKey struct{ namespace, queue string }

// assign returns the queues with a place, and the others as one.
func (p *places) assign(queues []server.QueueReading) []server.QueueReading {
	p.mu.Lock()
	defer p.mu.Unlock()
	order := slices.Clone(queues)
	open := func(q *server.QueueReading) int64 { return q.Pending + q.Running + q.Sleeping }
	slices.SortFunc(order, func(a, b server.QueueReading) int {
		return cmp.Or(
			-cmp.Compare(oneIf(p.held[placeKey{a.Namespace, a.Queue}]), oneIf(p.held[placeKey{b.Namespace, b.Queue}])),
			-cmp.Compare(open(&a), open(&b)), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Queue, b.Queue))
	})
	placed := order[:min(len(order), maxPlaces)]
	p.held = make(map[placeKey]bool, len(placed))
	for i := range placed {
		p.held[placeKey{placed[i].Namespace, placed[i].Queue}] = true
		placed[i].Namespace, placed[i].Queue = output.Plain(placed[i].Namespace), output.Plain(placed[i].Queue)
	}
	if len(order) > maxPlaces {
		return append(placed, together(order[maxPlaces:]))
	}
	return placed
}

// together merges queues into one.
func together(queues []server.QueueReading) server.QueueReading {
	sum := server.QueueReading{Namespace: others,
		QueueDepth: engine.QueueDepth{Queue: others, Unserved: map[string]int64{}}}
	for i := range queues {
		q := &queues[i]
		sum.Pending += q.Pending
		sum.Running += q.Running
		sum.Sleeping += q.Sleeping
		sum.OnlineWorkers += q.OnlineWorkers
		if !q.OldestDue.IsZero() && (sum.OldestDue.IsZero() || q.OldestDue.Before(sum.OldestDue)) {
			sum.OldestDue = q.OldestDue
		}
		for _, n := range q.Unserved {
			sum.Unserved[others] += n
		}
	}
	return sum
}
