package daemon

import (
	"errors"
	"fmt"
)

// Exit codes beyond 0 and 1, which are what sysexits.h says.
const (
	exitUsage    = 64 // a setting is wrong
	exitSoftware = 70 // the store failed in a way after which nothing may be acknowledged
	exitConfig   = 78 // the settings would be unsafe
)

// exitError ends the process with a code of its own.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// ExitCode is what the process is to end with.
func (e *exitError) ExitCode() int { return e.code }

func usagef(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// fatal gives a store's failure its exit code, if it does not bring one.
func fatal(failure error) error {
	if failure == nil {
		failure = errors.New("the store failed and did not say why")
	}
	var coded interface{ ExitCode() int }
	if errors.As(failure, &coded) {
		return failure
	}
	return &exitError{code: exitSoftware, err: failure}
}
