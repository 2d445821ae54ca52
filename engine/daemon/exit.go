package daemon

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kagzi/kagzi/engine"
)

// Exit codes beyond 0 and 1: those of every command, and from 64 on what sysexits.h says.
const (
	exitNotFound    = 5  // it is not there
	exitConflict    = 6  // refused because of what is there already, or of who has it
	exitUnavailable = 7  // the database does not answer
	exitUsage       = 64 // a setting is wrong
	exitSoftware    = 70 // the store failed in a way after which nothing may be acknowledged
	exitConfig      = 78 // the settings would be unsafe
)

// kindExit gives each kind of refusal by a database the exit code that scripts see. The others have 1.
var kindExit = map[engine.Kind]int{
	engine.KindNotFound: exitNotFound, engine.KindUnavailable: exitUnavailable,
	engine.KindExists: exitConflict, engine.KindConflict: exitConflict, engine.KindPrecondition: exitConflict,
	engine.KindInvalid: exitUsage,
}

// coded gives an error of a database the exit code of its kind, if it does not bring one. What
// fails because the user interrupted is that.
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

// codedCommand has a command end with the exit codes of coded.
func codedCommand(cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return coded(cmd.Context(), run(cmd, args)) }
	return cmd
}

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
