//go:build !unix

package terminal

import (
	"errors"

	"github.com/rivo/tview"
)

// Suspend fails: this system cannot suspend programs.
func Suspend(*tview.Application) error { return errors.New("this system cannot suspend a program") }
