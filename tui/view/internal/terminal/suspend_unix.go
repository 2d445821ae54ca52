//go:build unix

package terminal

import (
	"errors"
	"syscall"

	"github.com/rivo/tview"
)

// Suspend gives the terminal back to the shell until fg.
func Suspend(tv *tview.Application) error {
	if !tv.Suspend(func() { _ = syscall.Kill(0, syscall.SIGSTOP) }) {
		return errors.New("the terminal cannot be given back here")
	}
	return nil
}
