//go:build unix

package platform

import (
	"os"
	"os/signal"
	"syscall"
)

// Hangups is when this process gets SIGHUP, by which people ask it to read its settings again. The
// system sends the same when the terminal goes that the process was started from; lost says so
// then. Call stop when nobody listens any more.
func Hangups() (heard <-chan os.Signal, lost func() bool, stop func()) {
	// Who starts it with nohup wants it to outlive the terminal.
	tied := !signal.Ignored(syscall.SIGHUP) && hasTerminal()
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() bool { return tied && !hasTerminal() }, func() { signal.Stop(c) }
}

// hasTerminal says whether this process has a terminal that controls it.
func hasTerminal() bool {
	f, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	f.Close()
	return true
}
