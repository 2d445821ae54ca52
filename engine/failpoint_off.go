//go:build !failpoint

package engine

// Failpoint marks a moment around a commit. It does nothing, unless the program was built with the tag failpoint:
// then tests can have the process die there.
func Failpoint(string) {}
