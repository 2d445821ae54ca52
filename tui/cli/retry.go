package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/spf13/cobra"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

type retryOptions struct {
	manyOptions
	fromStep  string
	restart   bool
	requestID string
	input     inputFlags
	payload   *kagziv1.Payload
}

func newRetry(e *env, o *retryOptions) *cobra.Command {
	o.verb, o.server, o.statuses = "retry", kagziv1.BulkAction_BULK_ACTION_RETRY, []string{"FAILED", "TIMED_OUT"}
	o.oneByOne = func() bool { return o.fromStep != "" || o.restart }
	o.action = o.runOptions.action([]string{"new_run_id", "already_running"}, func(ctx context.Context, c *client, runID string) (outcome, error) {
		return retryRun(ctx, c, o, runID)
	})
	cmd := o.command(e, "Start ended runs again, keeping what their completed steps came to",
		`A run that has FAILED, TIMED_OUT or was CANCELLED or TERMINATED starts again as a new run with the same input. The new run keeps the
results of all completed steps; with --from-step that step and all begun after it run again, with --restart every step does.

Steps that undid others before the run failed, as in a saga, are completed steps, too: what they undid stays undone, unless --from-step
names the first step that they undid. A wait for a signal whose limit has passed is completed, too: the new run finds it passed at once, unless
--from-step names the wait. Signals that no wait had taken come along; those that were taken by a wait that runs again have to be sent again.

A step that runs again has another idempotency key, because the new run has an id of its own.

A run stays as it ended when it is retried. With -q those that were retried before, be it one by one, are left alone and counted as such.`, "--from-step charge")
	work := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.check(args, cmd.Flags().Changed); err != nil {
			return err
		}
		var err error
		if o.payload, err = o.input.read(cmd.Flags().Changed, e.streams(cmd).in); err != nil {
			return err
		}
		newOutput(e.streams(cmd), e.flags, e.lookup).warnLarge("input", o.payload) // once, however many runs get it
		return work(cmd, args)
	}
	fs := cmd.Flags()
	fs.StringVar(&o.fromStep, "from-step", "", "this step and all begun after it run again")
	fs.BoolVar(&o.restart, "restart", false, "keep no step at all")
	fs.StringVar(&o.requestID, "request-id", "", "id of this very retry, to repeat it safely (default: a new one)")
	o.input.register(fs)
	_ = cmd.RegisterFlagCompletionFunc("from-step", e.completeStep()) // fails only for a flag that is not there
	return cmd
}

// check refuses flags that do not go together.
func (o *retryOptions) check(args []string, changed func(string) bool) error {
	switch {
	case o.fromStep != "" && o.restart:
		return usagef("--from-step and --restart are both given; want one")
	case o.input.given(changed) && !o.restart:
		return usagef("a new input needs --restart: kept steps have seen the old one")
	case o.requestID != "" && len(args) != 1:
		return usagef("--request-id names one retry; give it with one ID")
	}
	return nil
}

func retryRun(ctx context.Context, c *client, o *retryOptions, runID string) (outcome, error) {
	request := &kagziv1.RetryWorkflowRequest{
		Namespace: c.namespace, RunId: runID, FromStep: o.fromStep, Restart: o.restart, Input: o.payload, RequestId: o.requestID, Reason: o.reason,
	}
	switch chosen := len(o.ids) == 0; {
	case chosen:
		request.RequestId, request.UnlessRetried = o.idOf(runID), true
	case request.RequestId == "":
		request.RequestId = c.newID()
	}
	answer, err := c.RetryWorkflow(ctx, request)
	switch {
	case err != nil && len(o.ids) == 0:
		return outcome{}, err // the same command again is safe
	case err != nil:
		return outcome{}, hintedUncertain(err, "to repeat it without a second run add: --request-id "+request.GetRequestId())
	}
	line := "retried as " + render.Safe(answer.GetNewRunId())
	if answer.GetAlreadyRunning() {
		line = "runs again already, as " + render.Safe(answer.GetNewRunId())
	}
	return outcome{
		line: line, values: []any{answer.GetNewRunId(), answer.GetAlreadyRunning()}, unchanged: answer.GetAlreadyRunning() || answer.GetAlreadyRetried(),
	}, nil
}

// idOf is the request id of the retry of a run that a filter chose. It is the same in a repetition, as that of the server's own bulk action is:
// a run stays as it ended, so that the same filter finds it again, and its retry may be over by then.
func (o *retryOptions) idOf(runID string) string {
	id := "bulk-retry:" + runID
	how := o.fromStep
	switch {
	case o.restart:
		how = "\x00" + string(o.payload.GetData()) // no step's name
	case o.fromStep == "":
		return id // the server's own
	}
	sum := sha256.Sum256([]byte(how))
	return id + ":" + hex.EncodeToString(sum[:8])
}
