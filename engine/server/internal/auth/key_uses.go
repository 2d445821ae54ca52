package auth

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// usesGather is how long uses of keys are collected before they are written together.
const usesGather = 2 * time.Second

// keyUses holds the uses of keys and sessions that are not yet written to the store.
type keyUses struct {
	wake chan struct{} // capacity one

	mu       sync.Mutex
	pending  map[engine.ID]time.Time
	sessions map[engine.ID]time.Time
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
	keys, sessions := g.uses.pending, g.uses.sessions
	g.uses.pending, g.uses.sessions = nil, nil
	g.uses.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), keyringTime)
	defer cancel()
	err := g.store.NoteKeyUse(ctx, usesOf(keys))
	if len(sessions) > 0 {
		err = errors.Join(err, g.store.NoteSessionUse(ctx, usesOf(sessions)))
	}
	if err != nil {
		g.log.Debug("last use of keys could not be written; it is dropped", "keys", len(keys),
			"sessions", len(sessions), "error", err)
	}
}

func usesOf(pending map[engine.ID]time.Time) []engine.KeyUse {
	list := make([]engine.KeyUse, 0, len(pending))
	for id, at := range pending {
		list = append(list, engine.KeyUse{ID: id, At: at})
	}
	return list
}
