package child

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
)

const (
	commandName = "child"
	// orphanLimit limits how long a child may take to stop gracefully before it exits anyway.
	orphanLimit = 30 * time.Second
	orphanExit  = 1
)

// Command returns the hidden command that starts every child: `child COMMAND ARG…` runs a command
// of the same root, whose context ends when standard input does.
func Command() *cobra.Command {
	return &cobra.Command{
		Use:                commandName + " COMMAND",
		Short:              "Run a command until standard input ends",
		Hidden:             true,
		DisableFlagParsing: true,
		Args:               cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := context.WithCancel(cmd.Context())
			defer stop()
			go func() {
				_, _ = io.Copy(io.Discard, cmd.InOrStdin()) // on any error the parent has gone too
				stop()
				time.Sleep(orphanLimit)
				os.Exit(orphanExit)
			}()
			root := cmd.Root()
			root.SetArgs(args)
			return root.ExecuteContext(ctx)
		},
	}
}
