//go:build !failpoint

package engine

// Failpoint marks a point around a commit. With the build tag failpoint, tests can kill the process
// there; without the tag it does nothing.
func Failpoint(string) {}
