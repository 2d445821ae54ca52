package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
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
	keepAll   bool
	requestID string
	input     inputFlags
	payload   *kagziv1.Payload
}

func newRetry(e *env, o *retryOptions) *cobra.Command {
	o.verb, o.server, o.statuses = "retry", kagziv1.BulkAction_BULK_ACTION_RETRY, []string{"FAILED", "TIMED_OUT"}
	o.oneByOne = func() bool { return o.fromStep != "" || o.restart }
	o.bulk = func(r *kagziv1.BulkWorkflowsRequest) { r.KeepAll = o.keepAll }
	o.action = o.runOptions.action([]string{"new_run_id", "already_running"},
		func(ctx context.Context, c *client, runID string) (outcome, error) {
			return retryRun(ctx, c, o, runID)
		})
	cmd := o.command(e, "Retry ended runs, keeping the results of completed steps",
		`A run that is FAILED, TIMED_OUT, CANCELLED or TERMINATED starts again as a new run with the same
input. The new run keeps the results of all completed steps. With --from-step that step and all
steps started after it run again; with --restart every step does.

A run that started steps after one had failed for good, or after it was cancelled, has probably
undone others, as a saga does. Its retry is refused, with the names of those steps, unless you say
what to do: --from-step the first step that was undone, --restart, or --keep-all. A signal wait that
timed out is completed too: it times out again at once in the new run, unless --from-step names it.
Signals that were not yet received are kept; signals received by a wait that runs again must be sent
again.

A step that runs again has a new idempotency key, because the new run has its own id.

The retried run itself does not change. With -q, runs that were retried before are skipped and
reported as unchanged.`, "--from-step charge")
	work := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.check(args, cmd.Flags().Changed); err != nil {
			return err
		}
		var err error
		if o.payload, err = o.input.read(cmd.Flags().Changed, e.streams(cmd).in); err != nil {
			return err
		}
		newOutput(e.streams(cmd), e.flags, e.lookup).warnLarge("input", o.payload) // once for all runs
		return work(cmd, args)
	}
	fs := cmd.Flags()
	fs.StringVar(&o.fromStep, "from-step", "", "run this step and all steps started after it again")
	fs.BoolVar(&o.restart, "restart", false, "keep no steps")
	fs.BoolVar(&o.keepAll, "keep-all", false, "keep steps started after the first failure too")
	fs.StringVar(&o.requestID, "request-id", "",
		"idempotency key of this retry, to repeat it safely (default: a new one)")
	o.input.register(fs)
	_ = cmd.RegisterFlagCompletionFunc("from-step", e.completeStep()) // fails only if the flag does not exist
	return cmd
}

// check rejects flags that cannot be combined.
func (o *retryOptions) check(args []string, changed func(string) bool) error {
	switch {
	case o.fromStep != "" && o.restart:
		return usagef("--from-step and --restart cannot be given together")
	case o.keepAll && (o.fromStep != "" || o.restart):
		return usagef("--keep-all cannot be given together with --from-step or --restart")
	case o.input.given(changed) && !o.restart:
		return usagef("a new input needs --restart: kept steps used the old one")
	case o.requestID != "" && len(args) != 1:
		return usagef("--request-id needs exactly one ID")
	}
	return nil
}

func retryRun(ctx context.Context, c *client, o *retryOptions, runID string) (outcome, error) {
	request := &kagziv1.RetryWorkflowRequest{
		Namespace: c.namespace, RunId: runID, FromStep: o.fromStep, Restart: o.restart, Input: o.payload,
		RequestId: o.requestID, Reason: o.reason, KeepAll: o.keepAll,
	}
	switch chosen := len(o.ids) == 0; {
	case chosen:
		request.RequestId, request.UnlessRetried = o.idOf(runID), true
	case request.RequestId == "":
		request.RequestId = c.newID()
	}
	answer, err := c.RetryWorkflow(ctx, request)
	switch {
	case err != nil && wouldKeep(err):
		return outcome{}, &callError{err: err, hint: "add one of: --from-step STEP, --restart, --keep-all"}
	case err != nil && len(o.ids) == 0:
		return outcome{}, err // repeating the same command is safe
	case err != nil:
		return outcome{}, hintedUncertain(err, "to repeat it without a second run add: --request-id "+
			request.GetRequestId())
	}
	line := "retried as " + render.Safe(answer.GetNewRunId())
	if answer.GetAlreadyRunning() {
		line = "already retried as " + render.Safe(answer.GetNewRunId())
	}
	return outcome{
		line: line, values: []any{answer.GetNewRunId(), answer.GetAlreadyRunning()},
		unchanged: answer.GetAlreadyRunning() || answer.GetAlreadyRetried(),
	}, nil
}

