//go:build linux

package workload

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// SpinSignal has a worker begin to spin, and the next has it end.
const SpinSignal = syscall.SIGUSR1

// spinAtSignal has so many goroutines take what time of the processor there is, whenever it is told
// to, until it is told again.
func spinAtSignal(n int) {
	told := make(chan os.Signal, 1)
	signal.Notify(told, SpinSignal)
	for range told {
		var enough atomic.Bool
		for range n {
			go spin(&enough)
		}
		<-told
		enough.Store(true)
	}
}

// spin never yields: others get the processor when the scheduler takes it away.
func spin(enough *atomic.Bool) {
	for !enough.Load() { //nolint:staticcheck // that it takes time is its purpose
	}
}
