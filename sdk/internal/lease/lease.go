// Package lease tells a worker for how long it still holds its runs.
package lease

import (
	"context"
	"sync"
	"time"
)

// Clock estimates until when the worker's leases hold. It counts from when the last confirmed
// heartbeat was sent, on the monotonic and the wall clock: the monotonic one stops while a virtual
// machine is suspended.
type Clock struct {
	mu        sync.Mutex
	length    time.Duration
	confirmed time.Time
	contact   time.Time     // when the last message was sent that the server answered
	renewed   chan struct{} // closed at the next confirmation
	expiry    *time.Timer   // fires after twice the lease without contact, and again until there is contact
	expired   func(silent time.Duration) (next time.Duration)
}

// Confirm records that the server has renewed the leases named in a message that was sent at sentAt.
func (l *Clock) Confirm(sentAt time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if sentAt.Before(l.confirmed) {
		return
	}
	l.confirmed = sentAt
	if l.renewed != nil {
		close(l.renewed)
		l.renewed = nil
	}
	l.putOff(sentAt)
}

// Heard records contact that renewed no lease.
func (l *Clock) Heard(sentAt time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.putOff(sentAt)
}

// putOff restarts the expiry timer. Needs l.mu.
func (l *Clock) putOff(sentAt time.Time) {
	l.contact = sentAt
	if l.expiry != nil {
		l.expiry.Reset(2*l.length - elapsed(sentAt))
	}
}

// Start sets the length of the lease. expired is called after twice that time without contact. It
// gets the time without contact, and returns after which such time to call it again; 0 means never.
func (l *Clock) Start(length time.Duration, expired func(silent time.Duration) (next time.Duration)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.length = length
	if l.expiry == nil {
		l.expired, l.expiry = expired, time.AfterFunc(2*length, l.expire)
	}
}

// expire calls expired. It repeats after twice the lease at the latest: the timer stops while a
// virtual machine is suspended, and runs claimed meanwhile have to be given up as well.
func (l *Clock) expire() {
	l.mu.Lock()
	contact := l.contact
	silent := elapsed(contact)
	l.mu.Unlock()
	next := l.expired(silent)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.expiry == nil || !l.contact.Equal(contact) {
		return // stopped or restarted
	}
	again := 2 * l.length
	if next > 0 {
		again = min(again, next-elapsed(contact))
	}
	l.expiry.Reset(again)
}

// LastConfirmed returns when the last message was sent whose answer renewed the leases.
func (l *Clock) LastConfirmed() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.confirmed
}

// Duration returns the length of the worker's lease.
func (l *Clock) Duration() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.length
}

// Stop ends the timer; expired is not called any more.
func (l *Clock) Stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.expiry != nil {
		l.expiry.Stop()
		l.expiry = nil
	}
}

// Await returns when the leases can be trusted, or when ctx ends. After 80 % of the lease without
// contact, nothing new starts. That includes runs with a longer lease of their own: the server
// reassigns these early when an operator takes the worker offline or a new process takes its id.
func (l *Clock) Await(ctx context.Context) {
	for {
		l.mu.Lock()
		if elapsed(l.confirmed) < l.length-l.length/5 {
			l.mu.Unlock()
			return
		}
		if l.renewed == nil {
			l.renewed = make(chan struct{})
		}
		renewed := l.renewed
		l.mu.Unlock()
		select {
		case <-renewed:
		case <-ctx.Done():
			return
		}
	}
}

// elapsed returns the time since t by the monotonic or the wall clock, whichever is longer.
func elapsed(t time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(t), now.Round(0).Sub(t.Round(0)))
}
