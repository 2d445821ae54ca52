package async

import (
	"sync"
	"testing"
	"testing/synctest"
)

func TestPoolReusesItsGoroutinesAndEndsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // fails when a goroutine is left
		var c Pool
		hold := make(chan struct{})
		var done sync.WaitGroup
		for range maxIdle + 10 {
			done.Add(1)
			c.Go(func() { defer done.Done(); <-hold })
		}
		close(hold)
		done.Wait()
		synctest.Wait()
		if n := len(c.idle); n != maxIdle {
			t.Errorf("%d goroutines are kept, want %d", n, maxIdle)
		}
		done.Add(1)
		c.Go(func() {
			defer done.Done()
			if n := len(c.idle); n != maxIdle-1 {
				t.Errorf("%d goroutines wait while one is at work, want %d", n, maxIdle-1)
			}
		})
		done.Wait()
		synctest.Wait()
		late := make(chan struct{})
		c.Go(func() { <-late })
		c.Close()
		close(late)
		synctest.Wait()
		done.Add(1)
		c.Go(done.Done) // as little as there is to do after that, it is done
		done.Wait()
	})
}
