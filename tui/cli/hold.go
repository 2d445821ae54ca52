package cli

import (
	"context"

	"github.com/spf13/cobra"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

type holdOptions struct{ manyOptions }

// command makes a command for what only single calls of the server do, also to the runs that a filter chooses.
func (o *holdOptions) command(e *env, fields []string, do func(context.Context, *client, string) (outcome, error), short, long, example string) *cobra.Command {
	o.oneByOne = func() bool { return true }
	o.action = o.runOptions.action(fields, do)
	return o.manyOptions.command(e, short, long, example)
}

func newPause(e *env, o *holdOptions) *cobra.Command {
	o.verb, o.statuses = "pause", openStatuses
	o.open = &standing{"not paused", func(r *kagziv1.Workflow) bool { return !r.GetPaused() }}
	return o.command(e, statusFields, func(ctx context.Context, c *client, runID string) (outcome, error) {
		answer, err := c.PauseWorkflow(ctx, &kagziv1.PauseWorkflowRequest{Namespace: c.namespace, RunId: runID, Reason: o.reason})
		return c.statusOf(answer.GetWorkflow()), err
	}, "Take runs out of the workers' hands until they are resumed", "No worker claims a paused run, and its timers wait.", `--reason "card provider is down"`)
}

func newResume(e *env, o *holdOptions) *cobra.Command {
	o.verb, o.statuses = "resume", openStatuses
	o.open = &standing{"paused", (*kagziv1.Workflow).GetPaused}
	return o.command(e, statusFields, func(ctx context.Context, c *client, runID string) (outcome, error) {
		answer, err := c.ResumeWorkflow(ctx, &kagziv1.ResumeWorkflowRequest{Namespace: c.namespace, RunId: runID, Reason: o.reason})
		return c.statusOf(answer.GetWorkflow()), err
	}, "Let paused runs go on", "Workers may claim the runs again; timers that have come due meanwhile are over at once.", `--reason "card provider is back"`)
}

func newPin(e *env, o *holdOptions) *cobra.Command {
	o.verb = "pin"
	o.open = &standing{"not pinned", func(r *kagziv1.Workflow) bool { return !r.GetPinned() }}
	return o.command(e, pinFields, pin(o, true), "Keep runs from being deleted when their retention is over",
		"A pinned run stays until it is unpinned.", `--reason "evidence"`)
}

func newUnpin(e *env, o *holdOptions) *cobra.Command {
	o.verb = "unpin"
	o.open = &standing{"pinned", (*kagziv1.Workflow).GetPinned}
	return o.command(e, pinFields, pin(o, false), "Let pinned runs be deleted when their retention is over",
		"A run whose retention is over already is deleted soon after.", `--reason "case closed"`)
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

func pin(o *holdOptions, pinned bool) func(context.Context, *client, string) (outcome, error) {
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
