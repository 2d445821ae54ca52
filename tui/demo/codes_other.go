//go:build !windows

package demo

import "os"

// understandsCodes reports whether the terminal supports ANSI codes.
func understandsCodes(*os.File) bool { return true }
