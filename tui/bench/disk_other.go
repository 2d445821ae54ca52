//go:build !linux

package bench

// inMemory is unknown here; temporary directories are rarely in memory.
func inMemory(string) bool { return false }
