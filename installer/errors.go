package installer

import "fmt"

// Exit codes of `kagzi service`, beside 0 and 1. Those of status are what service managers' own commands use.
const (
	exitStopped      = 3 // status: installed and not running
	exitNotInstalled = 4 // status
	exitNotFound     = 5 // other commands, when the service is not installed
	exitConflict     = 6 // installed, with other settings
	exitUnavailable  = 7 // no service manager that would do
	exitPermission   = 8
	exitUsage        = 64
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

func refuse(code int, format string, args ...any) error {
	return &exitError{code: code, err: fmt.Errorf(format, args...)}
}
