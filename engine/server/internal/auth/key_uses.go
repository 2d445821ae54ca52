package auth

import (
	"context"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// usesGather is how long the uses of keys are gathered before they are written together.
const usesGather = 2 * time.Second

// keyUses are the uses of keys that are not written to the store yet.
type keyUses struct {
	wake chan struct{} // capacity one

	mu      sync.Mutex
	pending map[engine.ID]time.Time
}

// noteUses writes down when keys were used, until ctx ends. While no key is used it sleeps.
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

// writeUses writes what was gathered. What cannot be written is dropped: the next use says nearly the same.
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
		g.log.Debug("use of keys not noted", "keys", len(list), "error", err)
	}
}
