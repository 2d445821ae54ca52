//go:build !windows

package installer

import "os"

// openFollowed opens a log that somebody writes.
func openFollowed(path string) (*os.File, error) { return os.Open(path) }
