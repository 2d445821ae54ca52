package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kagzi/kagzi/tui/guide"
	"github.com/kagzi/kagzi/tui/mcp"
)

type mcpOptions struct{ writes bool }

func newMCP(e *env, o *mcpOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve agents over stdin and stdout, by the Model Context Protocol",
		Long: `Serve an agent over stdin and stdout, by the Model Context Protocol (MCP). The agent's program starts
this command; it calls the server with the same flags, profile and key as other commands.

The agent can list and explain runs, steps, workers, queues and schedules, and read this guide. With
--allow-writes it can also start, signal, cancel, terminate, pause, resume and retry runs, as far as
the key's role allows. The audit log has the agent's own name beside the key: a claim, not an identity.

A server serves the same on /mcp of its HTTP port; see kagzi help guide mcp.`,
		Example: `  kagzi mcp
  kagzi mcp --allow-writes --profile staging
  claude mcp add kagzi -- kagzi mcp`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			topics, err := guide.Load(e.local.Guides)
			if err != nil {
				return err
			}
			return e.run(cmd, func(_ context.Context, c *client) error {
				s := e.streams(cmd)
				// The time limit of --timeout is for each call; the session has none.
				return mcp.Serve(cmd.Context(), mcp.Options{API: c.API, Version: e.version, Namespace: c.namespace,
					Writes: o.writes, Topics: topics}, s.in, s.out)
			})
		},
	}
	cmd.Flags().BoolVar(&o.writes, "allow-writes", false, "let the agent change things, as far as the key's role allows")
	e.flags.RegisterReach(cmd.Flags())
	return cmd
}
