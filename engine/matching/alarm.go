package matching

import (
	"sync"
	"time"
)

// Clock tells one moment, more exactly than Go's timers. Set is not called after Close.
type Clock interface {
	Set(wait time.Duration) // instead of what was set before
	Wait() error            // returns when the time is over, an error once the clock is closed
	Close() error
}

// alarm wakes groups when something is due, where there is a clock for that. They wait by timers of Go's as well.
type alarm struct {
	mu    sync.Mutex
	clock Clock // nil: none
	at    map[*group]time.Time
	next  time.Time // what the clock is set to; zero: nothing
}

// start makes the alarm go.
func (a *alarm) start() {
	if clock := a.clock; clock != nil {
		go func() {
			for clock.Wait() == nil {
				a.wake(time.Now())
			}
		}()
	}
}

// stop closes the clock.
func (a *alarm) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.clock != nil {
		_ = a.clock.Close()
		a.clock = nil
	}
}

// set has the group woken after so long, instead of what was set for it before.
func (a *alarm) set(t *group, wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.clock == nil {
		return
	}
	at := time.Now().Add(wait)
	if a.at == nil {
		a.at = map[*group]time.Time{}
	}
	a.at[t] = at
	if a.next.IsZero() || at.Before(a.next) {
		a.next = at
		a.clock.Set(wait)
	}
}

// drop forgets the group.
func (a *alarm) drop(t *group) {
	a.mu.Lock()
	delete(a.at, t)
	a.mu.Unlock()
}

// wake wakes the groups whose time has come, and sets the clock to the next one.
func (a *alarm) wake(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next = time.Time{}
	for t, at := range a.at {
		if !at.After(now) {
			delete(a.at, t)
			t.wake()
		} else if a.next.IsZero() || at.Before(a.next) {
			a.next = at
		}
	}
	if !a.next.IsZero() && a.clock != nil {
		a.clock.Set(a.next.Sub(now))
	}
}
