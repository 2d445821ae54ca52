// Package cli owns the command line: what `kagzi …` understands, what it prints and with which code it ends. Each
// command is an options struct, a newX that parses into it, and a runX that works; all output goes through one writer.
//
// Begin with this file, which lists the commands, and execute.go, which runs one and makes an exit
// code of what came of it. Most files are named after a command or its subject: retry, cancel,
// terminate, pause, resume, pin and signal are in steer.go, overrides in act.go, export and import
// in capsule.go, namespaces and the audit in admin.go, queues and workers in queue.go. What they
// share:
//
//   - A server: how it is reached, and what does without one (client.go). What its errors mean to
//     people (errors.go, internal/spelling).
//   - Output: the one writer (output.go), pages of lists (list.go), a run with all that is known of
//     it (show.go, tree.go).
//   - Doing something to things that are named, one after the other (act.go), or to all runs that a
//     filter chooses (choose.go, many.go).
//   - Help of commands, and the guide's chapters (help.go, internal/guide), and both as man
//     pages (man.go, internal/manual).
//   - Flags for payloads, and questions (input.go), batches (start.go), flags of other kinds
//     (internal/flagvalue), and how the shell completes them (choose.go).
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

// env is what commands take from their environment, so that tests can replace it.
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

// Root is the command `kagzi` with the client's commands in it. version is what `kagzi version` prints. The caller
// adds the commands of other packages and hands it to Execute.
func Root(version string, local Local) *cobra.Command {
	e := newEnv(version)
	e.local = local
	cmd := root(e)
	cmd.AddCommand(newMan(e))
	addUI(cmd, e)
	return cmd
}

// Commands are the client's commands by themselves: workflow, schedule, worker, queue, namespace,
// key, audit, profile, doctor, check and version. They reach servers only.
func Commands(version string) []*cobra.Command { return commands(newEnv(version)) }

func root(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kagzi",
		Short: "Durable workflows in one binary",
		Long: `Kagzi runs durable workflows: code whose steps are recorded, so that it goes on after any crash.

One binary is the server, the workers' coordinator and this command line. Start with:

  kagzi                   the terminal UI, with a server of its own where none answers
  kagzi server            a server on an embedded database
  kagzi workflow --help   start, see and steer runs
  kagzi doctor            what is wrong, and what to do about it`,
		Version: versionText(e.version),
	}
	cmd.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	cmd.AddCommand(commands(e)...)
	addHelp(cmd, e)
	return cmd
}

func commands(e *env) []*cobra.Command {
	return []*cobra.Command{newWorkflow(e), newSchedule(e), newWorker(e), newQueue(e), newNamespace(e), newKey(e),
		newAudit(e, &auditOptions{}), newProfile(e), newDoctor(e), newCheck(e), newVersion(e, &versionOptions{})}
}

func newWorkflow(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "workflow",
		Aliases: []string{"wf", "run"},
		Short:   "Start, see and steer runs",
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
		Short: "Print the version of this binary, and of the server with --server",
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
					return []string{"kagzi " + versionText(e.version)}
				},
				document: clientVersion(e.version),
			})
		},
	}
	cmd.Flags().BoolVar(&o.server, "server", false, "ask the server too")
	e.register(cmd)
	return cmd
}

// versionText is what people read of a version, here and of the flag --version.
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
