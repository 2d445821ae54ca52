//go:build unix

package platform

import (
	"os"
	"os/signal"
	"syscall"
)

// IgnoreBrokenPipes makes a write to a stdout or stderr that nobody can read any more fail. Without
// it such a write kills the process with SIGPIPE.
func IgnoreBrokenPipes() {
	// nobody reads the channel; signal.Ignore would also hold for child processes
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}
