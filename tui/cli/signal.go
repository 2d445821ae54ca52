package cli

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/render"
)

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
	fs.StringVar(&o.input, "input", "", "the signal's payload: JSON, @FILE that holds JSON, or - for stdin; --payload is the same")
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
	request := &kagziv1.SignalWorkflowRequest{Namespace: c.namespace, RunId: id, Name: o.name, Payload: payload, SignalId: o.signalID}
	if request.SignalId == "" {
		request.SignalId = c.newID()
	}
	runID, answer, err := tui.Signal(ctx, c, request)
	if err != nil {
		return c.externalHint(hintedUncertain(err, "to repeat it without delivering it twice add: --signal-id "+request.GetSignalId()))
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
		document: append(render.Object{{Name: "run_id", Value: runID}, {Name: "name", Value: o.name}, {Name: "signal_id", Value: request.GetSignalId()}},
			render.Document(answer).(render.Object)...),
	})
}
