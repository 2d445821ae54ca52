package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

// openStatuses are those of runs that have not ended.
var openStatuses = []string{"PENDING", "RUNNING", "SLEEPING"}

// stopFields are what documents say of a run that was cancelled or terminated.
var stopFields = []string{"status", "requested", "grace_until"}

type cancelOptions struct {
	manyOptions
	grace time.Duration
}

func newCancel(e *env, o *cancelOptions) *cobra.Command {
	o.verb, o.server, o.statuses = "cancel", kagziv1.BulkAction_BULK_ACTION_CANCEL, openStatuses
	o.oneByOne = func() bool { return o.grace > 0 }
	o.action = o.runOptions.action(stopFields, func(ctx context.Context, c *client, runID string) (outcome, error) {
		request := &kagziv1.CancelWorkflowRequest{Namespace: c.namespace, RunId: runID, Reason: o.reason}
		if o.grace > 0 {
			request.Grace = durationpb.New(o.grace)
		}
		answer, err := c.CancelWorkflow(ctx, request)
		return c.stopped(answer.GetStatus(), answer.GetRequested(), answer.GetGraceUntil()), err
	})
	cmd := o.command(e, "Cancel runs: at once, or with --grace so that their code can clean up", `Without --grace the runs are CANCELLED now, and no later write of their workers counts. With it their code is told, may run steps
to clean up, and the runs are CANCELLED when it returns or when the grace is over.`, "--grace 1m")
	cmd.Flags().Var(duration(&o.grace), "grace", "time for the code to clean up: 30s, 5m (default: none)")
	return cmd
}

type terminateOptions struct{ manyOptions }

func newTerminate(e *env, o *terminateOptions) *cobra.Command {
	o.verb, o.server, o.statuses = "terminate", kagziv1.BulkAction_BULK_ACTION_TERMINATE, openStatuses
	o.oneByOne = func() bool { return false }
	o.action = o.runOptions.action(stopFields, func(ctx context.Context, c *client, runID string) (outcome, error) {
		answer, err := c.TerminateWorkflow(ctx, &kagziv1.TerminateWorkflowRequest{Namespace: c.namespace, RunId: runID, Reason: o.reason})
		return c.stopped(answer.GetStatus(), false, nil), err
	})
	return o.command(e, "End runs now, whatever their workers do", "The runs are TERMINATED now; their code is not asked, and cleans nothing up.", `--reason "wrong input"`)
}

// stopped is how a run stands after it was asked to stop.
func (c *client) stopped(s kagziv1.WorkflowStatus, requested bool, graceUntil *timestamppb.Timestamp) outcome {
	line := c.out.paint(render.RunStatus(s), render.RunStyle(s))
	var until any
	if requested {
		line += "  cancel requested"
	}
	if graceUntil != nil && requested {
		line += ", grace ends " + c.view().Time(graceUntil)
	}
	if graceUntil != nil {
		until = render.Document(graceUntil)
	}
	return outcome{line: line, values: []any{render.RunStatus(s), requested, until}}
}
