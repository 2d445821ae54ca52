package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/cli/internal/flagvalue"
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
	o.action = o.runOptions.action([]string{"new_run_id", "already_running"},
		func(ctx context.Context, c *client, runID string) (outcome, error) {
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
		Namespace: c.namespace, RunId: runID, FromStep: o.fromStep, Restart: o.restart, Input: o.payload,
		RequestId: o.requestID, Reason: o.reason,
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
		return outcome{}, hintedUncertain(err, "to repeat it without a second run add: --request-id "+
			request.GetRequestId())
	}
	line := "retried as " + render.Safe(answer.GetNewRunId())
	if answer.GetAlreadyRunning() {
		line = "runs again already, as " + render.Safe(answer.GetNewRunId())
	}
	return outcome{
		line: line, values: []any{answer.GetNewRunId(), answer.GetAlreadyRunning()},
		unchanged: answer.GetAlreadyRunning() || answer.GetAlreadyRetried(),
	}, nil
}

// idOf is the request id of the retry of a run that a filter chose. It is the same in a repetition,
// as that of the server's own bulk action is: a run stays as it ended, so that the same filter
// finds it again, and its retry may be over by then.
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
	cmd := o.command(e, "Cancel runs: at once, or with --grace so that their code can clean up",
		`Without --grace the runs are CANCELLED now, and no later write of their workers counts. With it their code is told, may run steps
to clean up, and the runs are CANCELLED when it returns or when the grace is over.`, "--grace 1m")
	cmd.Flags().Var(flagvalue.Duration(&o.grace), "grace", "time for the code to clean up: 30s, 5m (default: none)")
	return cmd
}

type terminateOptions struct{ manyOptions }

