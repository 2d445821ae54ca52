package auth

import (
	"context"
	"strings"
	"sync"

	"github.com/kagzi/kagzi/engine"
)

// A worker's key may be bound to worker ids (engine.APIKey.WorkerIDs). Calls that name a worker are
// checked by its id. Calls about a run are checked by the worker that holds it.

// MayActAs returns an error if the caller's key is bound to worker ids and this is none of them. It
// is the same whether the worker exists or not.
func MayActAs(ctx context.Context, worker string) error {
	if key := CallerOf(ctx); key != nil {
		return key.actsAs(worker)
	}
	return nil
}

func (k *Key) actsAs(worker string) error {
	if k.ServesAs(worker) {
		return nil
	}
	return denied("the API key %q is %s, and not for %q", k.Name, k.workers(), worker)
}

// workers names the worker ids that the key is bound to: "for the worker ids press-7, spare-*".
func (k *Key) workers() string {
	if len(k.WorkerIDs) == 1 {
		return "for the worker id " + k.WorkerIDs[0]
	}
	return "for the worker ids " + strings.Join(k.WorkerIDs, ", ")
}

// maxHeld limits the leases that a key remembers as those of its workers.
const maxHeld = 10_000

// heldLeases holds tokens that were found to be those of a key's workers. A token belongs to one
// worker as long as it exists.
type heldLeases struct {
	mu     sync.Mutex
	tokens map[engine.Token]struct{}
}

func (h *heldLeases) has(t engine.Token) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, has := h.tokens[t]
	return has
}

func (h *heldLeases) add(t engine.Token) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tokens == nil || len(h.tokens) >= maxHeld {
		h.tokens = map[engine.Token]struct{}{}
	}
	h.tokens[t] = struct{}{}
}

// MayWrite returns an error if the caller's key is bound to worker ids and the lease is that of
// another worker. A lease that is not the run's is left to the write, which refuses it.
func (g *Guard) MayWrite(ctx context.Context, l engine.Lease) error {
	key := CallerOf(ctx)
	if key == nil || len(key.WorkerIDs) == 0 || key.held.has(l.Token) {
		return nil
	}
	if current, err := g.isCurrent(ctx, l); err != nil || !current {
		return err
	}
	runs, err := g.store.GetRuns(ctx, l.Namespace, []engine.ID{l.RunID})
	if err != nil || len(runs) == 0 {
		return err
	}
	// again, because the worker that was read may hold the run by a later claim
	if current, err := g.isCurrent(ctx, l); err != nil || !current {
		return err
	}
	if err := key.actsAs(runs[0].WorkerID); err != nil {
		return err
	}
	key.held.add(l.Token)
	return nil
}

// isCurrent says whether the run is held under the lease.
func (g *Guard) isCurrent(ctx context.Context, l engine.Lease) (bool, error) {
	now, err := g.store.CurrentLease(ctx, l.Namespace, l.RunID)
	switch engine.KindOf(err) {
	case engine.KindLeaseLost, engine.KindNotFound:
		return false, nil
	}
	return err == nil && now.Token == l.Token, err
}
