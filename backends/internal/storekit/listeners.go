package storekit

import (
	"context"
	"slices"
	"sync"

	"github.com/kagzi/kagzi/engine"
)

// maxPending limits the hints that wait for a listener; more are merged into NotifyAll.
const maxPending = 4096

// Event is a notification, with outcomes that only the process that commits gets.
type Event struct {
	engine.Notification
	Ending      *engine.Ending      // with NotifyEnd, if known without a read
	SideEffects *engine.SideEffects // if set, the event holds only these and no notification
}

// Events returns an event for each notification.
func Events(notifications ...engine.Notification) []Event {
	events := make([]Event, len(notifications))
	for i, n := range notifications {
		events[i].Notification = n
	}
	return events
}

// Tell passes the event on. o may be nil.
func (e *Event) Tell(notify func(engine.Notification), o engine.Outcomes) {
	switch {
	case e.SideEffects != nil && o != nil:
		o.SideEffects(e.SideEffects)
	case e.SideEffects != nil:
	case e.Ending != nil && o != nil:
		o.RunEnded(e.ID, e.Ending)
	default:
		notify(e.Notification)
	}
}

// Listeners is the part of a Notifier that does not depend on the database: all listeners of one
// process. The zero value is ready for use.
type Listeners struct {
	mu   sync.Mutex
	list []*listener
}

// listener queues the events that its goroutine has not passed on yet, so that a commit never waits
// for a slow listener.
type listener struct {
	events []Event
	wake   chan struct{} // capacity one
}

// Notify passes the events to all listeners without waiting for them.
func (ls *Listeners) Notify(events []Event) {
	if len(events) == 0 {
		return
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.list {
		if len(l.events)+len(events) > maxPending {
			l.events = merged(l.events, events)
		} else {
			l.events = append(l.events, events...)
		}
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// merged replaces too many events: NotifyAll, and the sum of the side effects.
func merged(lists ...[]Event) []Event {
	var sum engine.SideEffects
	for _, events := range lists {
		for _, e := range events {
			if e.SideEffects != nil {
				sum.Add(e.SideEffects)
			}
		}
	}
	all := Events(engine.Notification{Kind: engine.NotifyAll})
	if !sum.Empty() {
		all = append(all, Event{SideEffects: &sum})
	}
	return all
}

// Listen is Notifier.Listen until closed is closed; then it returns nil. It sends NotifyAll first,
// because a new listener has missed everything before.
func (ls *Listeners) Listen(ctx context.Context, closed <-chan struct{}, notify func(engine.Notification),
	o engine.Outcomes) error {
	l := &listener{events: Events(engine.Notification{Kind: engine.NotifyAll}), wake: make(chan struct{}, 1)}
	l.wake <- struct{}{}
	ls.mu.Lock()
	ls.list = append(ls.list, l)
	ls.mu.Unlock()
	defer func() {
		ls.mu.Lock()
		ls.list = slices.DeleteFunc(ls.list, func(other *listener) bool { return other == l })
		ls.mu.Unlock()
	}()

	var taken []Event
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-closed:
			return nil
		case <-l.wake:
		}
		ls.mu.Lock()
		taken, l.events = l.events, taken[:0]
		ls.mu.Unlock()
		for i := range taken {
			taken[i].Tell(notify, o)
		}
	}
}