func newTerminate(e *env, o *terminateOptions) *cobra.Command {
	o.verb, o.server, o.statuses = "terminate", kagziv1.BulkAction_BULK_ACTION_TERMINATE, openStatuses
	o.oneByOne = func() bool { return false }
	o.action = o.runOptions.action(stopFields, func(ctx context.Context, c *client, runID string) (outcome, error) {
		answer, err := c.TerminateWorkflow(ctx, &kagziv1.TerminateWorkflowRequest{
			Namespace: c.namespace, RunId: runID, Reason: o.reason})
		return c.stopped(answer.GetStatus(), false, nil), err
	})
	return o.command(e, "End runs now, whatever their workers do",
		"The runs are TERMINATED now; their code is not asked, and cleans nothing up.", `--reason "wrong input"`)
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

type holdOptions struct{ manyOptions }

// command makes a command for what only single calls of the server do, also to the runs that a filter chooses.
func (o *holdOptions) command(e *env, fields []string, do func(context.Context, *client, string) (outcome, error),
	short, long, example string) *cobra.Command {
	o.oneByOne = func() bool { return true }
	o.action = o.runOptions.action(fields, do)
	return o.manyOptions.command(e, short, long, example)
}

func newPause(e *env, o *holdOptions) *cobra.Command {
	o.verb, o.statuses = "pause", openStatuses
	o.open = &standing{"not paused", func(r *kagziv1.Workflow) bool { return !r.GetPaused() }}
	return o.command(e, statusFields, func(ctx context.Context, c *client, runID string) (outcome, error) {
		answer, err := c.PauseWorkflow(ctx, &kagziv1.PauseWorkflowRequest{
			Namespace: c.namespace, RunId: runID, Reason: o.reason})
		return c.statusOf(answer.GetWorkflow()), err
	}, "Take runs out of the workers' hands until they are resumed",
		"No worker claims a paused run, and its timers wait.", `--reason "card provider is down"`)
}

func newResume(e *env, o *holdOptions) *cobra.Command {
	o.verb, o.statuses = "resume", openStatuses
	o.open = &standing{"paused", (*kagziv1.Workflow).GetPaused}
	return o.command(e, statusFields, func(ctx context.Context, c *client, runID string) (outcome, error) {
		answer, err := c.ResumeWorkflow(ctx, &kagziv1.ResumeWorkflowRequest{
			Namespace: c.namespace, RunId: runID, Reason: o.reason})
		return c.statusOf(answer.GetWorkflow()), err
	}, "Let paused runs go on",
		"Workers may claim the runs again; timers that have come due meanwhile are over at once.",
		`--reason "card provider is back"`)
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
	return outcome{line: c.out.paint(cell.Text, cell.Style),
		values: []any{render.RunStatus(run.GetStatus()), run.GetPaused()}}
}

func pin(o *holdOptions, pinned bool) func(context.Context, *client, string) (outcome, error) {
	return func(ctx context.Context, c *client, runID string) (outcome, error) {
		answer, err := c.PinWorkflow(ctx, &kagziv1.PinWorkflowRequest{
			Namespace: c.namespace, RunId: runID, Pinned: pinned, Reason: o.reason})
		run := answer.GetWorkflow()
		line := c.statusOf(run).line + "  not pinned"
		if run.GetPinned() {
			line = c.statusOf(run).line + "  pinned"
		}
		return outcome{line: line, values: []any{render.RunStatus(run.GetStatus()), run.GetPinned()}}, err
	}
}

type signalOptions struct {
	id       string
	name     string
	external bool
	input    string
	signalID string
}

func newSignal(e *env, o *signalOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "signal ID NAME",
		Short: "Deliver a signal to a run",
		Long: `Deliver a signal to a run. It is kept until the run's code takes it, in the order in which signals came; the same
--signal-id is delivered once, however often the command is repeated. Where the run continued as new, the signal goes to the
run that goes on for it.`,
		Example: `  kagzi workflow signal 01936b2e-… approval --input '{"by": "ada"}'
  kagzi workflow signal --external order-17 approval --input @approval.json --signal-id ticket-4`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: e.completeOne(completeRuns),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.id, o.name = args[0], args[1]
			var payload *kagziv1.Payload
			if cmd.Flags().Changed("input") {
				var err error
				if payload, err = readPayload("--input", o.input, e.streams(cmd).in); err != nil {
					return err
				}
			}
			return e.run(cmd, func(ctx context.Context, c *client) error { return runSignal(ctx, c, o, payload) })
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.input, "input", "",
		"the signal's payload: JSON, @FILE that holds JSON, or - for stdin; --payload is the same")
	fs.StringVar(&o.signalID, "signal-id", "", "your own id of this signal, unique within the run (default: a new one)")
	fs.BoolVar(&o.external, "external", false, "ID is an external id: its newest run is meant")
	fs.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "payload" {
			name = "input"
		}
		return pflag.NormalizedName(name)
	})
	return cmd
}

func runSignal(ctx context.Context, c *client, o *signalOptions, payload *kagziv1.Payload) error {
	c.out.warnLarge("payload", payload)
	id, err := c.runID(ctx, o.id, o.external)
	if err != nil {
		return err
	}
	request := &kagziv1.SignalWorkflowRequest{
		Namespace: c.namespace, RunId: id, Name: o.name, Payload: payload, SignalId: o.signalID}
	if request.SignalId == "" {
		request.SignalId = c.newID()
	}
	runID, answer, err := tui.Signal(ctx, c, request)
	if err != nil {
		return c.externalHint(hintedUncertain(err,
			"to repeat it without delivering it twice add: --signal-id "+request.GetSignalId()))
	}
	if runID != request.GetRunId() {
		c.out.say("it continued as run %s", render.Safe(runID))
	}
	return c.out.print(result{
		human: func() []string {
			if answer.GetAlreadyDelivered() {
				return []string{render.Safe(runID) + "  signal " + render.Safe(o.name) + " was delivered before"}
			}
			return []string{render.Safe(runID) + "  signal " + render.Safe(o.name) + " delivered"}
		},
		document: append(render.Object{{Name: "run_id", Value: runID}, {Name: "name", Value: o.name},
			{Name: "signal_id", Value: request.GetSignalId()}},
			render.Document(answer).(render.Object)...),
	})
}
