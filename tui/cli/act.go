package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/tui/render"
)

// action is what a command does to each of the things that its arguments name.
type action struct {
	id     string   // name of the thing's id in documents: "run_id"
	fields []string // of an outcome, in documents, behind the id
	do     func(ctx context.Context, c *client, id string) (outcome, error)
}

// outcome is what an action came to: a safe line for people, and a value for each of the action's fields.
type outcome struct {
	line      string
	values    []any
	unchanged bool // it was as wanted already; told of runs that are many
}

// actor does an action to one thing after another and remembers with which code that ends.
type actor struct {
	*client
	action action
	seq    *sequence
	hints  []string
	code   int
}

// act does an action to all that ids name, answering for each.
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

// one acts and prints what came of it. Only errors that the next one would meet as well come back.
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

// ofOne says that an error is about the one thing that was named, so that the next one may well succeed.
func ofOne(err error) bool {
	switch status.Code(err) {
	case codes.NotFound, codes.FailedPrecondition, codes.InvalidArgument, codes.AlreadyExists, codes.Aborted:
		return true
	}
	return false
}

// fail remembers a code, different ones become the general one, and hints, each once.
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

// runOptions are those of commands about single runs.
type runOptions struct {
	external bool
	reason   string
}

func (o *runOptions) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.external, "external", false, "the IDs are external ids: their newest runs are meant")
	cmd.Flags().StringVar(&o.reason, "reason", "", "why, for whoever looks at the run later")
}

// runID is the id of the run that an argument names.
func (c *client) runID(ctx context.Context, id string, external bool) (string, error) {
	if !external {
		return id, nil
	}
	run, err := c.find(ctx, id, true)
	return run.GetRunId(), err
}

// action makes an action on runs that are named as the options say.
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
