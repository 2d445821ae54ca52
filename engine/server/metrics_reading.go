package server

import (
	"context"
	"errors"
	"time"

	"github.com/kagzi/kagzi/engine"
)

const (
	// maxReadNamespaces is how many namespaces, by name, a reading looks into; each costs a query.
	maxReadNamespaces = 100
	// readingLimit bounds a reading. Of a database that says nothing the keys were asked for before, for keyringTime, and both together are to
	// stay below the ten seconds that a collector usually waits.
	readingLimit = 6 * time.Second
	// healthLimit bounds how long the store may take to say that it is well; trouble must show within 5 s.
	healthLimit = 4 * time.Second
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

// Read counts what the store holds. All who ask within a while, as long as counting may cost a scan, share one answer.
func (s *Server) Read(ctx context.Context) (Reading, error) {
	ctx, cancel := context.WithTimeout(ctx, readingLimit)
	defer cancel()
	return s.reading.get(ctx, func() (Reading, error) { return s.read(ctx) })
}

func (s *Server) read(ctx context.Context) (Reading, error) {
	r := Reading{At: s.now()}
	var err error
	if r.Stats, err = s.countAll(ctx, ""); err != nil {
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

// Healthy is nil while the store can make writes durable; otherwise it says why not, in one sentence without a secret.
func (s *Server) Healthy(ctx context.Context) error { return boundedly(ctx, s.storeTrouble) }

// Ready is nil while the server can do its work: Healthy, and it is not stopping. It says what HealthCheck says.
func (s *Server) Ready(ctx context.Context) error { return boundedly(ctx, s.trouble) }

// boundedly asks for trouble, and takes silence for it.
func boundedly(ctx context.Context, trouble func(context.Context) string) error {
	ctx, cancel := context.WithTimeout(ctx, healthLimit)
	defer cancel()
	if why := trouble(ctx); why != "" {
		return errors.New(why)
	}
	return nil
}
