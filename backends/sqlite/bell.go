package sqlite

import (
	"context"
	"slices"
	"sync"

	"github.com/kagzi/kagzi/engine"
)

// bell rings everybody in this process who listens. Nobody else can be at work on the file, so nothing needs to leave it.
type bell struct {
	mu        sync.Mutex
	listeners []*listener
}

// maxRings is how many hints a listener may be behind before they are merged into RingAll.
const maxRings = 4096

// listener holds the rings that its goroutine has not passed on yet, so that a commit never waits for one who listens.
type listener struct {
	rings []engine.Ring
	wake  chan struct{} // capacity one
}

func (b *bell) ring(rings []engine.Ring) {
	if len(rings) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.listeners {
		if len(l.rings)+len(rings) > maxRings {
			l.rings = append(l.rings[:0], engine.Ring{Kind: engine.RingAll})
		} else {
			l.rings = append(l.rings, rings...)
		}
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// Listen rings RingAll first, because whoever begins to listen has missed what was before.
func (s *Store) Listen(ctx context.Context, ring func(engine.Ring)) error {
	if s.looking() {
		return s.listenLooking(ctx, ring)
	}
	b := &s.bell
	l := &listener{rings: []engine.Ring{{Kind: engine.RingAll}}, wake: make(chan struct{}, 1)}
	l.wake <- struct{}{}
	b.mu.Lock()
	b.listeners = append(b.listeners, l)
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		b.listeners = slices.DeleteFunc(b.listeners, func(other *listener) bool { return other == l })
		b.mu.Unlock()
	}()

	var taken []engine.Ring
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.closed:
			return errClosed
		case <-l.wake:
		}
		b.mu.Lock()
		taken, l.rings = l.rings, taken[:0]
		b.mu.Unlock()
		for _, r := range taken {
			ring(r)
		}
	}
}
