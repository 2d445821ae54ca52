package cli

import (
	"context"
	"fmt"
	"slices"
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
	tree     bool
	depth    int
	web      bool
	failed   bool
}

func newShow(e *env, o *showOptions) *cobra.Command {
	o.payloads = 2048
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a run with its steps, error, input and output, or with --tree all related runs",
		Long: `Show a run: its status, error, input, output, steps and signals, overridden steps with who changed
them and why, and actions by people.

With --failed leave out steps that succeeded, and attempts that were tried again: of a run with
thousands of steps it reads only those that failed or are open.

With --web open its page in a browser, and print the address.

With --tree show its lineage: its steps, the child runs with their steps, the runs that handle its
failure, and the runs it continued as.`,
		Example:           "  kagzi workflow show 01936b2e-…\n  kagzi workflow show --external order-17 --payloads full\n  kagzi workflow show 01936b2e-… --tree",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: e.complete(completeRuns),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.id = args[0]
			work := runShow
			switch {
			case o.web && o.tree:
				return usagef("give either --web or --tree, not both")
			case o.failed && (o.web || o.tree):
				return usagef("--failed does not go with --web or --tree")
			case o.web:
				work = func(ctx context.Context, c *client, o *showOptions) error { return e.showPage(ctx, cmd, c, o) }
			case o.tree && o.depth < 0:
				return usagef("--depth is %d; it must be at least 0", o.depth)
			case o.tree:
				work = runShowTree
			case cmd.Flags().Changed("depth"):
				return usagef("--depth needs --tree")
			}
			return e.run(cmd, func(ctx context.Context, c *client) error { return work(ctx, c, o) })
		},
	}
	cmd.Flags().BoolVar(&o.external, "external", false, "ID is an external id; show its newest run")
	cmd.Flags().Var(&o.payloads, "payloads",
		"bytes of each payload to show: a number, none or full (JSON and YAML always contain all)")
	cmd.Flags().BoolVar(&o.failed, "failed", false, "show only steps that failed or are open")
	cmd.Flags().BoolVar(&o.tree, "tree", false, "show the run with its children and all related runs")
	cmd.Flags().BoolVar(&o.web, "web", false, "open the page of the run in a browser, and print its address")
	cmd.Flags().IntVar(&o.depth, "depth", defaultTreeDepth, "with --tree: generations of children to show")
	_ = cmd.RegisterFlagCompletionFunc("payloads", words("none", "full")) // fails only if the flag does not exist
	return cmd
}

func runShow(ctx context.Context, c *client, o *showOptions) error {
	run, err := c.find(ctx, o.id, o.external)
	if err != nil {
		return err
	}
	shown := shownRun{run: run}
	if shown.steps, err = c.steps(ctx, run.GetRunId(), o.failed); err != nil {
		return err
	}
	if shown.signals, err = c.signals(ctx, run.GetRunId()); err != nil {
		return err
	}
	if shown.audit, err = c.audit(ctx, run.GetRunId()); err != nil {
		return err
	}
	return c.out.print(result{
		human:    func() []string { return shown.lines(c, int(o.payloads)) },
		document: shown.document(),
	})
}

// find returns a run by id or by external id.
func (c *client) find(ctx context.Context, id string, external bool) (*kagziv1.Workflow, error) {
	if external {
		answer, err := c.GetWorkflowByExternalId(
			ctx, &kagziv1.GetWorkflowByExternalIdRequest{Namespace: c.namespace, ExternalId: id})
		return answer.GetWorkflow(), err
	}
	answer, err := c.GetWorkflow(ctx, &kagziv1.GetWorkflowRequest{Namespace: c.namespace, RunId: id})
	return answer.GetWorkflow(), c.externalHint(err)
}

// externalHint adds a hint about --external to an error for an argument that is no run id, or the
// beginning of none.
func (c *client) externalHint(err error) error {
	code := status.Code(err)
	if code != codes.InvalidArgument && code != codes.NotFound || detailOf(status.Convert(err)).GetMetadata()["field"] != "run_id" {
		return err
	}
	return &callError{err: err, hint: "if this is an external id, add --external"}
}

// steps returns every attempt of a run's steps, or the latest attempts of those that failed or are
// open.
func (c *client) steps(ctx context.Context, runID string, failed bool) ([]*kagziv1.Step, error) {
	var steps []*kagziv1.Step
	request := &kagziv1.ListStepsRequest{Namespace: c.namespace, RunId: runID, LatestOnly: failed}
	if failed {
		request.Statuses = []kagziv1.StepStatus{kagziv1.StepStatus_STEP_STATUS_FAILED,
			kagziv1.StepStatus_STEP_STATUS_PENDING, kagziv1.StepStatus_STEP_STATUS_RUNNING}
	}
	_, err := eachPage(-1, "", func(page *kagziv1.PageRequest) (int, *kagziv1.PageInfo, error) {
		request.Page = page
		answer, err := c.ListSteps(ctx, request)
		steps = append(steps, answer.GetSteps()...)
		return len(answer.GetSteps()), answer.GetPage(), err
	})
	if failed { // older servers select nothing
		steps = slices.DeleteFunc(steps, func(s *kagziv1.Step) bool {
			return !s.GetIsLatest() || !slices.Contains(request.Statuses, s.GetStatus())
		})
	}
	return steps, err
}

