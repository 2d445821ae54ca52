package metrics

import (
	"context"
	"time"

	"github.com/kagzi/kagzi/engine"
)

const (
	// maxReadNamespaces limits the namespaces of a reading, by name; each costs a query.
	maxReadNamespaces = 100
	// readingLimit limits the time of a reading. If the database does not answer, the check of the
	// key takes up to 3 s before; both together must stay below the 10 s for which a collector
	// usually waits.
	readingLimit = 6 * time.Second
)

// Reading counts what the store holds at one moment.
type Reading struct {
	At          time.Time // by the store's clock
	Stats       engine.Stats
	Queues      []QueueReading // of at most 100 namespaces, by namespace and name
	Description engine.Description
}

// QueueReading counts the open runs of a queue.
type QueueReading struct {
	Namespace string
	engine.QueueDepth
}

// Store is the part of a store that Readings needs.
type Store interface {
	Now() time.Time
	GetStats(ctx context.Context, namespace string, now time.Time) (engine.Stats, error)
	Describe(context.Context) (engine.Description, error)
	ListNamespaces(context.Context, engine.Page) ([]engine.Namespace, engine.PageInfo, error)
	GetQueueDepth(ctx context.Context, namespace, queue string, now time.Time) ([]engine.QueueDepth, error)
}

// Readings counts what a store holds. Because that may cost a scan, calls within a short time share
// one answer.
type Readings struct {
	store Store
	stats statsCache
	all   cached[Reading]
}

// NewReadings returns readings of a store.
func NewReadings(store Store) *Readings {
	return &Readings{store: store, stats: statsCache{places: make(chan struct{}, statsAtOnce)}}
}

// Stats returns the counts of a namespace, or of all for "". They may be slightly old.
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
