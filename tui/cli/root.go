// Package cli implements the `kagzi` command line: its commands, output and exit codes. Each
// command is an options struct, a newX that parses into it, and a runX that does the work. All
// output goes through one writer.
//
// Start with this file, which lists the commands, and execute.go, which runs one and maps its error
// to an exit code. Most files are named after a command or its subject. retry, cancel, terminate,
// pause, resume, pin and signal are in steer.go, overrides in act.go, export and import in
// capsule.go, namespaces and the audit log in admin.go, queues and workers in queue.go; doctor.go asks
// what internal/diagnosis judges; mcp.go serves agents by tui/mcp, web.go pages by tui/web. Shared code:
//
//   - Connecting to a server, or working without one (client.go); error messages (errors.go,
//     internal/spelling).
//   - Output: the writer (output.go), paged lists (list.go), one run in full (show.go, tree.go).
//   - Acting on named things one by one (act.go), or on all runs that match a filter (choose.go,
//     many.go).
//   - Command help and the guide's chapters (help.go, tui/guide), and both as man pages (man.go,
//     internal/manual).
//   - Payload flags and prompts (input.go), batches (start.go), flag types (internal/flagvalue) and
//     shell completion (choose.go).
package cli

import (
	"context"
	"os"
	"runtime"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/profile"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/render"
)

// env is what commands take from their environment. Tests replace it.
type env struct {
	flags   *ClientFlags
	version string
	dial    func(tui.DialOptions) (tui.API, func() error, error)
	lookup  func(string) (string, bool) // an environment variable
	find    func(profile.Profile) (profile.Profile, error)
	local   Local
	now     func() time.Time
	newID   func() string // a UUIDv7
	streams func(*cobra.Command) streams
}

func newEnv(version string) *env {
	return &env{
		flags:   &ClientFlags{},
		version: version,
		dial: func(o tui.DialOptions) (tui.API, func() error, error) {
			conn, err := tui.Dial(o)
			if err != nil {
				return nil, nil, err
			}
			return conn, conn.Close, nil
		},
		lookup:  os.LookupEnv,
		find:    profile.Resolve,
		now:     time.Now,
		newID:   func() string { return uuid.Must(uuid.NewV7()).String() },
		streams: streamsOf,
	}
}

// Root returns the command `kagzi` with the client commands. version is what `kagzi version`
// prints. The caller adds the commands of other packages and passes it to Execute.
func Root(version string, local Local) *cobra.Command {
	e := newEnv(version)
	e.local = local
	cmd := root(e)
	cmd.AddCommand(newMan(e))
	addUI(cmd, e)
	return cmd
}

// Commands returns the client commands alone: workflow, schedule, worker, queue, namespace, key, hook,
// agq, audit, mcp, profile, doctor, check and version. They only talk to servers.
func Commands(version string) []*cobra.Command { return commands(newEnv(version)) }

func root(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kagzi",
		Short: "Durable workflows in one binary",
		Long: `Kagzi runs durable workflows: completed steps are recorded, so a run continues after any crash.

One binary is the server, the terminal UI and this command line. Start with:

  kagzi                   open the terminal UI; starts a server if none is running
  kagzi server            run a server on an embedded database
  kagzi workflow --help   start, inspect and control runs
  kagzi doctor            check the setup and suggest fixes`,
		Version: versionText(e.version),
	}
	cmd.AddCommand(commands(e)...)
	addHelp(cmd, e)
	return cmd
}

func commands(e *env) []*cobra.Command {
	return []*cobra.Command{newWorkflow(e), newSchedule(e), newWorker(e), newQueue(e), newNamespace(e), newKey(e),
		newHook(e), newAGQ(e), newAudit(e, &auditOptions{}), newMCP(e, &mcpOptions{}), newWeb(e, &webOptions{}),
		newProfile(e), newDoctor(e), newCheck(e), newVersion(e, &versionOptions{})}
}

func newWorkflow(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "workflow",
		Aliases: []string{"wf", "run"},
		Short:   "Start, inspect and control runs",
	}
	cmd.AddCommand(
		newStart(e, &startOptions{}),
		newList(e, &listOptions{}),
		newShow(e, &showOptions{}),
		newWatch(e, &watchOptions{}),
		newWait(e, &waitOptions{}),
		newCount(e, &countOptions{}),
		newExplain(e, &explainOptions{}),
		newCancel(e, &cancelOptions{}),
		newTerminate(e, &terminateOptions{}),
		newRetry(e, &retryOptions{}),
		newPause(e, &holdOptions{}),
		newResume(e, &holdOptions{}),
		newSignal(e, &signalOptions{}),
		newOverride(e, &overrideOptions{}),
		newExport(e, &exportOptions{}),
		newImport(e, &importOptions{}),
		newPin(e, &holdOptions{}),
		newUnpin(e, &holdOptions{}),
	)
	e.register(cmd)
	return cmd
}

type versionOptions struct{ server bool }

func newVersion(e *env, o *versionOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this binary; with --server also the server's",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.server {
				return e.run(cmd, func(ctx context.Context, c *client) error {
					return runServerVersion(ctx, c, e.version)
				})
			}
			if err := e.resolve(cmd); err != nil {
				return err
			}
			return newOutput(e.streams(cmd), e.flags, e.lookup).print(result{
				human: func() []string {
					return []string{"kagzi version " + versionText(e.version)}
				},
				document: clientVersion(e.version),
			})
		},
	}
	cmd.Flags().BoolVar(&o.server, "server", false, "also print the server's version")
	e.register(cmd)
	return cmd
}

// versionText formats a version for `kagzi version` and --version, which cobra prints. A template for
// it would link package text/template, and with that each method of each type: 3.8 MB.
func versionText(version string) string {
	return version + " (" + runtime.GOOS + "/" + runtime.GOARCH + ", " + runtime.Version() + ")"
}

func clientVersion(version string) render.Object {
	return render.Object{{Name: "version", Value: version}, {Name: "go", Value: runtime.Version()},
		{Name: "platform", Value: runtime.GOOS + "/" + runtime.GOARCH}}
}

func runServerVersion(ctx context.Context, c *client, version string) error {
	info, err := c.GetServerInfo(ctx, &kagziv1.GetServerInfoRequest{})
	if err != nil {
		return err
	}
	return c.out.print(result{
		human: func() []string {
			return render.PairLines(append([]render.Pair{{Label: "Client", Lines: []string{version}}},
				render.ServerPairs(info, c.view())...), c.out.colour)
		},
		document: append(clientVersion(version), render.Field{Name: "server", Value: render.Document(info)}),
	})
}
