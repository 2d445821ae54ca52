package cli

import (
	"context"
	"runtime"

	"github.com/spf13/cobra"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

type versionOptions struct{ server bool }

func newVersion(e *env, o *versionOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this binary, and of the server with --server",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.server {
				return e.run(cmd, func(ctx context.Context, c *client) error { return runServerVersion(ctx, c, e.version) })
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
	return render.Object{{Name: "version", Value: version}, {Name: "go", Value: runtime.Version()}, {Name: "platform", Value: runtime.GOOS + "/" + runtime.GOARCH}}
}

func runServerVersion(ctx context.Context, c *client, version string) error {
	info, err := c.GetServerInfo(ctx, &kagziv1.GetServerInfoRequest{})
	if err != nil {
		return err
	}
	return c.out.print(result{
		human: func() []string {
			return render.PairLines(append([]render.Pair{{Label: "Client", Lines: []string{version}}}, render.ServerPairs(info, c.view())...), c.out.colour)
		},
		document: append(clientVersion(version), render.Field{Name: "server", Value: render.Document(info)}),
	})
}