// wouldKeep reports whether a retry was refused because it would keep compensations.
func wouldKeep(err error) bool {
	s := status.Convert(err)
	return s.Code() == codes.FailedPrecondition && strings.Contains(s.Message(), "keep_all")
}

// idOf returns the request id for retrying a run selected by a filter. It is the same on every
// repetition, like that of the server's bulk action: the ended run still matches the filter later,
// when its retry may have ended too.
func (o *retryOptions) idOf(runID string) string {
	id := "bulk-retry:" + runID
	how := o.fromStep
	switch {
	case o.restart:
		how = "\x00" + string(o.payload.GetData()) // not a step name
	case o.fromStep == "":
		return id // the id used by the server's bulk action
	}
	sum := sha256.Sum256([]byte(how))
	return id + ":" + hex.EncodeToString(sum[:8])
}

// openStatuses are the statuses of runs that have not ended.
var openStatuses = []string{"PENDING", "RUNNING", "SLEEPING"}

// stopFields are the document fields of a run that was cancelled or terminated.
var stopFields = []string{"status", "requested", "grace_until"}

type cancelOptions struct {
	manyOptions
	grace time.Duration
}

func newCancel(e *env, o *cancelOptions) *cobra.Command {
	o.verb, o.server, o.statuses = "cancel", kagziv1.BulkAction_BULK_ACTION_CANCEL, openStatuses
	o.oneByOne = func() bool { return false }
	o.bulk = func(r *kagziv1.BulkWorkflowsRequest) { r.Grace = tui.Grace(o.grace) }
	o.action = o.runOptions.action(stopFields, func(ctx context.Context, c *client, runID string) (outcome, error) {
		answer, err := c.CancelWorkflow(ctx, &kagziv1.CancelWorkflowRequest{
			Namespace: c.namespace, RunId: runID, Grace: tui.Grace(o.grace), Reason: o.reason})
		return c.stopped(answer.GetStatus(), answer.GetRequested(), answer.GetGraceUntil()), err
	})
	cmd := o.command(e, "Cancel runs, so that their code can clean up",
		`The code of the runs is notified and may run cleanup steps; the runs are CANCELLED when it returns
or when the grace period ends. Children with the close policy CANCEL have the same time. Runs whose
code has never run are CANCELLED now. With --grace 0 all are, and later writes of their workers are
rejected. To end runs at once as TERMINATED, use terminate.`, "--grace 1m")
	o.grace = tui.DefaultGrace
	cmd.Flags().Var(flagvalue.Duration(&o.grace), "grace", "time for cleanup: 30s, 5m; 0: none")
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
	return o.command(e, "Terminate runs now, without cleanup",
		"The runs are TERMINATED now. Their code is not notified and cannot clean up.", `--reason "wrong input"`)
}

// stopped returns the state of a run after a cancel or terminate.
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

type holdOptions struct {
	manyOptions
	now    bool // pause only
	accept bool // resume only
}

// command returns a command for an action that the server has no bulk action for.
func (o *holdOptions) command(e *env, fields []string, do func(context.Context, *client, string) (outcome, error),
	short, long, example string) *cobra.Command {
	o.oneByOne = func() bool { return true }
	o.action = o.runOptions.action(fields, do)
	return o.manyOptions.command(e, short, long, example)
}

