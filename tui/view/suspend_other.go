//go:build !unix

package view

import "errors"

// suspend has no counterpart here.
func (a *App) suspend() error { return errors.New("this system cannot suspend a program") }
