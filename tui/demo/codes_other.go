//go:build !windows

package demo

import "os"

// understandsCodes reports whether the terminal obeys ANSI codes.
func understandsCodes(*os.File) bool { return true }
