package cli

import (
	"context"

	"github.com/spf13/cobra"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

func newPause(e *env, o *runOptions) *cobra.Command {
	return o.command(e, &cobra.Command{
		Use:     "pause ID...",
		Short:   "Take runs out of the workers' hands until they are resumed",
		Long:    "Take runs out of the workers' hands until they are resumed: no worker claims them, and their timers wait.",
		Example: "  kagzi workflow pause 01936b2e-… --reason \"card provider is down\"",
	}, statusFields, func(ctx context.Context, c *client, runID string) (outcome, error) {
		answer, err := c.PauseWorkflow(ctx, &kagziv1.PauseWorkflowRequest{Namespace: c.namespace, RunId: runID, Reason: o.reason})
		return c.statusOf(answer.GetWorkflow()), err
	})
}

func newResume(e *env, o *runOptions) *cobra.Command {
	return o.command(e, &cobra.Command{
		Use:   "resume ID...",
		Short: "Let paused runs go on",
	}, statusFields, func(ctx context.Context, c *client, runID string) (outcome, error) {
		answer, err := c.ResumeWorkflow(ctx, &kagziv1.ResumeWorkflowRequest{Namespace: c.namespace, RunId: runID, Reason: o.reason})
		return c.statusOf(answer.GetWorkflow()), err
	})
}

func newPin(e *env, o *runOptions) *cobra.Command {
	return o.command(e, &cobra.Command{
		Use:   "pin ID...",
		Short: "Keep runs from being deleted when their retention is over",
	}, pinFields, pin(o, true))
}

func newUnpin(e *env, o *runOptions) *cobra.Command {
	return o.command(e, &cobra.Command{
		Use:   "unpin ID...",
		Short: "Let pinned runs be deleted when their retention is over",
	}, pinFields, pin(o, false))
}

// statusFields and pinFields are what documents say of a run that was paused, resumed or pinned.
var (
	statusFields = []string{"status", "paused"}
	pinFields    = []string{"status", "pinned"}
)

// statusOf is how a run stands as the outcome of an action.
func (c *client) statusOf(run *kagziv1.Workflow) outcome {
	cell := render.RunStatusCell(run)
	return outcome{line: c.out.paint(cell.Text, cell.Style), values: []any{render.RunStatus(run.GetStatus()), run.GetPaused()}}
}

func pin(o *runOptions, pinned bool) func(context.Context, *client, string) (outcome, error) {
	return func(ctx context.Context, c *client, runID string) (outcome, error) {
		answer, err := c.PinWorkflow(ctx, &kagziv1.PinWorkflowRequest{Namespace: c.namespace, RunId: runID, Pinned: pinned, Reason: o.reason})
		run := answer.GetWorkflow()
		line := c.statusOf(run).line + "  not pinned"
		if run.GetPinned() {
			line = c.statusOf(run).line + "  pinned"
		}
		return outcome{line: line, values: []any{render.RunStatus(run.GetStatus()), run.GetPinned()}}, err
	}
}
