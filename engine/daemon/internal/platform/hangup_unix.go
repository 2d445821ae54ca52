//go:build unix

package platform

import (
	"os"
	"os/signal"
	"syscall"
)

// Hangups returns a channel of SIGHUP, which asks the process to reload its settings. The system
// also sends SIGHUP when the terminal of the process is closed; lost reports that. Call stop when
// done.
func Hangups() (heard <-chan os.Signal, lost func() bool, stop func()) {
	// with nohup the process should outlive the terminal
	tied := !signal.Ignored(syscall.SIGHUP) && hasTerminal()
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() bool { return tied && !hasTerminal() }, func() { signal.Stop(c) }
}

// hasTerminal reports whether the process has a controlling terminal.
func hasTerminal() bool {
	f, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	f.Close()
	return true
}
