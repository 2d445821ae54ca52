//go:build !unix

package terminal

import (
	"errors"

	"github.com/rivo/tview"
)

// Suspend fails: there is no such thing here.
func Suspend(*tview.Application) error { return errors.New("this system cannot suspend a program") }
