package snippets

import (
	"context"
	"errors"
	"sync"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

// NewWorker makes a worker for a container: what it takes, how much at once, and what people see of
// it.
func NewWorker(version, zone string) *kagzi.Worker {
	w := kagzi.NewWorker(kagzi.WorkerOptions{
		Queue:         "orders",
		Queues:        []string{"orders-bulk"}, // when there is nothing in the first
		MaxConcurrent: 50,
		TypeLimits:    map[string]int{"shipping": 5}, // over all workers of the queue
		Version:       version,
		Labels:        map[string]string{"zone": zone},
		Capabilities:  map[string]string{"tool:ffmpeg": "7"},
		DrainTimeout:  25 * time.Second, // less than the platform waits before it kills
	})
	kagzi.Handle(w, "order", Prepare)
	kagzi.Handle(w, "shipping", Prepare)
	return w
}

// RunIn works in several namespaces with a worker each, until ctx ends or one of them is refused.
func RunIn(ctx context.Context, namespaces []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(namespaces))
	var all sync.WaitGroup
	for i, namespace := range namespaces {
		w := kagzi.NewWorker(kagzi.WorkerOptions{Namespace: namespace, Queue: "orders"})
		kagzi.Handle(w, "order", Prepare)
		all.Go(func() {
			defer cancel()
			errs[i] = w.Run(ctx)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// Encrypted makes a worker and a client that share a key. The server stores what it cannot read.
func Encrypted(key []byte) (*kagzi.Worker, *kagzi.Client, error) {
	codec, err := kagzi.NewAESCodec(kagzi.AESOptions{Keys: map[string][]byte{"2026": key}, Current: "2026"})
	if err != nil {
		return nil, nil, err
	}
	c, err := kagzi.NewClient(kagzi.ClientOptions{Codec: codec})
	return kagzi.NewWorker(kagzi.WorkerOptions{Queue: "orders", Codec: codec}), c, err
}
