//go:build !linux

package bench

// inMemory is not known here; file systems in memory are rare for temporary files.
func inMemory(string) bool { return false }
