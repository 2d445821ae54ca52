package daemon

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// Commands are `kagzi server` and `kagzi db`. version is the program's.
func Commands(version string, b Backends) []*cobra.Command {
	return []*cobra.Command{newServer(version, b), newDatabase(b)}
}

func newServer(version string, b Backends) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Run a server",
		Long: `Run a server: on an embedded database in the data directory, or with --db on Postgres, which several servers can share.

Each flag has an environment variable, named in brackets; a flag goes before a variable. SIGTERM and Ctrl-C stop the server in
good order, a second one at once.`,
		Example: `  kagzi server
  kagzi server --db postgres://kagzi@localhost/kagzi
  kagzi server --listen 127.0.0.1:0 --data-dir /var/lib/kagzi`,
		Args: cobra.NoArgs,
	}
	register(cmd.Flags(), serverSettings)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, warnings, err := resolve(cmd.Flags(), serverSettings, os.LookupEnv)
		if err != nil {
			return err
		}
		c.Version, c.Log = version, newLog(cmd.ErrOrStderr(), c.LogLevel, c.LogFormat)
		for _, w := range warnings {
			c.Log.Warn(w)
		}
		return Run(cmd.Context(), c, b, func(r Ready) { announce(cmd.OutOrStdout(), r) })
	}
	return cmd
}

// announce prints what people and scripts need to go on.
func announce(w io.Writer, r Ready) {
	fmt.Fprintf(w, `kagzi server is ready
  address   %s
  database  %s %s
  version   %s
  next      kagzi workflow list --address %s
`, r.Address, r.Database.Backend, plain(r.Database.Database), plain(r.Version), r.Client)
}
