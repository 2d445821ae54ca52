//go:build !linux && !windows

package dbfile

// networkFilesystem is not implemented on this system.
func networkFilesystem(string) string { return "" }
