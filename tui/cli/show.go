package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

type showOptions struct {
	id       string
	external bool
	payloads payloadSize
}

func newShow(e *env, o *showOptions) *cobra.Command {
	o.payloads = 2048
	cmd := &cobra.Command{
		Use:               "show ID",
		Short:             "Show a run with its steps, error, input and output",
		Example:           "  kagzi workflow show 01936b2e-…\n  kagzi workflow show --external order-17 --payloads full",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: e.complete(completeRuns),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.id = args[0]
			return e.run(cmd, func(ctx context.Context, c *client) error { return runShow(ctx, c, o) })
		},
	}
	cmd.Flags().BoolVar(&o.external, "external", false, "ID is an external id: show its newest run")
	cmd.Flags().Var(&o.payloads, "payloads", "show so many bytes of each payload: a number, none or full (JSON and YAML always hold all)")
	_ = cmd.RegisterFlagCompletionFunc("payloads", words("none", "full")) // fails only for a flag that is not there
	return cmd
}

func runShow(ctx context.Context, c *client, o *showOptions) error {
	run, err := c.find(ctx, o.id, o.external)
	if err != nil {
		return err
	}
	steps, err := c.steps(ctx, run.GetRunId())
	if err != nil {
		return err
	}
	document := render.Object{{Name: "workflow", Value: render.Document(run)}, {Name: "steps", Value: render.Documents(steps)}}
	return c.out.print(result{
		human:    func() []string { return showLines(c, run, steps, int(o.payloads)) },
		document: document,
	})
}

// find gets a run by its id or by its external id.
func (c *client) find(ctx context.Context, id string, external bool) (*kagziv1.Workflow, error) {
	if external {
		answer, err := c.GetWorkflowByExternalId(ctx, &kagziv1.GetWorkflowByExternalIdRequest{Namespace: c.namespace, ExternalId: id})
		return answer.GetWorkflow(), err
	}
	answer, err := c.GetWorkflow(ctx, &kagziv1.GetWorkflowRequest{Namespace: c.namespace, RunId: id})
	return answer.GetWorkflow(), c.externalHint(err)
}

// externalHint tells who gave something else than a run id how to give an external id.
func (c *client) externalHint(err error) error {
	if status.Code(err) != codes.InvalidArgument || detailOf(status.Convert(err)).GetMetadata()["field"] != "run_id" {
		return err
	}
	return &callError{err: err, hint: "to name a run by its external id add --external"}
}

// steps gets every attempt of a run's steps.
func (c *client) steps(ctx context.Context, runID string) ([]*kagziv1.Step, error) {
	var steps []*kagziv1.Step
	token := ""
	for {
		answer, err := c.ListSteps(ctx, &kagziv1.ListStepsRequest{
			Namespace: c.namespace, RunId: runID, Page: &kagziv1.PageRequest{PageSize: maxPage, PageToken: token},
		})
		if err != nil {
			return nil, err
		}
		steps = append(steps, answer.GetSteps()...)
		if token = answer.GetPage().GetNextPageToken(); token == "" {
			return steps, nil
		}
	}
}

func showLines(c *client, run *kagziv1.Workflow, steps []*kagziv1.Step, payloads int) []string {
	v := c.view()
	lines := render.PairLines(render.RunPairs(run, v), c.out.colour)
	section := func(title string, body []string) {
		if len(body) > 0 {
			lines = append(append(lines, "", c.out.paint(title, render.Strong)), body...)
		}
	}
	v.Payloads = payloads
	if run.GetError() != nil {
		section("Error", indent(render.ErrorLines(run.GetError(), v)))
	}
	if payloads != 0 && len(run.GetInput().GetData()) > 0 {
		section("Input", indent(render.PayloadLines(run.GetInput(), payloads)))
	}
	if payloads != 0 && len(run.GetOutput().GetData()) > 0 {
		section("Output", indent(render.PayloadLines(run.GetOutput(), payloads)))
	}
	if len(steps) > 0 {
		section("Steps", c.out.table(render.StepsTable(steps, c.view())))
	}
	for _, s := range steps {
		if s.GetError().GetStack() != "" && payloads != 0 {
			title := fmt.Sprintf("Error of %s, attempt %d", render.Safe(s.GetName()), s.GetAttemptNumber())
			section(title, indent(render.ErrorLines(s.GetError(), v)))
		}
	}
	return lines
}

func indent(lines []string) []string {
	for i, line := range lines {
		lines[i] = "  " + line
	}
	return lines
}

// payloadSize is a flag for how many bytes of a payload to show; negative means all.
type payloadSize int

func (p *payloadSize) Type() string { return "bytes|none|full" }

func (p *payloadSize) String() string {
	switch {
	case *p < 0:
		return "full"
	case *p == 0:
		return "none"
	}
	return strconv.Itoa(int(*p))
}

func (p *payloadSize) Set(s string) error {
	switch s {
	case "full":
		*p = -1
		return nil
	case "none":
		*p = 0
		return nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return fmt.Errorf("want a number of bytes, none or full")
	}
	*p = payloadSize(n)
	return nil
}
