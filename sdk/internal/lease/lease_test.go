package lease

import (
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

func TestLeaseClock(t *testing.T) {
	t.Run("a confirmation overtaken by a later one has no effect", func(t *testing.T) {
		var l Clock
		now := time.Now()
		l.Confirm(now)
		l.Confirm(now.Add(-time.Minute))
		equal(t, l.confirmed.Equal(now), true)
	})

	t.Run("twice the lease counts from when the message was sent",
		bubble(func(t *testing.T) {
			var l Clock
			expired := make(chan time.Time, 2)
			began := time.Now()
			l.Start(30*time.Second, func(time.Duration) time.Duration { expired <- time.Now(); return 0 })
			time.AfterFunc(50*time.Second, func() { l.Confirm(time.Now().Add(-20 * time.Second)) })
			equal(t, (<-expired).Sub(began), 90*time.Second)
			l.Confirm(time.Now())
			l.Stop()
			time.Sleep(time.Hour)
			equal(t, len(expired), 0)
		}))

	// looks lets the leases expire, longer ones as next says, and sends how long after the last
	// contact expired was called.
	looks := func(l *Clock, next func(silent time.Duration) time.Duration) <-chan time.Duration {
		looked, contact := make(chan time.Duration, 100), time.Now()
		l.Start(30*time.Second, func(silent time.Duration) time.Duration {
			looked <- time.Since(contact)
			return next(silent)
		})
		l.Confirm(contact)
		return looked
	}

	t.Run("a longer lease is checked at its end",
		bubble(func(t *testing.T) {
			var l Clock
			looked := looks(&l, func(silent time.Duration) time.Duration {
				for _, own := range []time.Duration{70 * time.Second, 200 * time.Second} {
					if silent < own {
						return own
					}
				}
				return 0
			})
			for _, want := range []time.Duration{60 * time.Second, 70 * time.Second, 130 * time.Second,
				190 * time.Second,
				200 * time.Second, 260 * time.Second} {
				equal(t, <-looked, want)
			}
			l.Stop()
		}))

	t.Run("contact during a check delays the next check", bubble(func(t *testing.T) {
		var l Clock
		looked := looks(&l, func(time.Duration) time.Duration { l.Confirm(time.Now()); return 61 * time.Second })
		equal(t, <-looked, 60*time.Second)
		equal(t, <-looked, 120*time.Second)
		l.Stop()
	}))

	t.Run("Stop during a check makes it the last", bubble(func(t *testing.T) {
		var l Clock
		looked := looks(&l, func(time.Duration) time.Duration { l.Stop(); return 61 * time.Second })
		equal(t, <-looked, 60*time.Second)
		time.Sleep(time.Hour)
		equal(t, len(looked), 0)
	}))

	t.Run("suspension of the machine counts for a longer lease", bubble(func(t *testing.T) {
		var l Clock
		const own = 10 * time.Minute
		over := make(chan time.Duration, 1)
		looked := looks(&l, func(silent time.Duration) time.Duration {
			if silent < own {
				return own
			}
			over <- silent
			return 0
		})
		<-looked
		synctest.Wait() // until it has restarted its timer
		l.mu.Lock()
		l.contact = l.contact.Add(-time.Hour) // the wall clock; the bubble has no other beside it
		l.mu.Unlock()
		equal(t, <-over, time.Hour+2*time.Minute)
		l.Stop()
	}))

	t.Run("a server that comes back with another lease is gone by", func(t *testing.T) {
		var l Clock
		none := func(time.Duration) time.Duration { return 0 }
		l.Start(30*time.Second, none)
		l.Start(6*time.Second, none)
		l.Stop()
		equal(t, l.Duration(), 6*time.Second)
	})

	t.Run("suspension of the machine counts by the wall clock", func(t *testing.T) {
		sent := time.Now()
		setBack(&sent, time.Hour)
		if passed := elapsed(sent); passed < time.Hour {
			t.Errorf("%v have passed, want the hour", passed)
		}
	})

	t.Run("a clock that was set back hides no time that has passed", func(t *testing.T) {
		sent := time.Now().Add(-time.Minute)
		setBack(&sent, -time.Hour)
		if passed := elapsed(sent); passed < time.Minute {
			t.Errorf("%v have passed, want the minute", passed)
		}
	})
}

func equal[T any](t testing.TB, got, want T) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("-want +got:\n%s", d)
	}
}

// bubble runs a test in virtual time.
func bubble(test func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) { synctest.Test(t, test) }
}

// setBack changes the wall clock of a time, not its monotonic clock.
func setBack(t *time.Time, by time.Duration) {
	wall := (*uint64)(unsafe.Pointer(t)) // seconds are above 30 bits of nanoseconds
	before := t.Round(0)
	*wall -= uint64(by/time.Second) << 30
	if before.Sub(t.Round(0)) != by {
		panic("time.Time is made otherwise")
	}
}
