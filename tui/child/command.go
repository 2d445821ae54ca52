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
	// orphanLimit is how long a child may take to stop in good order before it ends anyway.
	orphanLimit = 30 * time.Second
	orphanExit  = 1
)

// Command is the hidden command that every child is started through: `child COMMAND ARG…` runs a command of the
// same root, whose context ends when standard input does.
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
				_, _ = io.Copy(io.Discard, cmd.InOrStdin()) // however it ends, the parent is gone
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
