package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/proto/near"
	"github.com/kagzi/kagzi/tui/cli/internal/spelling"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/view"
)

// Exit codes, the same for every command.
const (
	ExitOK               = 0
	ExitError            = 1
	ExitRunFailed        = 2
	ExitRunTimedOut      = 3
	ExitRunStopped       = 4 // cancelled or terminated
	ExitNotFound         = 5
	ExitConflict         = 6
	ExitUnavailable      = 7
	ExitPermissionDenied = 8
	ExitUsage            = 64
	ExitInterrupted      = 130
)

// Execute runs the command named by args and returns the exit code of the process. Errors go to
// stderr: one line, then hints. A cancelled ctx means that the user interrupted. An error from
// another package may choose its code with a method ExitCode() int, and how long its text may take to
// write with WriteLimit() time.Duration.
func Execute(ctx context.Context, root *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if args == nil {
		args = []string{} // nil would mean os.Args to cobra
	}
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(flagError)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	prepare(root)

	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return ExitOK
	case ctx.Err() != nil && (errors.Is(err, context.Canceled) || status.Code(err) == codes.Canceled):
		return ExitInterrupted // the user interrupted and needs no message
	}
	lines, code := explain(err)
	told := make(chan struct{})
	go func() {
		defer close(told)
		for i, line := range lines {
			if i == 0 {
				line = "error: " + line
			} else {
				line = "  " + line
			}
			_, _ = io.WriteString(stderr, render.Safe(line)+"\n") // stderr is gone; nowhere to report it
		}
	}()
	select {
	case <-told:
	case <-writeLimit(err):
	}
	return code
}

// writeLimit returns when to stop writing an error: nil, which is never, unless the error has a
// limit. A server's has one, because nobody may be reading its stderr.
func writeLimit(err error) <-chan time.Time {
	var limited interface{ WriteLimit() time.Duration }
	if !errors.As(err, &limited) {
		return nil
	}
	return time.After(limited.WriteLimit())
}

// prepare gives the commands of all packages the same behaviour: a group without a subcommand
// prints its help and suggests a command for a typo; wrong arguments are a usage error.
func prepare(cmd *cobra.Command) {
	switch {
	case cmd.HasSubCommands() && !cmd.Runnable():
		cmd.DisableFlagsInUseLine = true // a group alone takes no flags
		cmd.Args = cobra.ArbitraryArgs
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return cmd.Help()
		}
	case cmd.Args != nil:
		check := cmd.Args
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return wrongArguments(cmd, args, err)
			}
			return nil
		}
	}
	for _, c := range cmd.Commands() {
		prepare(c)
	}
}

// wrongArguments reports the missing or extra argument, based on the command's usage line. It
// returns err if the usage line does not explain it.
func wrongArguments(cmd *cobra.Command, args []string, err error) error {
	names, required, open := spelling.Arguments(cmd)
	if own, ok := errors.AsType[*usageError](err); ok {
		err = own.err
	} else if len(args) < required {
		err = fmt.Errorf("%s is missing", strings.ReplaceAll(strings.TrimSuffix(names[len(args)], "..."), "|", " or "))
	} else if len(args) > len(names) && !open {
		err = fmt.Errorf("unexpected argument %q; %s takes %s", args[len(names)], cmd.CommandPath(),
			cmp.Or(strings.Join(names, " "), "none"))
	}
	return &usageError{err: err, hint: []string{"usage: " + cmd.UseLine(), "see: " + cmd.CommandPath() + " --help"}}
}

func unknownCommand(cmd *cobra.Command, name string) error {
	cmd.SuggestionsMinimumDistance = 2
	err := usagef("unknown command %q for %s", name, cmd.CommandPath())
	if other := spelling.OtherCommand(cmd, name); other != "" {
		err.hint = append(err.hint, "did you mean: "+cmd.CommandPath()+" "+other)
	} else if near := cmd.SuggestionsFor(name); len(near) > 0 {
		err.hint = append(err.hint, "did you mean: "+cmd.CommandPath()+" "+near[0])
	} else {
		err.hint = append(err.hint, "see: "+cmd.CommandPath()+" --help")
	}
	return err
}

