package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/kagzi/kagzi/sdk/profile"
	"github.com/kagzi/kagzi/tui/render"
)

// checkFlag makes a worker replay the open runs instead of working.
const checkFlag = "-kagzi-check"

// checkTimeout limits how long an interrupted check may take to exit.
const checkTimeout = 10 * time.Second

func newCheck(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check [flags] COMMAND [ARG...]",
		Short: "Check that a new worker build can continue the open runs",
		Long: `Start your worker with the extra last argument ` + checkFlag + `, which the SDK removes before
main begins. The worker replays the history of every open run of its workflow types without running
any step, and reports runs that would diverge: at which step, which recorded calls the code does not
make, and which of its calls are not recorded. It gets the server, namespace, key and TLS files as
KAGZI_ADDRESS, KAGZI_NAMESPACE, KAGZI_API_KEY, KAGZI_TLS_CA and so on.

With -o json, jsonl or yaml stdout holds only the counts; the worker's own output goes to stderr.

Exit code: 0 when all open runs can continue or there are none, 1 when runs would diverge or the
worker did not start the check; any other code is the worker's own.`,
		Example: `  kagzi check ./worker
  kagzi check --address prod:50051 --namespace orders ./worker --config worker.toml
  kagzi check go run ./cmd/worker`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := e.resolve(cmd); err != nil {
				return err
			}
			return runCheck(cmd.Context(), e, e.streams(cmd), args)
		},
	}
	e.register(cmd)
	cmd.Flags().SetInterspersed(false) // flags after the command's name belong to that command
	return cmd
}

func runCheck(ctx context.Context, e *env, s streams, args []string) error {
	if limit := e.flags.Timeout; limit > 0 {
		limited, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		ctx = limited
	}
	environment, err := checkEnvironment(os.Environ(), e.flags)
	if err != nil {
		return err
	}
	build := exec.CommandContext(ctx, args[0], append(args[1:len(args):len(args)], checkFlag)...)
	build.Env = environment
	out := newOutput(s, e.flags, e.lookup)
	said := &verdict{out: s.out}
	build.Stdout, build.Stderr = said, s.err
	if out.format != "table" { // stdout holds the document only
		said.out = s.err
		build.Stderr = said
	}
	build.Cancel = func() error { return build.Process.Signal(os.Interrupt) }
	build.WaitDelay = checkTimeout
	err = build.Run()
	if out.format != "table" && len(said.checks) > 0 && ctx.Err() == nil {
		if err := out.print(said.result()); err != nil {
			return err
		}
	}
	switch {
	case err == nil:
		return said.ofSuccess(args[0])
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &timeoutError{limit: e.flags.timeout, err: err}
	case ctx.Err() != nil:
		return ctx.Err()
	}
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		return &usageError{err: fmt.Errorf("cannot start %s: %w", args[0], err),
			hint: []string{"usage: kagzi check [flags] COMMAND [ARG...]"}}
	}
	if ended.ExitCode() == ExitError && len(said.checks) > 0 {
		return codeError(ExitError) // the worker has printed which runs diverge
	}
	return &checkError{command: args[0], state: ended.ProcessState}
}

// verdictLine matches the last line that the SDK prints in a check. Unlike a file or a variable it
// passes through containers and shells.
var verdictLine = regexp.MustCompile(
	`^checked (\d+) open runs of (\d+) workflow types in namespace (.*): (\d+) diverge, (\d+) came to no end\r?$`)

// verdictLength is an upper bound for such a line.
const verdictLength = 1024

// verdict forwards a worker's output and parses the verdict lines in it.
type verdict struct {
	out    io.Writer
	line   []byte // the current line, cut off if too long for a verdict
	checks []any  // one per worker in the process; empty if none was checked
	failed bool
}

func (v *verdict) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		v.line = append(v.line, line[:min(len(line), verdictLength-len(v.line))]...)
		if rest = after; !ended {
			break
		}
		if said := verdictLine.FindSubmatch(v.line); said != nil {
			v.failed = v.failed || string(said[4]) != "0" || string(said[5]) != "0"
			v.checks = append(v.checks, render.Object{
				{Name: "namespace", Value: string(said[3])}, {Name: "open_runs", Value: json.Number(said[1])},
				{Name: "workflow_types", Value: json.Number(said[2])}, {Name: "diverged", Value: json.Number(said[4])},
				{Name: "stuck", Value: json.Number(said[5])},
			})
		}
		v.line = v.line[:0]
	}
	return v.out.Write(p)
}

// result returns the verdict as a document.
func (v *verdict) result() result {
	return result{
		document: render.Object{{Name: "sound", Value: !v.failed}, {Name: "checks", Value: v.checks}},
		items:    v.checks,
	}
}

// ofSuccess returns the error for a worker that exited with 0, or nil if its verdict agrees.
func (v *verdict) ofSuccess(command string) error {
	switch {
	case len(v.checks) == 0:
		return fmt.Errorf(
			"%s exited with 0 but checked nothing: main must call the worker's Run, and the argument %s must reach it",
			command, checkFlag)
	case v.failed:
		return fmt.Errorf(
			"%s exited with 0 although runs would diverge: main must exit with another code when the worker's Run returns an error", command)
	}
	return nil
}

// checkEnvironment returns the environment for the checked worker: this process's own, with the
// server from the flags. No profile can change it.
func checkEnvironment(own []string, f *ClientFlags) ([]string, error) {
	environment, err := Environment(own, f.Profile)
	if err != nil {
		return nil, &usageError{err: err}
	}
	return environment, nil
}

// Environment returns own with the settings of a resolved profile in place of its KAGZI_ variables.
// Errors are about the key file.
func Environment(own []string, p profile.Profile) ([]string, error) {
	key, err := p.Key()
	if err != nil {
		return nil, err
	}
	f := &ClientFlags{Profile: p}
	given := map[string]string{"KAGZI_PROFILE": profile.Off}
	for _, name := range profile.Keys() {
		given[profile.Variable(name)] = f.shown(name)
	}
	given["KAGZI_API_KEY"], given["KAGZI_API_KEY_FILE"] = string(key), ""
	var environment []string
	for _, variable := range own {
		name, _, _ := strings.Cut(variable, "=")
		if _, replaced := given[name]; !replaced {
			environment = append(environment, variable)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if given[name] != "" {
			environment = append(environment, name+"="+given[name])
		}
	}
	return environment, nil
}

// checkError reports a worker that ended without a verdict.
type checkError struct {
	command string
	state   *os.ProcessState
}

func (e *checkError) Error() string {
	return fmt.Sprintf(
		"%s ended with %s and no verdict; see its output, and check that main calls the worker's Run and gets the argument %s",
		e.command, e.state, checkFlag)
}

// ExitCode returns the worker's own code, or 128 plus the signal as a shell does.
func (e *checkError) ExitCode() int {
	if code := e.state.ExitCode(); code > 0 {
		return code
	}
	if s, ok := e.state.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return 128 + int(s.Signal())
	}
	return ExitError
}
