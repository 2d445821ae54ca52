//go:build linux

package workload

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// SpinSignal makes a worker begin to spin; the next one makes it stop.
const SpinSignal = syscall.SIGUSR1

// spinAtSignal makes this many goroutines use all CPU time from one signal to the next.
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

// spin never yields: others run when the scheduler preempts it.
func spin(enough *atomic.Bool) {
	for !enough.Load() { //nolint:staticcheck // that it takes time is its purpose
	}
}
