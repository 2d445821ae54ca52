package daemon

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kagzi/kagzi/engine"
)

// Exit codes beyond 0 and 1: those shared by all commands, and from 64 on those of sysexits.h.
const (
	exitNotFound    = 5  // does not exist
	exitConflict    = 6  // refused because of existing data or another process
	exitUnavailable = 7  // the database does not answer
	exitUsage       = 64 // wrong usage or setting
	exitSoftware    = 70 // the store failed so that nothing may be acknowledged
	exitConfig      = 78 // the settings would be unsafe
)

// kindExit maps kinds of database errors to exit codes; others get 1.
var kindExit = map[engine.Kind]int{
	engine.KindNotFound: exitNotFound, engine.KindUnavailable: exitUnavailable,
	engine.KindExists: exitConflict, engine.KindConflict: exitConflict, engine.KindPrecondition: exitConflict,
	engine.KindInvalid: exitUsage,
}

// coded sets the exit code of a database error by its kind, unless it has one. If ctx was
// cancelled, the error is the interruption.
func coded(ctx context.Context, err error) error {
	code, known := kindExit[engine.KindOf(err)]
	if own := interface{ ExitCode() int }(nil); !known || errors.As(err, &own) {
		return err
	}
	if code == exitUnavailable && ctx.Err() != nil {
		return errors.Join(ctx.Err(), err)
	}
	return &exitError{code: code, err: err}
}

// codedCommand makes a command end with the exit codes of coded.
func codedCommand(cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return coded(cmd.Context(), run(cmd, args)) }
	return cmd
}

// exitError is an error with an exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// ExitCode returns the exit code.
func (e *exitError) ExitCode() int { return e.code }

func usagef(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// fatal sets the exit code of a store failure, unless it has one.
func fatal(failure error) error {
	if failure == nil {
		failure = errors.New("the store failed without a reason")
	}
	var coded interface{ ExitCode() int }
	if errors.As(failure, &coded) {
		return failure
	}
	return &exitError{code: exitSoftware, err: failure}
}
