package auth

import (
	"context"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// usesGather is how long uses of keys are collected before they are written together.
const usesGather = 2 * time.Second

// keyUses holds the uses of keys that are not yet written to the store.
type keyUses struct {
	wake chan struct{} // capacity one

	mu      sync.Mutex
	pending map[engine.ID]time.Time
}

// noteUses writes the uses of keys to the store until ctx ends. It sleeps while no key is used.
func (g *Guard) noteUses(ctx context.Context) {
	for {
		select {
		case <-g.uses.wake:
			select {
			case <-time.After(usesGather):
			case <-ctx.Done():
			}
			g.writeUses()
		case <-ctx.Done():
			return
		}
	}
}

// writeUses writes the collected uses. If that fails they are dropped, because the next use
// replaces them.
func (g *Guard) writeUses() {
	g.uses.mu.Lock()
	pending := g.uses.pending
	g.uses.pending = nil
	g.uses.mu.Unlock()
	list := make([]engine.KeyUse, 0, len(pending))
	for id, at := range pending {
		list = append(list, engine.KeyUse{ID: id, At: at})
	}
	ctx, cancel := context.WithTimeout(context.Background(), keyringTime)
	defer cancel()
	if err := g.store.NoteKeyUse(ctx, list); err != nil {
		g.log.Debug("last use of keys could not be written; it is dropped", "keys", len(list), "error", err)
	}
}
