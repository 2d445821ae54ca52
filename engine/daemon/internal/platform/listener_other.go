//go:build !linux

package platform

// ListenerOn returns "" on this system.
func ListenerOn(string) string { return "" }
