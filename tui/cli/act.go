package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

// action is what a command does to each thing named by its arguments.
type action struct {
	id     string   // field of the thing's id in documents: "run_id"
	fields []string // fields of an outcome in documents, after the id
	do     func(ctx context.Context, c *client, id string) (outcome, error)
}

// outcome is the result of an action: a safe line for people and a value for each field of the
// action.
type outcome struct {
	line      string
	values    []any
	unchanged bool // it was already as requested; only shown for bulk actions
}

// actor runs an action on one thing after another and keeps the exit code.
type actor struct {
	*client
	action action
	seq    *sequence
	hints  []string
	code   int
}

// act runs an action on all ids and prints a result for each.
func (c *client) act(ctx context.Context, action action, ids []string) error {
	a := &actor{client: c, action: action, seq: &sequence{out: c.out}}
	var err error
	for _, id := range ids {
		if err = a.one(ctx, id); err != nil {
			break
		}
	}
	if closing := a.seq.close(); err == nil {
		err = closing
	}
	for _, hint := range a.hints {
		c.out.say("%s", hint)
	}
	if err != nil {
		return err
	}
	return exit(a.code)
}

// one runs the action and prints its result. It returns only errors that would also hit the next
// id.
func (a *actor) one(ctx context.Context, id string) error {
	o, err := a.action.do(ctx, a.client, id)
	if err != nil && !ofOne(err) {
		return err
	}
	document := render.Object{{Name: a.action.id, Value: id}}
	for i, name := range a.action.fields {
		field := render.Field{Name: name}
		if err == nil {
			field.Value = o.values[i]
		}
		document = append(document, field)
	}
	problem := render.Field{Name: "error"}
	line := render.Safe(id) + "  " + o.line
	if err != nil {
		lines, code := explain(a.placed(err))
		a.fail(code, lines[1:])
		problem.Value = lines[0]
		line = render.Safe(id) + "  " + a.out.paint("error: "+render.Safe(lines[0]), render.Bad)
	}
	return a.seq.add(line, append(document, problem))
}

// ofOne reports whether an error concerns only this id, so that the next may succeed.
func ofOne(err error) bool {
	switch status.Code(err) {
	case codes.NotFound, codes.FailedPrecondition, codes.InvalidArgument, codes.AlreadyExists, codes.Aborted:
		return true
	}
	return false
}

// fail keeps the exit code and each hint once. Different codes become ExitError.
func (a *actor) fail(code int, hints []string) {
	if a.code != ExitOK && a.code != code {
		code = ExitError
	}
	a.code = code
	for _, hint := range hints {
		if !slices.Contains(a.hints, hint) {
			a.hints = append(a.hints, hint)
		}
	}
}

// runOptions are the options of commands on single runs.
type runOptions struct {
	external bool
	reason   string
}

func (o *runOptions) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.external, "external", false, "IDs are external ids; use the newest run of each")
	cmd.Flags().StringVar(&o.reason, "reason", "", "reason, kept in the audit log")
}

// runID returns the id of the run that an argument names.
func (c *client) runID(ctx context.Context, id string, external bool) (string, error) {
	if !external {
		return id, nil
	}
	run, err := c.find(ctx, id, true)
	return run.GetRunId(), err
}

// action returns an action on runs that are named by id or external id.
func (o *runOptions) action(fields []string, do func(context.Context, *client, string) (outcome, error)) action {
	return action{id: "run_id", fields: fields, do: func(ctx context.Context, c *client, id string) (outcome, error) {
		runID, err := c.runID(ctx, id, o.external)
		if err != nil {
			return outcome{}, err
		}
		result, err := do(ctx, c, runID)
		return result, c.externalHint(err)
	}}
}

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
		Short: "Set the result of a step, so that a stuck run can continue",
		Long: `Set the recorded result of a step of a run that is paused or has ended without success. The step
counts as completed with the result, or as failed for good with the error. The old record stays in
the history, with who changed it and why. To continue a paused run use kagzi workflow resume; to
continue an ended run use kagzi workflow retry.`,
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
	fs.StringVar(&o.result, "result", "",
		"the step is completed with this: JSON, @FILE that holds JSON, or - for stdin")
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
		r.Result = &kagziv1.OverrideStepRequest_Error{
			Error: &kagziv1.ErrorDetail{Message: o.message, Type: o.errorType, NonRetryable: true}}
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
		human: func() []string {
			return c.out.table(render.StepsTable([]*kagziv1.Step{answer.GetStep()}, c.view()))
		},
		document: render.Document(answer),
	})
}
