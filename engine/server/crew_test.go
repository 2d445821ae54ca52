package server

import (
	"sync"
	"testing"
	"testing/synctest"
)

func TestACrewUsesItsGoroutinesAgainAndEndsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // fails when a goroutine is left
		var c crew
		hold := make(chan struct{})
		var done sync.WaitGroup
		for range maxResting + 10 {
			done.Add(1)
			c.do(func() { defer done.Done(); <-hold })
		}
		close(hold)
		done.Wait()
		synctest.Wait()
		if n := len(c.resting); n != maxResting {
			t.Errorf("%d goroutines are kept, want %d", n, maxResting)
		}
		done.Add(1)
		c.do(func() {
			defer done.Done()
			if n := len(c.resting); n != maxResting-1 {
				t.Errorf("%d goroutines wait while one is at work, want %d", n, maxResting-1)
			}
		})
		done.Wait()
		synctest.Wait()
		late := make(chan struct{})
		c.do(func() { <-late })
		c.dismiss()
		close(late)
		synctest.Wait()
		done.Add(1)
		c.do(done.Done) // as little as there is to do after that, it is done
		done.Wait()
	})
}
