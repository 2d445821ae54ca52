//go:build !unix

package terminal

import (
	"errors"

	"github.com/rivo/tview"
)

// CanSuspend reports whether this system can suspend programs.
const CanSuspend = false

// Stop fails: this system cannot suspend programs.
func Stop() error { return errors.New("this system cannot suspend a program") }

// Suspend fails as Stop does.
func Suspend(_ *tview.Application, stop func() error) error { return stop() }

// Jobs does nothing: this system has no job control.
func Jobs(func() bool, func(), func()) (end func()) { return func() {} }
