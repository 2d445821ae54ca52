package matching

import (
	"sync"
	"time"
)

// Clock is a timer that is more exact than Go's timers. Set is not called after Close.
type Clock interface {
	Set(wait time.Duration) // replaces the time set before
	Wait() error            // blocks until the time is over; returns an error once the clock is closed
	Close() error
}

// wakeups wakes groups by the clock when runs are due, if there is a clock. Groups use Go's timers
// too.
type wakeups struct {
	mu    sync.Mutex
	clock Clock // nil: none
	at    map[*group]time.Time
	next  time.Time // what the clock is set to; zero: not set
}

// start starts the goroutine that waits for the clock.
func (a *wakeups) start() {
	if clock := a.clock; clock != nil {
		go func() {
			for clock.Wait() == nil {
				a.wake(time.Now())
			}
		}()
	}
}

// stop closes the clock.
func (a *wakeups) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.clock != nil {
		_ = a.clock.Close()
		a.clock = nil
	}
}

// set wakes the group after wait. It replaces the time set for the group before.
func (a *wakeups) set(t *group, wait time.Duration) {
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

// drop removes the group.
func (a *wakeups) drop(t *group) {
	a.mu.Lock()
	delete(a.at, t)
	a.mu.Unlock()
}

// wake wakes the groups whose time has come, and sets the clock to the next one.
func (a *wakeups) wake(now time.Time) {
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
