//go:build linux || darwin

package stats

import (
	"math"
	"syscall"
	"time"
)

// cpuTime returns the CPU time of the process on all cores.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// diskAvailable returns the space under the working directory that an unprivileged user can still
// use.
func diskAvailable() int64 {
	var s syscall.Statfs_t
	if syscall.Statfs(".", &s) != nil {
		return 0
	}
	return inBytes(s.Bavail, int64(s.Bsize))
}

// inBytes returns the size of some blocks, at most what the wire can hold: file systems on object
// stores report enormous sizes, and the server refuses a negative number.
func inBytes(blocks uint64, size int64) int64 {
	if size > 0 && blocks > math.MaxInt64/uint64(size) {
		return math.MaxInt64
	}
	return int64(blocks) * size
}
