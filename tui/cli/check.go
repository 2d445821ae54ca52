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

// checkFlag is what a worker's build is started with to replay the open runs instead of working.
const checkFlag = "-kagzi-check"

// checkTimeout is how long an interrupted check may take to end by itself.
const checkTimeout = 10 * time.Second

func newCheck(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check [flags] COMMAND [ARG...]",
		Short: "Say whether a new build of a worker would go on with the open runs",
		Long: `Start a build of your worker with the extra last argument ` + checkFlag +
			`, which the SDK takes away before its main begins: it replays
the history of every open run of its workflow types on the server without running a step's body, and reports the runs that would diverge,
and at which step. The server, namespace, key and TLS files that hold here reach it as KAGZI_ADDRESS, KAGZI_NAMESPACE, KAGZI_API_KEY,
KAGZI_TLS_CA and so on.

With -o json and the like stdout holds the counts alone, and what the build says goes to stderr.

Exit code: 0 when all open runs would go on, 1 when runs would diverge, or when the build ended well and checked nothing; any other code is the
build's own.`,
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
	cmd.Flags().SetInterspersed(false) // what follows the command's name is the command's
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
	if out.format != "table" { // a document is all that stdout holds
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
		return &usageError{err: fmt.Errorf("%s does not start: %w", args[0], err),
			hint: []string{"usage: kagzi check [flags] COMMAND [ARG...]"}}
	}
	if ended.ExitCode() == ExitError && len(said.checks) > 0 {
		return codeError(ExitError) // it has said which runs would diverge
	}
	return &checkError{command: args[0], state: ended.ProcessState}
}

// verdictLine is what the SDK says last in a check. It crosses containers and shells, as a file or
// a variable would not.
var verdictLine = regexp.MustCompile(
	`^checked (\d+) open runs of (\d+) workflow types in namespace (.*): (\d+) diverge, (\d+) came to no end\r?$`)

// verdictLength is more than such a line has.
const verdictLength = 1024

// verdict hands on what a build prints, and hears whether it has checked, and whether all runs would go on.
type verdict struct {
	out    io.Writer
	line   []byte // begun, and cut where it is too long for a verdict
	checks []any  // one for each worker of the build; none: it has not checked
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

// result is the verdict for programs.
func (v *verdict) result() result {
	return result{
		document: render.Object{{Name: "sound", Value: !v.failed}, {Name: "checks", Value: v.checks}},
		items:    v.checks,
	}
}

// ofSuccess is what a build's exit code 0 is worth.
func (v *verdict) ofSuccess(command string) error {
	switch {
	case len(v.checks) == 0:
		return fmt.Errorf(
			"%s checked nothing, although it ended well: its main must call the worker's Run, and %s must reach it",
			command, checkFlag)
	case v.failed:
		return fmt.Errorf(
			"%s ended well although runs would not go on: its main must end with another exit code when the worker's Run returns an error", command)
	}
	return nil
}

// checkEnvironment is the environment of a build that is checked: this process's own, with the
// server that the flags name, which no profile is to change.
func checkEnvironment(own []string, f *ClientFlags) ([]string, error) {
	environment, err := Environment(own, f.Profile)
	if err != nil {
		return nil, &usageError{err: err}
	}
	return environment, nil
}

// Environment is an environment with the server of a profile that was resolved, whatever it said of
// servers before. The errors are about the file of the key.
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

// checkError says that a build ended otherwise than a check does.
type checkError struct {
	command string
	state   *os.ProcessState
}

func (e *checkError) Error() string {
	return fmt.Sprintf(
		"%s could not be checked: it ended with %s and no verdict; see what it says itself, that its main calls the worker's Run, and that %s reaches it",
		e.command, e.state, checkFlag)
}

// ExitCode is the build's own, or as a shell's for one that a signal killed.
func (e *checkError) ExitCode() int {
	if code := e.state.ExitCode(); code > 0 {
		return code
	}
	if s, ok := e.state.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return 128 + int(s.Signal())
	}
	return ExitError
}
