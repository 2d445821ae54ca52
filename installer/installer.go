// Package installer implements `kagzi service`: the server as a service of systemd, launchd and
// Windows. A plan describes an installation. It depends on a Spec alone, so it can be computed for
// any system on any system. A manager carries it out and undoes it on failure.
package installer

import (
	"context"

	"github.com/spf13/cobra"
)

// Options are what the commands need from the server. Only Run is required.
type Options struct {
	// Run runs the server with the arguments of `kagzi server` until ctx ends. It calls Ready once
	// it serves. It prints to os.Stdout and os.Stderr as they are when it is called; some service
	// managers make them log files.
	Run func(ctx context.Context, args []string) error
	// Alive is called by the watchdog of a running service and reports whether the process can
	// still work. A database outage must not be an error, because a restart would not help. Nil
	// means that a running process is alive.
	Alive func(ctx context.Context) error
	// Health is called by `kagzi service status` and reports whether the server at host:port
	// serves; an empty address is the server's default. Nil omits the line.
	Health func(ctx context.Context, address string) error
	// Listen returns the listen address in a settings file; empty if it has none or cannot be read.
	// Nil returns none.
	Listen func(config string) string
}

// Command returns `kagzi service`.
func Command(o Options) *cobra.Command { return command(o, newHost) }

func command(o Options, here hostFunc) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "service",
		Short: "Install and control the server as a service",
		Long: `Install, control and remove the server as a service that starts at boot and is restarted when it
fails: with systemd on Linux, launchd on macOS, and the service manager of Windows. With --user it
is a user service instead of a system service.`,
		Example: `  sudo kagzi service install --copy-binary
  kagzi service install --user
  kagzi service status
  kagzi service logs --follow
  sudo kagzi service uninstall --purge`,
	}
	cmd.AddCommand(
		newInstall(here), newReconfigure(here), newUninstall(here),
		newVerb(here, "start", "Start the service", manager.start),
		newVerb(here, "stop", "Stop the service until the next boot", manager.stop),
		newVerb(here, "restart", "Restart the service, for new settings or a new binary", manager.restart),
		newStatus(here, o), newLogs(here), newPrint(here), newRun(o),
	)
	return cmd
}