// flagError rewrites an error of the flag parser.
func flagError(cmd *cobra.Command, err error) error {
	if args := cmd.Flags().Args(); len(args) > 0 && cmd.HasSubCommands() {
		return unknownCommand(cmd, args[0]) // the flag belongs to a mistyped command
	}
	usage := &usageError{err: err}
	var (
		wrong   *pflag.InvalidValueError
		bare    *pflag.ValueRequiredError
		unknown *pflag.NotExistError
	)
	switch {
	case errors.As(err, &wrong):
		usage.err = wrongValue(wrong)
	case errors.As(err, &bare):
		usage.err = fmt.Errorf("--%s needs a value", bare.GetFlag().Name)
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		if letters := unknown.GetSpecifiedShortnames(); letters != "" {
			usage.err = fmt.Errorf("unknown flag: -%s", name)
		}
		if output := cmd.Flags().Lookup("output"); output != nil &&
			slices.Contains(strings.Split(output.Value.Type(), "|"), name) {
			usage.hint = append(usage.hint, "did you mean: --output "+name)
			return usage
		}
		if ui, _, err := cmd.Find([]string{"tui"}); err == nil && !cmd.HasParent() && ui.Flag(name) != nil {
			// `kagzi` alone opens the UI too
			usage.hint = append(usage.hint, "did you mean: "+ui.CommandPath()+" --"+name)
			return usage
		}
		if other := spelling.OtherName(cmd, name); other != "" {
			usage.hint = append(usage.hint, "did you mean: "+other)
			return usage
		}
		if near := nearestFlag(cmd, name); near != "" && unknown.GetSpecifiedShortnames() == "" {
			usage.hint = append(usage.hint, "did you mean: --"+near)
			return usage
		}
	}
	usage.hint = append(usage.hint, "see: "+cmd.CommandPath()+" --help")
	return usage
}

// wrongValue names the flag, the value and what is expected.
func wrongValue(wrong *pflag.InvalidValueError) error {
	reason := errors.Unwrap(wrong)
	if number, ok := errors.AsType[*strconv.NumError](reason); ok {
		reason = errors.New(wantedNumber(wrong.GetFlag().Value.Type(), number))
	}
	if strings.Contains(reason.Error(), strconv.Quote(wrong.GetValue())) {
		return fmt.Errorf("--%s: %w", wrong.GetFlag().Name, reason)
	}
	return fmt.Errorf("--%s %q: %w", wrong.GetFlag().Name, wrong.GetValue(), reason)
}

// wantedNumber describes the expected number in simpler words than strconv.
func wantedNumber(kind string, err *strconv.NumError) string {
	switch {
	case kind == "bool":
		return "want true or false"
	case errors.Is(err, strconv.ErrRange):
		return "is out of range"
	case strings.HasPrefix(kind, "float"):
		return "want a number such as 1.5"
	}
	return "want a whole number"
}

// nearestFlag returns the flag closest to a mistyped name, or "".
func nearestFlag(cmd *cobra.Command, name string) string {
	found, best := "", 3
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if d := near.Distance(name, f.Name); d < best && !f.Hidden {
			found, best = f.Name, d
		}
	})
	return found
}

// UntilInterrupted returns a context that ends with the first Ctrl-C or SIGTERM; a second one ends
// the process at once. It ignores Ctrl-C while the terminal is lent to another program.
func UntilInterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, os.Interrupt, syscall.SIGTERM)
	go func() {
		defer cancel()
		defer signal.Stop(heard)
		for {
			select {
			case s := <-heard:
				if s != os.Interrupt || !view.Lent() {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, cancel
}
