package cli

import (
	"context"

	"github.com/spf13/cobra"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

type explainOptions struct {
	id       string
	external bool
}

func newExplain(e *env, o *explainOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain ID",
		Short: "Say why a run is where it is: what it waits for, since when, and what comes next",
		Example: `  kagzi workflow explain 01936b2e-…
  kagzi workflow explain --external order-17 -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: e.completeOne(completeRuns),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.id = args[0]
			return e.run(cmd, func(ctx context.Context, c *client) error { return runExplain(ctx, c, o) })
		},
	}
	cmd.Flags().BoolVar(&o.external, "external", false, "ID is an external id: its newest run is meant")
	return cmd
}

func runExplain(ctx context.Context, c *client, o *explainOptions) error {
	runID, err := c.runID(ctx, o.id, o.external)
	if err != nil {
		return err
	}
	answer, err := c.ExplainWorkflow(ctx, &kagziv1.ExplainWorkflowRequest{Namespace: c.namespace, RunId: runID})
	if err != nil {
		return c.externalHint(err)
	}
	return c.out.print(result{
		human: func() []string {
			lines := []string{c.out.paint(render.Safe(answer.GetSummary()), render.Strong)}
			for _, detail := range answer.GetDetails() {
				lines = append(lines, "  "+render.Safe(detail))
			}
			return append(lines, render.PairLines(render.ExplainPairs(answer, c.view()), c.out.colour)...)
		},
		document: render.Document(answer),
	})
}
