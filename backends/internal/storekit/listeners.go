package storekit

import (
	"context"
	"slices"
	"sync"

	"github.com/kagzi/kagzi/engine"
)

// maxPending is how many hints a listener may be behind before they are merged into RingAll.
const maxPending = 4096

// Listeners is everybody in one process who listens to its store: the part of a Notifier that is the same whatever the database. The zero value is
// ready for use.
type Listeners struct {
	mu   sync.Mutex
	list []*listener
}

// listener holds the notifications that its goroutine has not passed on yet, so that a commit never waits for one who listens.
type listener struct {
	notifications []engine.Notification
	wake          chan struct{} // capacity one
}

// Notify has everybody who listens told of the notifications, and waits for nobody.
func (ls *Listeners) Notify(notifications []engine.Notification) {
	if len(notifications) == 0 {
		return
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.list {
		if len(l.notifications)+len(notifications) > maxPending {
			l.notifications = merged(l.notifications, notifications)
		} else {
			l.notifications = append(l.notifications, notifications...)
		}
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// merged takes the place of notifications that are too many: anything may have changed. What they count it adds up.
func merged(lists ...[]engine.Notification) []engine.Notification {
	var sum engine.SideEffects
	for _, notifications := range lists {
		for _, r := range notifications {
			if r.SideEffects != nil {
				sum.Add(r.SideEffects)
			}
		}
	}
	if sum.Empty() {
		return []engine.Notification{{Kind: engine.NotifyAll}}
	}
	return []engine.Notification{{Kind: engine.NotifyAll}, {Kind: engine.NotifySideEffects, SideEffects: &sum}}
}

// Listen is Notifier.Listen until closed is closed, which is when it returns nil. It notifies RingAll first, because whoever begins to listen has
// missed what was before.
func (ls *Listeners) Listen(ctx context.Context, closed <-chan struct{}, notify func(engine.Notification)) error {
	l := &listener{notifications: []engine.Notification{{Kind: engine.NotifyAll}}, wake: make(chan struct{}, 1)}
	l.wake <- struct{}{}
	ls.mu.Lock()
	ls.list = append(ls.list, l)
	ls.mu.Unlock()
	defer func() {
		ls.mu.Lock()
		ls.list = slices.DeleteFunc(ls.list, func(other *listener) bool { return other == l })
		ls.mu.Unlock()
	}()

	var taken []engine.Notification
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-closed:
			return nil
		case <-l.wake:
		}
		ls.mu.Lock()
		taken, l.notifications = l.notifications, taken[:0]
		ls.mu.Unlock()
		for _, r := range taken {
			notify(r)
		}
	}
}
