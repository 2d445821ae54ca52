package server

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// usesGather is how long the uses of keys are gathered before they are written together.
const usesGather = 2 * time.Second

// uses is which keys were used and are to be written down as such.
type uses struct {
	bell chan struct{} // capacity one

	mu      sync.Mutex
	pending map[engine.ID]time.Time
}

// noteUses writes down when keys were used, until ctx ends. While no key is used it sleeps.
func (s *Server) noteUses(ctx context.Context) {
	for {
		select {
		case <-s.uses.bell:
			select {
			case <-time.After(usesGather):
			case <-ctx.Done():
			}
			s.writeUses()
		case <-ctx.Done():
			return
		}
	}
}

// writeUses writes what was gathered. What cannot be written is dropped: the next use says nearly the same.
func (s *Server) writeUses() {
	s.uses.mu.Lock()
	pending := s.uses.pending
	s.uses.pending = nil
	s.uses.mu.Unlock()
	list := make([]engine.KeyUse, 0, len(pending))
	for id, at := range pending {
		list = append(list, engine.KeyUse{ID: id, At: at})
	}
	ctx, cancel := context.WithTimeout(context.Background(), keyringTime)
	defer cancel()
	if err := s.store.NoteKeyUse(ctx, list); err != nil {
		s.log.Debug("use of keys not noted", "keys", len(list), "error", err)
	}
}

// passed says whether so many seconds have passed since the moment that last holds, and makes it this moment if so. A moment that lies ahead is
// of a clock that was set back since, and counts as long ago.
func passed(last *atomic.Int64, seconds int64) bool {
	before, now := last.Load(), time.Now().Unix()
	return (now-before >= seconds || now < before) && last.CompareAndSwap(before, now)
}
