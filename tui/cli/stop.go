package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/filter"
	"github.com/kagzi/kagzi/tui/render"
)

// stopOptions are those of cancel and terminate, which choose runs in the same way.
type stopOptions struct {
	ids    []string
	choose filter.Filter
	query  string
	yes    bool
	reason string
	verb   string // "cancel" or "terminate"
	stop   func(ctx context.Context, c *client, runID string) (kagziv1.WorkflowStatus, error)
}

func newCancel(e *env, o *stopOptions) *cobra.Command {
	o.verb = "cancel"
	o.stop = func(ctx context.Context, c *client, runID string) (kagziv1.WorkflowStatus, error) {
		answer, err := c.CancelWorkflow(ctx, &kagziv1.CancelWorkflowRequest{Namespace: c.namespace, RunId: runID, Reason: o.reason})
		return answer.GetStatus(), err
	}
	return o.command(e, "Ask runs to stop: their code is told, and none of their later writes counts")
}

func newTerminate(e *env, o *stopOptions) *cobra.Command {
	o.verb = "terminate"
	o.stop = func(ctx context.Context, c *client, runID string) (kagziv1.WorkflowStatus, error) {
		answer, err := c.TerminateWorkflow(ctx, &kagziv1.TerminateWorkflowRequest{Namespace: c.namespace, RunId: runID, Reason: o.reason})
		return answer.GetStatus(), err
	}
	return o.command(e, "End runs now, whatever their workers do")
}

func (o *stopOptions) command(e *env, short string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   o.verb + " ID... | -q FILTER",
		Short: short,
		Long: short + `.

Runs are named by their ids, or chosen with -q. Unless the filter names a status it chooses runs that have not ended. With -q
the command asks first, naming how many there are; -y answers yes, and without a terminal it is required.

` + filterHelp,
		Example:           fmt.Sprintf("  kagzi workflow %[1]s 01936b2e-… --reason \"wrong input\"\n  kagzi workflow %[1]s -q 'type = \"order\" and tag.customer = \"x\"' -y", o.verb),
		ValidArgsFunction: e.complete(completeRuns),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parse(args); err != nil {
				return err
			}
			return e.run(cmd, func(ctx context.Context, c *client) error { return runStop(ctx, c, o) })
		},
	}
	cmd.Flags().StringVarP(&o.query, "query", "q", "", queryHelp)
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	cmd.Flags().StringVar(&o.reason, "reason", "", "why, for whoever looks at the runs later")
	return cmd
}

func (o *stopOptions) parse(args []string) error {
	o.ids = args
	if (len(args) == 0) == (strings.TrimSpace(o.query) == "") {
		return usagef("which runs? want their ids, or a filter with -q")
	}
	f, err := filter.Parse(o.query)
	if err != nil {
		return filterError(err)
	}
	if f != nil && !f.Has(filter.Status) {
		f = append(f, filter.Condition{Field: filter.Status, Op: filter.In, Values: []string{"PENDING", "RUNNING", "SLEEPING"}})
	}
	o.choose = f
	return nil
}

func runStop(ctx context.Context, c *client, o *stopOptions) error {
	s := &stopper{client: c, options: o, seq: &sequence{out: c.out}}
	err := s.all(ctx)
	if closing := s.seq.close(); err == nil && closing != nil {
		return closing
	}
	if err != nil {
		return err
	}
	return exit(s.code)
}

// stopper stops runs one after another and remembers with which code that ends.
type stopper struct {
	*client
	options *stopOptions
	seq     *sequence
	code    int
}

func (s *stopper) all(ctx context.Context) error {
	for _, id := range s.options.ids {
		if err := s.one(ctx, id); err != nil {
			return err
		}
	}
	if len(s.options.ids) > 0 {
		return nil
	}
	q, err := s.compile(s.options.choose)
	if err != nil {
		return err
	}
	if err := s.confirm(ctx, q); err != nil {
		return err
	}
	// Pages go from the newest run back, so runs that start meanwhile are not touched and ended ones do not shift the rest.
	found := false
	_, err = s.eachPage(ctx, q, -1, "", func(runs []*kagziv1.Workflow) error {
		for _, r := range runs {
			found = true
			if err := s.one(ctx, r.GetRunId()); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && !found {
		s.out.say("no runs%s in namespace %s", matching(s.options.choose), s.namespace)
	}
	return err
}

// confirm asks whether the runs that the filter chooses are meant.
func (s *stopper) confirm(ctx context.Context, q filter.Query) error {
	if s.options.yes {
		return nil
	}
	if !s.out.inTTY {
		return &usageError{err: errors.New("there is no terminal to ask on"), hint: []string{"-y goes ahead without asking; see first what is chosen: kagzi workflow list -q …"}}
	}
	n, err := s.countRuns(ctx, q)
	if err != nil {
		return err
	}
	if n == 0 {
		return nil
	}
	_, _ = fmt.Fprint(s.out.err, render.Safe(fmt.Sprintf("%s %s matching %s? [y/N] ", s.options.verb, counted(n, "run"), s.options.choose)))
	answer, err := bufio.NewReader(s.out.in).ReadString('\n')
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	} // any other end of input means no
	if reply := strings.ToLower(strings.TrimSpace(answer)); reply != "y" && reply != "yes" {
		s.out.say("nothing done")
		return codeError(ExitError)
	}
	return nil
}

// one stops a run and prints what came of it. Only errors that the next run would meet as well end the command.
func (s *stopper) one(ctx context.Context, id string) error {
	st, err := s.options.stop(ctx, s.client, id)
	switch status.Code(err) {
	case codes.OK, codes.NotFound, codes.FailedPrecondition, codes.InvalidArgument, codes.AlreadyExists, codes.Aborted:
	default:
		return err
	}
	document := render.Object{{Name: "run_id", Value: id}, {Name: "status", Value: nil}, {Name: "error", Value: nil}}
	line := render.Safe(id) + "  "
	if err != nil {
		lines, code := explainCall(&callError{address: s.address, err: err})
		s.fail(code)
		document[2].Value = lines[0]
		line += s.out.paint("error: "+render.Safe(lines[0]), render.Bad)
	} else {
		document[1].Value = render.RunStatus(st)
		line += s.out.paint(render.RunStatus(st), render.RunStyle(st))
	}
	return s.seq.add(line, document)
}

// fail remembers a code; different ones become the general one.
func (s *stopper) fail(code int) {
	if s.code != ExitOK && s.code != code {
		code = ExitError
	}
	s.code = code
}