func newPause(e *env, o *holdOptions) *cobra.Command {
	o.verb, o.statuses = "pause", openStatuses
	o.open = &standing{"not paused", func(r *kagziv1.Workflow) bool {
		return !r.GetPaused() && (o.now || !r.GetPausing())
	}}
	cmd := o.command(e, statusFields, func(ctx context.Context, c *client, runID string) (outcome, error) {
		answer, err := c.PauseWorkflow(ctx, &kagziv1.PauseWorkflowRequest{
			Namespace: c.namespace, RunId: runID, Reason: o.reason, Now: o.now})
		return c.statusOf(answer.GetWorkflow()), err
	}, "Pause runs until they are resumed",
		`Workers do not claim a paused run, its timers do not fire, and its deadline does not run. Steps that
run finish first, and their results are recorded; until then the run is pausing. With --now they are
interrupted, and run again when the run is resumed.`, `--reason "card provider is down"`)
	cmd.Flags().BoolVar(&o.now, "now", false, "interrupt running steps; they run again after the pause")
	return cmd
}

func newResume(e *env, o *holdOptions) *cobra.Command {
	o.verb, o.statuses = "resume", openStatuses
	o.open = &standing{"paused or pausing", func(r *kagziv1.Workflow) bool { return r.GetPaused() || r.GetPausing() }}
	cmd := o.command(e, statusFields, func(ctx context.Context, c *client, runID string) (outcome, error) {
		answer, err := c.ResumeWorkflow(ctx, &kagziv1.ResumeWorkflowRequest{
			Namespace: c.namespace, RunId: runID, Reason: o.reason, AcceptDivergence: o.accept})
		return c.statusOf(answer.GetWorkflow()), err
	}, "Resume paused runs",
		`Workers may claim the runs again; timers that became due during the pause fire at once, and deadlines
move by the time that the pause took. A run that is still pausing goes on. With --accept-divergence the
code of a diverged run need not reach what is recorded so far.`,
		`--reason "card provider is back"`)
	cmd.Flags().BoolVar(&o.accept, "accept-divergence", false, "let code skip what a diverged run has recorded")
	return cmd
}

func newPin(e *env, o *holdOptions) *cobra.Command {
	o.verb = "pin"
	o.open = &standing{"not pinned", func(r *kagziv1.Workflow) bool { return !r.GetPinned() }}
	return o.command(e, pinFields, pin(o, true), "Pin runs, so that they are not deleted when their retention expires",
		"A pinned run stays until it is unpinned.", `--reason "evidence"`)
}

func newUnpin(e *env, o *holdOptions) *cobra.Command {
	o.verb = "unpin"
	o.open = &standing{"pinned", (*kagziv1.Workflow).GetPinned}
	return o.command(e, pinFields, pin(o, false), "Unpin runs, so that they are deleted when their retention expires",
		"A run whose retention has already expired is deleted soon after.", `--reason "case closed"`)
}

// statusFields and pinFields are the document fields of a run that was paused, resumed or pinned.
var (
	statusFields = []string{"status", "paused", "pausing"}
	pinFields    = []string{"status", "pinned"}
)

// statusOf returns the status of a run as an outcome.
func (c *client) statusOf(run *kagziv1.Workflow) outcome {
	cell := render.RunStatusCell(run)
	return outcome{line: c.out.paint(cell.Text, cell.Style),
		values: []any{render.RunStatus(run.GetStatus()), run.GetPaused(), run.GetPausing()}}
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
		Short: "Send a signal to a run",
		Long: `Send a signal to a run. Signals are kept until the run's code receives them, in order of arrival. A
signal with the same --signal-id is delivered once, however often the command is repeated. If the
run continued as new, the signal goes to the run it continued as.`,
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
		"payload of the signal: JSON, @FILE with JSON, or - for stdin (also --payload)")
	fs.StringVar(&o.signalID, "signal-id", "", "your own id for this signal, unique in the run (default: a new one)")
	fs.BoolVar(&o.external, "external", false, "ID is an external id; use its newest run")
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
		c.out.say("the run continued as %s", render.Safe(runID))
	}
	return c.out.print(result{
		human: func() []string {
			if answer.GetAlreadyDelivered() {
				return []string{render.Safe(runID) + "  signal " + render.Safe(o.name) + " was already delivered"}
			}
			return []string{render.Safe(runID) + "  signal " + render.Safe(o.name) + " delivered"}
		},
		document: append(render.Object{{Name: "run_id", Value: runID}, {Name: "name", Value: o.name},
			{Name: "signal_id", Value: request.GetSignalId()}},
			render.Document(answer).(render.Object)...),
	})
}
