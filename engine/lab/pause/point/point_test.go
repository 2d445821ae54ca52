package point

import (
	"runtime"
	"testing"
)

func TestADelayedGoroutineLetsOthersGoFirst(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer func(e, m int) { every, most = e, m }(every, most)
	for _, c := range []struct {
		every int
		first string
	}{{0, "caller"}, {1, "other"}} {
		every, most = c.every, 200
		order := make(chan string, 2)
		go func() { order <- "other" }()
		Here()
		order <- "caller"
		if first := <-order; first != c.first {
			t.Errorf("at one in %d places the %s goes first, want the %s", c.every, first, c.first)
		}
	}
}
