package dispatch

import (
	"sync"
	"time"
)

// alarm wakes tables when something is due, a few hundredths of a millisecond later where the system has a clock for that. Timers of Go's, by
// which tables wait as well, are up to a millisecond late where the process has nothing else to do: it waits in epoll then, which counts whole ones.
type alarm struct {
	wanted bool

	mu    sync.Mutex
	clock clock // nil: none
	at    map[*table]time.Time
	next  time.Time // what the clock is set to; zero: nothing
}

// clock is what tells one moment.
type clock interface {
	set(wait time.Duration) // instead of what was set before
	ring() error            // returns when the time is over, an error once the clock is closed
	close()
}

// start makes the alarm go, if it is wanted and there is a clock for it.
func (a *alarm) start() {
	if !a.wanted {
		return
	}
	clock, err := newClock()
	if err != nil || clock == nil {
		return
	}
	a.mu.Lock()
	a.clock = clock
	a.mu.Unlock()
	go func() {
		for clock.ring() == nil {
			a.wake(time.Now())
		}
	}()
}

// stop closes the clock.
func (a *alarm) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.clock != nil {
		a.clock.close()
		a.clock = nil
	}
}

// set has the table woken after so long, instead of what was set for it before.
func (a *alarm) set(t *table, wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.clock == nil {
		return
	}
	at := time.Now().Add(wait)
	if a.at == nil {
		a.at = map[*table]time.Time{}
	}
	a.at[t] = at
	if a.next.IsZero() || at.Before(a.next) {
		a.next = at
		a.clock.set(wait)
	}
}

// drop forgets the table.
func (a *alarm) drop(t *table) {
	a.mu.Lock()
	delete(a.at, t)
	a.mu.Unlock()
}

// wake wakes the tables whose time has come, and sets the clock to the next one.
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
		a.clock.set(a.next.Sub(now))
	}
}
