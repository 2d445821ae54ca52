//go:build unix

package terminal

import (
	"errors"
	"syscall"

	"github.com/rivo/tview"
)

// Suspend stops the program and returns to the shell until fg.
func Suspend(tv *tview.Application) error {
	if !tv.Suspend(func() { _ = syscall.Kill(0, syscall.SIGSTOP) }) {
		return errors.New("this terminal cannot be suspended")
	}
	return nil
}
