package bench

import (
	"time"

	"golang.org/x/sys/unix"
)

// pause waits for d. Go's timers round up to a millisecond while the process is idle, the kernel's
// do not.
func pause(d time.Duration) {
	if d <= 0 {
		return
	}
	left := unix.NsecToTimespec(int64(d))
	for unix.Nanosleep(&left, &left) == unix.EINTR {
	}
}
