//go:build unix

package terminal

import (
	"errors"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/rivo/tview"
)

// CanSuspend reports whether this system can suspend programs.
const CanSuspend = true

// Stop stops this program and those that it started, until fg.
func Stop() error { return syscall.Kill(0, syscall.SIGSTOP) }

// suspended is true while Suspend expects the SIGCONT of its own stop.
var suspended atomic.Bool

// Suspend gives the terminal back to the shell, stops, and takes the terminal again after fg.
func Suspend(tv *tview.Application, stop func() error) error {
	var err error
	suspended.Store(true)
	if !tv.Suspend(func() { err = stop() }) {
		err = errors.New("this terminal cannot be suspended")
	}
	return err
}

// Jobs follows job control from other programs until the returned function is called: suspend is
// called when this program is asked to stop, back when it was stopped by force and goes on, because
// the shell has changed the terminal meanwhile. While lent returns true, another program has the
// terminal: then this one stops at once, with it, and has nothing to restore.
func Jobs(lent func() bool, suspend, back func()) (end func()) {
	asked, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(asked, syscall.SIGTSTP, syscall.SIGCONT)
	go func() {
		for {
			select {
			case <-done:
				return
			case s := <-asked:
				switch {
				case lent() && s == syscall.SIGTSTP:
					_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
				case lent():
				case s == syscall.SIGTSTP:
					suspend()
				case !suspended.Swap(false):
					back()
				}
			}
		}
	}()
	return func() {
		signal.Stop(asked)
		close(done)
	}
}
