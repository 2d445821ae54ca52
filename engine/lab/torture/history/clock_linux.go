package history

import "golang.org/x/sys/unix"

// Now returns the time in nanoseconds since the machine booted.
func Now() int64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		panic("this machine has no monotonic clock")
	}
	return t.Nano()
}