// signals returns a run's signals in order of arrival; nil from a server that cannot list them.
func (c *client) signals(ctx context.Context, runID string) ([]*kagziv1.Signal, error) {
	signals := []*kagziv1.Signal{}
	_, err := eachPage(-1, "", func(page *kagziv1.PageRequest) (int, *kagziv1.PageInfo, error) {
		answer, err := c.ListSignals(ctx, &kagziv1.ListSignalsRequest{Namespace: c.namespace, RunId: runID, Page: page})
		signals = append(signals, answer.GetSignals()...)
		return len(answer.GetSignals()), answer.GetPage(), err
	})
	if status.Code(err) == codes.Unimplemented {
		return nil, nil
	}
	return signals, err
}

// audit returns what people did to a run, oldest first; nil if the server or the caller's role does
// not allow it.
func (c *client) audit(ctx context.Context, runID string) ([]*kagziv1.AuditEvent, error) {
	events := []*kagziv1.AuditEvent{}
	_, err := eachPage(-1, "", func(page *kagziv1.PageRequest) (int, *kagziv1.PageInfo, error) {
		answer, err := c.ListAuditEvents(ctx, &kagziv1.ListAuditEventsRequest{
			Namespace: c.namespace, SubjectId: &runID, Page: page})
		events = append(events, answer.GetEvents()...)
		return len(answer.GetEvents()), answer.GetPage(), err
	})
	switch status.Code(err) {
	case codes.Unimplemented, codes.PermissionDenied:
		return nil, nil
	}
	slices.Reverse(events)
	return events, err
}

// payloadSize is a flag for the number of payload bytes to show; negative means all.
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
		return fmt.Errorf("must be a number of bytes, none or full")
	}
	*p = payloadSize(n)
	return nil
}

type explainOptions struct {
	id       string
	external bool
}

func newExplain(e *env, o *explainOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain ID",
		Short: "Explain what a run waits for, since when, and what happens next",
		Example: `  kagzi workflow explain 01936b2e-…
  kagzi workflow explain --external order-17 -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: e.completeOne(completeRuns),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.id = args[0]
			return e.run(cmd, func(ctx context.Context, c *client) error { return runExplain(ctx, c, o) })
		},
	}
	cmd.Flags().BoolVar(&o.external, "external", false, "ID is an external id; use its newest run")
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
			lines = append(lines, render.PairLines(render.ExplainPairs(answer, c.view()), c.out.colour)...)
			for _, line := range render.StackLines(answer) {
				lines = append(lines, render.Safe(line))
			}
			return lines
		},
		document: render.Document(answer),
	})
}

// shownRun is everything that show prints. Signals and audit are nil if the server does not tell.
type shownRun struct {
	run     *kagziv1.Workflow
	steps   []*kagziv1.Step
	signals []*kagziv1.Signal
	audit   []*kagziv1.AuditEvent
}

func (s shownRun) document() render.Object {
	document := render.Object{
		{Name: "workflow", Value: render.Document(s.run)}, {Name: "steps", Value: render.Documents(s.steps)},
		{Name: "signals"}, {Name: "audit_events"},
	}
	if s.signals != nil {
		document[2].Value = render.Documents(s.signals)
	}
	if s.audit != nil {
		document[3].Value = render.Documents(s.audit)
	}
	return document
}

// lines returns the run for people: its properties, then a section for each part.
func (s shownRun) lines(c *client, payloads int) []string {
	v := c.view()
	lines := render.PairLines(render.RunPairs(s.run, v), c.out.colour)
	section := func(title string, body []string) {
		lines = append(append(lines, "", c.out.paint(title, render.Strong)), body...)
	}
	table := func(title string, t render.Table) {
		if len(t.Rows) > 0 {
			section(title, c.out.table(t))
		}
	}
	v.Payloads = payloads
	if s.run.GetError() != nil {
		section("Error", indent(render.ErrorLines(s.run.GetError(), v)))
	}
	if payloads != 0 && len(s.run.GetInput().GetData()) > 0 {
		section("Input", indent(render.PayloadLines(s.run.GetInput(), payloads)))
	}
	if payloads != 0 && len(s.run.GetOutput().GetData()) > 0 {
		section("Output", indent(render.PayloadLines(s.run.GetOutput(), payloads)))
	}
	table("Steps", render.StepsTable(s.steps, c.view()))
	table("Overridden steps", render.OverridesTable(s.steps, c.view()))
	table("Signals", render.SignalsTable(s.signals, c.view()))
	table("Done by people", render.AuditTable(s.audit, c.view()))
	last := map[string]*kagziv1.Step{} // of each step: the stacks of its attempts are mostly the same
	for _, step := range s.steps {
		if step.GetError().GetStack() != "" {
			last[step.GetName()] = step
		}
	}
	for _, step := range s.steps {
		if last[step.GetName()] == step && payloads != 0 {
			title := fmt.Sprintf("Error of %s, attempt %d", render.Safe(step.GetName()), step.GetAttemptNumber())
			section(title, indent(render.ErrorLines(step.GetError(), v)))
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
