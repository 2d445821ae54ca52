package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kagzi/kagzi/engine/daemon/internal/gc"
	"github.com/kagzi/kagzi/engine/daemon/internal/output"
	"github.com/kagzi/kagzi/engine/daemon/internal/platform"
)

// Commands are `kagzi server`, `kagzi db` and `kagzi tls`. version is the program's.
func Commands(version string, b Backends) []*cobra.Command {
	return []*cobra.Command{newServer(version, b, func(Ready) {}), newDatabase(b), newTLS()}
}

// Serve is `kagzi server` with these arguments, until ctx ends. It prints what the command prints
// to os.Stdout and os.Stderr as they are now, and calls ready once it serves.
func Serve(ctx context.Context, version string, b Backends, args []string, ready func(Ready)) error {
	cmd := newServer(version, b, ready)
	cmd.SetArgs(args)
	cmd.SetOut(os.Stdout)
	cmd.SetErr(os.Stderr)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usagef("%w", err) })
	return cmd.ExecuteContext(ctx)
}

func newServer(version string, b Backends, ready func(Ready)) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Run a server",
		Long: `Run a server: on an embedded database in the data directory, or with --db on Postgres, which several servers can share.

Each flag has an environment variable, named in brackets, and a key of the same name in table [server] of kagzi.toml. A flag goes
before a variable, and that before the file. --print-config writes such a file, with where each value comes from. SIGTERM and Ctrl-C stop
the server in good order, a second one at once. SIGHUP has it read its settings again and take up the log level and the files of TLS,
which it also takes up by itself when they change.

Where other machines can reach it, a server wants TLS and a key; kagzi tls and kagzi key make them. From the first key on every call
needs one, and /metrics too; /healthz and /readyz never do. On such an address they are served over TLS as well. The file of each
setting that names one can be credential:NAME, which systemd hands over by LoadCredential.`,
		Example: `  kagzi server
  kagzi server --db postgres://kagzi@localhost/kagzi
  kagzi server --listen 127.0.0.1:0 --data-dir /var/lib/kagzi
  kagzi server --print-config > kagzi.toml`,
		Args: cobra.NoArgs,
	}
	register(cmd.Flags(), serverSettings)
	printOnly := cmd.Flags().Bool("print-config", false,
		"print the settings, with where each comes from, and do nothing else")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		read := func() (Config, []string, error) { return resolve(cmd.Flags(), serverSettings, system()) }
		c, warnings, err := read()
		if err != nil {
			return err
		}
		level := &slog.LevelVar{}
		level.Set(c.LogLevel)
		c.Version, c.Log = version, output.NewLog(cmd.ErrOrStderr(), level, c.LogFormat)
		for _, w := range warnings {
			c.Log.Warn(w)
		}
		if *printOnly {
			return errors.Join(printConfig(cmd.OutOrStdout(), &c), c.check())
		}
		ctx, stop := context.WithCancel(cmd.Context())
		defer stop()
		gc.Tune(ctx, gc.Interval)
		heard, lost, deaf := platform.Hangups()
		defer deaf()
		r := &reloading{heard: heard, lost: lost, stop: stop, read: read, level: level}
		return run(ctx, c, b, r, func(r Ready) {
			announce(cmd.OutOrStdout(), r)
			ready(r)
		})
	}
	return cmd
}

// announce prints what people and scripts need to go on.
func announce(w io.Writer, r Ready) {
	fmt.Fprintf(w, `kagzi server is ready
  address   %s
  database  %s %s
  version   %s
`, r.Address, r.Database.Backend, output.Plain(r.Database.Database), output.Plain(r.Version))
	scheme, reach := "http", ""
	if r.HTTPS {
		scheme = "https"
	}
	switch {
	case r.CA != "":
		reach = " --tls-ca " + word(r.CA)
	case r.TLS:
		reach = " --tls"
	}
	if r.Keyed {
		reach += " --api-key-file FILE"
	}
	if r.HTTP != "" {
		fmt.Fprintf(w, "  metrics   %s://%s/metrics\n", scheme, r.HTTP)
	}
	fmt.Fprintf(w, "  next      kagzi workflow list --address %s%s\n", r.Client, reach)
}

// Serving is a server that runs beside something else in the process. Close it.
type Serving struct {
	Ready Ready

	cancel context.CancelFunc
	ended  chan error
}

// Start runs a server with the settings that `kagzi server` would have without flags, and comes
// back when it serves, or with an error, also when ctx ends before. It writes no log: the terminal
// belongs to somebody else.
func Start(ctx context.Context, version string, b Backends) (*Serving, error) {
	flags := pflag.NewFlagSet("server", pflag.ContinueOnError)
	register(flags, serverSettings)
	c, _, err := resolve(flags, serverSettings, system())
	if err != nil {
		return nil, err
	}
	c.Version, c.Log = version, slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(ctx)
	s := &Serving{cancel: cancel, ended: make(chan error, 1)}
	ready := make(chan Ready, 1)
	go func() { s.ended <- Run(ctx, c, b, func(r Ready) { ready <- r }) }()
	select {
	case s.Ready = <-ready:
		return s, nil
	case err := <-s.ended:
		if err == nil { // it stopped in good order before it served
			err = ctx.Err()
		}
		cancel()
		return nil, err
	}
}

// Close stops the server in good order and waits for it.
func (s *Serving) Close() error {
	s.cancel()
	return <-s.ended
}
