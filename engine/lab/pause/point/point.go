// Package point is where the command pause has goroutines held up.
package point

import (
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
)

// A goroutine loses the processor at one of every that it comes to, so many times at most as others are to go first.
var every, most = number("KAGZI_PAUSE_EVERY"), number("KAGZI_PAUSE_MOST")

// number is 0 of a variable that is not set or is none.
func number(name string) int {
	n, _ := strconv.Atoi(os.Getenv(name))
	return n
}

// Here holds the caller up, now and then: often for a moment, and seldom for as long as others need
// to come far. It does not sleep, for in virtual time nobody may who holds a mutex that others wait
// for.
func Here() {
	if every <= 0 || rand.IntN(every) > 0 {
		return
	}
	for range most >> rand.IntN(8) {
		runtime.Gosched()
	}
}
