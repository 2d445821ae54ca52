package storekit

import (
	"context"
	"slices"
	"sync"

	"github.com/kagzi/kagzi/engine"
)

// maxRings is how many hints a listener may be behind before they are merged into RingAll.
const maxRings = 4096

// Listeners is everybody in one process who listens to its store: the part of a Bell that is the same whatever the database. The zero value is
// ready for use.
type Listeners struct {
	mu   sync.Mutex
	list []*listener
}

// listener holds the rings that its goroutine has not passed on yet, so that a commit never waits for one who listens.
type listener struct {
	rings []engine.Ring
	wake  chan struct{} // capacity one
}

// Ring has everybody who listens told of the rings, and waits for nobody.
func (ls *Listeners) Ring(rings []engine.Ring) {
	if len(rings) == 0 {
		return
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.list {
		if len(l.rings)+len(rings) > maxRings {
			l.rings = merged(l.rings, rings)
		} else {
			l.rings = append(l.rings, rings...)
		}
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// merged takes the place of rings that are too many: anything may have changed. What they count it adds up.
func merged(lists ...[]engine.Ring) []engine.Ring {
	var sum engine.Aside
	for _, rings := range lists {
		for _, r := range rings {
			if r.Aside != nil {
				sum.Add(r.Aside)
			}
		}
	}
	if sum.Empty() {
		return []engine.Ring{{Kind: engine.RingAll}}
	}
	return []engine.Ring{{Kind: engine.RingAll}, {Kind: engine.RingAside, Aside: &sum}}
}

// Listen is Bell.Listen until closed is closed, which is when it returns nil. It rings RingAll first, because whoever begins to listen has
// missed what was before.
func (ls *Listeners) Listen(ctx context.Context, closed <-chan struct{}, ring func(engine.Ring)) error {
	l := &listener{rings: []engine.Ring{{Kind: engine.RingAll}}, wake: make(chan struct{}, 1)}
	l.wake <- struct{}{}
	ls.mu.Lock()
	ls.list = append(ls.list, l)
	ls.mu.Unlock()
	defer func() {
		ls.mu.Lock()
		ls.list = slices.DeleteFunc(ls.list, func(other *listener) bool { return other == l })
		ls.mu.Unlock()
	}()

	var taken []engine.Ring
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-closed:
			return nil
		case <-l.wake:
		}
		ls.mu.Lock()
		taken, l.rings = l.rings, taken[:0]
		ls.mu.Unlock()
		for _, r := range taken {
			ring(r)
		}
	}
}
