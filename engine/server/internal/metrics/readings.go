package metrics

import (
	"context"
	"time"

	"github.com/kagzi/kagzi/engine"
)

const (
	// maxReadNamespaces is how many namespaces, by name, a reading looks into; each costs a query.
	maxReadNamespaces = 100
	// readingLimit bounds a reading. Of a database that says nothing the keys were asked for
	// before, for keyringTime, and both together are to stay below the ten seconds that a collector
	// usually waits.
	readingLimit = 6 * time.Second
)

// Reading is what the store holds, as of At.
type Reading struct {
	At          time.Time // by the store's clock
	Stats       engine.Stats
	Queues      []QueueReading // of at most 100 namespaces, by namespace and name
	Description engine.Description
}

// QueueReading is what waits and runs in a queue.
type QueueReading struct {
	Namespace string
	engine.QueueDepth
}

// Store is what is counted of the store.
type Store interface {
	Now() time.Time
	GetStats(ctx context.Context, namespace string, now time.Time) (engine.Stats, error)
	Describe(context.Context) (engine.Description, error)
	ListNamespaces(context.Context, engine.Page) ([]engine.Namespace, engine.PageInfo, error)
	GetQueueDepth(ctx context.Context, namespace, queue string, now time.Time) ([]engine.QueueDepth, error)
}

// Readings counts what a store holds. As counting may cost a scan, all who ask within a while share one answer.
type Readings struct {
	store Store
	stats statsCache
	all   cached[Reading]
}

func NewReadings(store Store) *Readings {
	return &Readings{store: store, stats: statsCache{places: make(chan struct{}, statsAtOnce)}}
}

// Stats returns the counts of a namespace, "" of all, as of a moment ago.
func (s *Readings) Stats(ctx context.Context, namespace string) (engine.Stats, error) {
	return s.stats.get(ctx, namespace, func() (engine.Stats, error) {
		return s.store.GetStats(ctx, namespace, s.store.Now())
	})
}

// Read counts what the store holds.
func (s *Readings) Read(ctx context.Context) (Reading, error) {
	ctx, cancel := context.WithTimeout(ctx, readingLimit)
	defer cancel()
	return s.all.get(ctx, func() (Reading, error) { return s.read(ctx) })
}

func (s *Readings) read(ctx context.Context) (Reading, error) {
	r := Reading{At: s.store.Now()}
	var err error
	if r.Stats, err = s.Stats(ctx, ""); err != nil {
		return Reading{}, err
	}
	if r.Description, err = s.store.Describe(ctx); err != nil {
		return Reading{}, err
	}
	namespaces, _, err := s.store.ListNamespaces(ctx, engine.Page{Limit: maxReadNamespaces})
	if err != nil {
		return Reading{}, err
	}
	for i := range namespaces {
		queues, err := s.store.GetQueueDepth(ctx, namespaces[i].Name, "", r.At)
		if err != nil {
			return Reading{}, err
		}
		for _, q := range queues {
			r.Queues = append(r.Queues, QueueReading{Namespace: namespaces[i].Name, QueueDepth: q})
		}
	}
	return r, nil
}
