package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kagzi/kagzi/engine/daemon/internal/gc"
	"github.com/kagzi/kagzi/engine/daemon/internal/output"
	"github.com/kagzi/kagzi/engine/daemon/internal/platform"
)

// Commands returns `kagzi server`, `kagzi db` and `kagzi tls`. version is the program's version.
func Commands(version string, b Backends) []*cobra.Command {
	return []*cobra.Command{newServer(version, b, func(Ready) error { return nil }), newDatabase(b), newTLS()}
}

// Serve runs `kagzi server` with these arguments until ctx ends. It prints to os.Stdout and
// os.Stderr and calls ready once it serves; it logs an error of ready.
func Serve(ctx context.Context, version string, b Backends, args []string, ready func(Ready) error) error {
	cmd := newServer(version, b, ready)
	cmd.SetArgs(args)
	cmd.SetOut(os.Stdout)
	cmd.SetErr(os.Stderr)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usagef("%w", err) })
	return cmd.ExecuteContext(ctx)
}

func newServer(version string, b Backends, ready func(Ready) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Run a server",
		Long: `Run a server: on an embedded database in the data directory, or with --db on Postgres, which several
servers can share.

Each flag has an environment variable, named in brackets, and a key of the same name in table
[server] of kagzi.toml. Precedence: flag, environment, file, default. --print-config prints the
settings as such a file, with the origin of each. SIGTERM and Ctrl-C stop the server gracefully, a
second one at once. SIGHUP reloads the settings and applies the log level and the TLS files; changed
TLS files are also reloaded automatically.

If other machines can reach it, a server requires TLS and at least one key; see kagzi tls and kagzi
key. Once a key exists, every call needs one, including /metrics but not /healthz and /readyz. On
such an address these are served over TLS too. A setting that names a file also accepts
credential:NAME, for files passed by systemd's LoadCredential.`,
		Example: `  kagzi server
  kagzi server --db postgres://kagzi@localhost/kagzi
  kagzi server --listen 127.0.0.1:0 --data-dir /var/lib/kagzi
  kagzi server --print-config > kagzi.toml`,
		Args: cobra.NoArgs,
	}
	register(cmd.Flags(), serverSettings)
	printOnly := cmd.Flags().Bool("print-config", false,
		"print the settings with the origin of each, and exit")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		platform.IgnoreBrokenPipes()
		read := func() (Config, []string, error) { return resolve(cmd.Flags(), serverSettings, system()) }
		c, warnings, err := read()
		if err != nil {
			return err
		}
		level := &slog.LevelVar{}
		level.Set(c.LogLevel)
		if *printOnly {
			log := output.NewLog(cmd.ErrOrStderr(), level, c.LogFormat)
			for _, w := range warnings {
				log.Warn(w)
			}
			return errors.Join(printConfig(cmd.OutOrStdout(), &c), c.check())
		}
		said := output.NewQueue(cmd.OutOrStdout(), nil)
		defer said.Close(outputLimit)
		logged := output.NewQueue(cmd.ErrOrStderr(), output.DroppedLines(c.LogFormat))
		defer logged.Close(outputLimit)
		c.Version, c.Log, c.LogDropped = version, output.NewLog(logged, level, c.LogFormat), logged.Dropped
		for _, w := range warnings {
			c.Log.Warn(w)
		}
		ctx, stop := context.WithCancel(cmd.Context())
		defer stop()
		gc.Tune(ctx, gc.Interval)
		heard, lost, deaf := platform.Hangups()
		defer deaf()
		r := &reloading{heard: heard, lost: lost, stop: stop, read: read, level: level}
		return lastWords(run(ctx, c, b, r, func(r Ready) {
			announce(said, r)
			if err := ready(r); err != nil {
				c.Log.Warn("cannot tell the service manager that the server is ready", "error", err)
			}
		}))
	}
	return cmd
}

// outputLimit limits how long a server that ends waits for its stdout and its stderr: nobody may
// be reading them.
const outputLimit = 2 * time.Second

// lastWords marks an error of the server, so that its text is not written for longer than
// outputLimit.
func lastWords(err error) error {
	if err == nil {
		return nil
	}
	return hurried{err}
}

type hurried struct{ error }

func (h hurried) Unwrap() error             { return h.error }
func (h hurried) WriteLimit() time.Duration { return outputLimit }

// announce prints what people and scripts need to continue.
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
		port := scheme + "://" + r.HTTP + r.Base
		if r.Web {
			fmt.Fprintf(w, "  web       %s/\n", port)
		}
		fmt.Fprintf(w, "  http      %s/openapi\n", port)
		fmt.Fprintf(w, "  metrics   %s/metrics\n", port)
	}
	if r.AGQ != "" {
		fmt.Fprintf(w, "  agq       %s\n", r.AGQ)
	}
	fmt.Fprintf(w, "  next      kagzi workflow list --address %s%s\n", r.Client, reach)
}

// Serving is a server that runs in this process next to something else. Close it.
type Serving struct {
	Ready Ready

	cancel context.CancelFunc
	ended  chan error
}

// Start runs a server with the settings of `kagzi server` without flags. It returns once it serves,
// on an error, or when ctx ends. It writes no log, because something else owns the terminal.
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
		if err == nil { // it stopped gracefully before it served
			err = ctx.Err()
		}
		cancel()
		return nil, err
	}
}

// Close stops the server gracefully and waits for it.
func (s *Serving) Close() error {
	s.cancel()
	return <-s.ended
}
