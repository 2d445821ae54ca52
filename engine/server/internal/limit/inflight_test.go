package limit

import (
	"testing"
	"testing/synctest"
)

func TestOneLargeCallAloneFits(t *testing.T) {
	var c InFlight
	if !c.TryAcquire(2*MaxBytes) || c.TryAcquire(MinBytes+1) || !c.TryAcquire(MinBytes) {
		t.Error("one call alone has room, and another beside it only if it is light")
	}
}

func TestNewCallsDoNotOvertakeWaitingSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c InFlight
		const small = 1 << 20
		under := 0
		for c.TryAcquire(small) {
			under++
		}
		waited := make(chan bool, 1)
		go func() { waited <- c.Acquire(t.Context(), 2*small) }()
		for range 2 { // one call ends, and a client that was refused tries again
			synctest.Wait()
			c.Release(small)
			under--
			if c.TryAcquire(small) {
				under++
			}
		}
		synctest.Wait()
		if len(waited) == 0 {
			t.Fatalf("who waits has no room after two calls have ended, for %d are under way", under)
		}
		for range under {
			c.Release(small)
		}
		c.Release(2 * small)
		if !c.TryAcquire(MaxBytes) {
			t.Error("nobody waits any more, and yet a call is refused")
		}
	})
}
