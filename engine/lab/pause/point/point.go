// Package point delays goroutines where the command pause puts calls of it.
package point

import (
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
)

// every is the average number of calls between delays; most limits the yields of one delay.
var every, most = number("KAGZI_PAUSE_EVERY"), number("KAGZI_PAUSE_MOST")

// number returns the value of an environment variable; 0 if it is not set or not a number.
func number(name string) int {
	n, _ := strconv.Atoi(os.Getenv(name))
	return n
}

// Here sometimes delays the caller: mostly for a moment, rarely long enough for other goroutines to
// get far. It yields and never sleeps, because in virtual time a goroutine must not sleep while it
// holds a mutex.
func Here() {
	if every <= 0 || rand.IntN(every) > 0 {
		return
	}
	for range most >> rand.IntN(8) {
		runtime.Gosched()
	}
}
