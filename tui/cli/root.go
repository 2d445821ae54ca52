// Package cli owns the command line: what `kagzi …` understands, what it prints and with which code it ends. Each
// command is an options struct, a newX that parses into it, and a runX that works; all output goes through one writer.
//
// Begin with this file, which lists the commands, and execute.go, which runs one and makes an exit code of what came of it. Most files are named
// after a command; cancel and terminate are in stop.go, pause, resume and pin in hold.go, export and import in capsule.go. What they share:
//
//   - A server: how it is reached (client.go), and what does without one (near.go). What its errors mean to people (errors.go, spelling.go).
//   - Output: the one writer (output.go), pages of lists (page.go), a run with all that is known of it (shown.go, tree.go), questions (ask.go).
//   - Doing something to things that are named, one after the other (act.go), or to all runs that a filter chooses (choose.go, many.go, bulk.go).
//   - Flags for payloads (input.go, batch.go), policies (policy.go), retention (retention.go), and values of other kinds (values.go), and how the
//     shell completes them (complete.go).
package cli

import (
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/kagzi/kagzi/sdk/profile"
	"github.com/kagzi/kagzi/tui"
)

// env is what commands take from the world, so that tests can be the world.
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

func world(version string) *env {
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
// adds the commands of other rooms and hands it to Execute.
func Root(version string, local Local) *cobra.Command {
	e := world(version)
	e.local = local
	cmd := root(e)
	cmd.AddCommand(newMan(version))
	addUI(cmd, e)
	return cmd
}

// Commands are the client's commands by themselves: workflow, schedule, worker, queue, namespace, key, audit, profile, doctor, check and
// version. They reach servers only.
func Commands(version string) []*cobra.Command { return commands(world(version)) }

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
	return cmd
}

func commands(e *env) []*cobra.Command {
	return []*cobra.Command{newWorkflow(e), newSchedule(e), newWorker(e), newQueue(e), newNamespace(e), newKey(e), newAudit(e, &auditOptions{}), newProfile(e), newDoctor(e), newCheck(e), newVersion(e, &versionOptions{})}
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
