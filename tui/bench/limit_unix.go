//go:build unix

package bench

import "golang.org/x/sys/unix"

// openFiles returns how many files and connections a process of this user may have open; 0 if
// unknown. It is the hard limit, because Go programs raise their soft limit to it.
func openFiles() uint64 {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return uint64(l.Max)
}
