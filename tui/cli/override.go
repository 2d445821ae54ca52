package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

type overrideOptions struct {
	id        string
	step      string
	external  bool
	result    string
	message   string
	errorType string
	reason    string
}

func newOverride(e *env, o *overrideOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "override ID STEP --result JSON|--error MESSAGE --reason WHY",
		Short: "Set what a step came to, so that a run can go on past it",
		Long: `Set the recorded result of a step of a run that is paused or has ended badly. The step counts as completed with the
result, or as failed for good with the error. The old record stays in the history with who changed it and why; a paused run goes
on with: kagzi workflow resume, one that has ended with: kagzi workflow retry.`,
		Example: `  kagzi workflow override 01936b2e-… charge --result '{"id": "ch_7"}' --reason "charged by hand"
  kagzi workflow override 01936b2e-… charge --error "card stolen" --error-type CardDeclined --reason "as support said"`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: e.completeRunAndStep(),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.id, o.step = args[0], args[1]
			request, err := o.request(e, cmd)
			if err != nil {
				return err
			}
			return e.run(cmd, func(ctx context.Context, c *client) error { return runOverride(ctx, c, o, request) })
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.result, "result", "", "the step is completed with this: JSON, @FILE that holds JSON, or - for stdin")
	fs.StringVar(&o.message, "error", "", "the step has failed for good with this message")
	fs.StringVar(&o.errorType, "error-type", "", "with --error: the error's type, as the code would name it")
	fs.StringVar(&o.reason, "reason", "", "why, kept in the history; required")
	fs.BoolVar(&o.external, "external", false, "ID is an external id: its newest run is meant")
	return cmd
}

func (o *overrideOptions) request(e *env, cmd *cobra.Command) (*kagziv1.OverrideStepRequest, error) {
	changed := cmd.Flags().Changed
	switch {
	case changed("result") == changed("error"):
		return nil, usagef("what did the step come to? want one of --result and --error")
	case changed("error-type") && !changed("error"):
		return nil, usagef("--error-type goes with --error only")
	case changed("error") && strings.TrimSpace(o.message) == "":
		return nil, usagef("--error is empty; want a message")
	case strings.TrimSpace(o.reason) == "":
		return nil, usagef("why? want --reason, which is kept in the history")
	}
	r := &kagziv1.OverrideStepRequest{StepName: o.step, Reason: o.reason}
	if changed("error") {
		r.Result = &kagziv1.OverrideStepRequest_Error{Error: &kagziv1.ErrorDetail{Message: o.message, Type: o.errorType, NonRetryable: true}}
		return r, nil
	}
	payload, err := readPayload("--result", o.result, e.streams(cmd).in)
	if err != nil {
		return nil, err
	}
	r.Result = &kagziv1.OverrideStepRequest_Output{Output: payload}
	return r, nil
}

func runOverride(ctx context.Context, c *client, o *overrideOptions, request *kagziv1.OverrideStepRequest) error {
	c.out.warnLarge("result", request.GetOutput())
	runID, err := c.runID(ctx, o.id, o.external)
	if err != nil {
		return err
	}
	request.Namespace, request.RunId = c.namespace, runID
	answer, err := c.OverrideStep(ctx, request)
	if err != nil {
		return c.externalHint(err)
	}
	return c.out.print(result{
		human:    func() []string { return c.out.table(render.StepsTable([]*kagziv1.Step{answer.GetStep()}, c.view())) },
		document: render.Document(answer),
	})
}
