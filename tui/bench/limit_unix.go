//go:build unix

package bench

import "golang.org/x/sys/unix"

// openFiles is how many files and connections a process of this user may have open; 0 when unknown.
// Go programs raise their soft limit to the hard one by themselves, so the hard one it is.
func openFiles() uint64 {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return uint64(l.Max)
}
