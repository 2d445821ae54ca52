//go:build unix

package view

import (
	"errors"
	"syscall"
)

// suspend gives the terminal back to the shell until fg.
func (a *App) suspend() error {
	if !a.tv.Suspend(func() { _ = syscall.Kill(0, syscall.SIGSTOP) }) {
		return errors.New("the terminal cannot be given back here")
	}
	return nil
}
