// Package installer owns `kagzi service`: the server as a service of systemd, of launchd and of
// Windows. What an installation does is a plan made from a Spec alone, for any system on any
// system; a manager carries it out, and takes it back when it fails.
package installer

import (
	"context"

	"github.com/spf13/cobra"
)

// Options are what the commands need of the server. Only Run is needed.
type Options struct {
	// Run is the server with the arguments of `kagzi server`, until ctx ends. It calls Ready once
	// it serves, and prints to os.Stdout and os.Stderr as they are when it is called, which under
	// some service managers are log files.
	Run func(ctx context.Context, args []string) error
	// Alive is asked by the watchdog of a running service whether the process can still do its
	// work. An outage of the database is no reason to say no: starting again would not end it. Nil
	// means that a process that runs is alive.
	Alive func(ctx context.Context) error
	// Health is asked by `kagzi service status` whether the server at an address, host:port,
	// serves; an empty address is the server's default. Nil leaves the line out.
	Health func(ctx context.Context, address string) error
	// Listen is the address that a file of settings has the server listen on; empty where it says
	// none or cannot be read. Nil is none.
	Listen func(config string) string
}

// Command is `kagzi service`.
func Command(o Options) *cobra.Command { return command(o, newHost) }

func command(o Options, here hostFunc) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "service",
		Short: "Run the server as a service of this machine",
		Long: `Install, steer and remove the server as a service that starts with the machine and is started again when it fails: with
systemd on Linux, launchd on macOS, and the service manager of Windows. With --user it is a service of yours, not of the machine.`,
		Example: `  sudo kagzi service install --copy-binary
  kagzi service install --user
  kagzi service status
  kagzi service logs --follow
  sudo kagzi service uninstall --purge`,
	}
	cmd.AddCommand(
		newInstall(here), newReconfigure(here), newUninstall(here),
		newVerb(here, "start", "Start the service", manager.start),
		newVerb(here, "stop", "Stop the service; it starts again with the machine", manager.stop),
		newVerb(here, "restart", "Stop and start the service, for new settings or a new binary", manager.restart),
		newStatus(here, o), newLogs(here), newPrint(here), newRun(o),
	)
	return cmd
}
