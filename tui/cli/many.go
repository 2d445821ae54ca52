package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
	"github.com/kagzi/kagzi/tui/cli/internal/flagvalue"
	"github.com/kagzi/kagzi/tui/filter"
	"github.com/kagzi/kagzi/tui/render"
)

// manyOptions are the options of commands on runs given by id or by filter: cancel, terminate,
// retry, pause, resume, pin, unpin.
type manyOptions struct {
	runOptions
	verb     string // "cancel"
	action   action
	server   kagziv1.BulkAction                  // the server's bulk action for the filter
	oneByOne func() bool                         // whether the server's bulk action cannot do what the flags ask for
	bulk     func(*kagziv1.BulkWorkflowsRequest) // sets what the flags ask for; nil: nothing
	statuses []string                            // statuses to select if the filter names none; nil: any
	open     *standing                           // which of the selected runs to act on; nil: all

	ids    []string
	query  string
	choose string // the filter, with what the command adds
	limit  int64
	yes    bool
}

// standing selects the runs that need the action. Other runs that match the filter are neither
// changed nor counted.
type standing struct {
	word string // "not paused"
	of   func(*kagziv1.Workflow) bool
}

// chosen describes which runs a filter selects.
func (o *manyOptions) chosen() string {
	var said []string
	if o.statuses != nil {
		said = append(said, fmt.Sprintf("Unless the filter names a status, it selects runs that are %s.",
			strings.Join(o.statuses, ", ")))
	}
	if o.open != nil {
		said = append(said, fmt.Sprintf("A filter selects only runs that are %s.", o.open.word))
	}
	return strings.Join(said, "\n")
}

func (o *manyOptions) command(e *env, short, long, example string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   o.verb + " ID... | -q FILTER",
		Short: short,
		Long: short + ".\n\n" + long + fmt.Sprintf(`

Give the runs by id, or select them with -q.
%s
With -q the command shows how many runs match and asks for confirmation; -y skips it, and is
required without a terminal. Progress goes to stderr. Exit code: 1 if the action failed for a run.

`, o.chosen()) + filterHelp,
		Example: fmt.Sprintf(
			"  kagzi workflow %[1]s 01936b2e-… %[2]s\n  kagzi workflow %[1]s -q 'type = \"order*\" and not tag.customer = x' --limit 100 -y", o.verb, example),
		ValidArgsFunction: e.complete(completeRuns),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parse(args, cmd.Flags().Changed); err != nil {
				return err
			}
			return e.run(cmd, func(ctx context.Context, c *client) error {
				if len(o.ids) > 0 {
					return c.act(ctx, o.action, o.ids)
				}
				return runMany(ctx, c, o)
			})
		},
	}
	o.register(cmd)
	cmd.Flags().StringVarP(&o.query, "query", "q", "", queryHelp)
	cmd.Flags().Int64Var(&o.limit, "limit", 0, "with -q: stop after this many runs (default: all)")
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "with -q: do not ask for confirmation")
	return cmd
}

func (o *manyOptions) parse(args []string, changed func(string) bool) error {
	o.ids = args
	switch {
	case len(args) == 0 && strings.TrimSpace(o.query) == "":
		err := usagef("no runs given: name their ids, or a filter with -q")
		err.hint = []string{"usage: kagzi workflow " + o.verb + " ID... | -q FILTER [flags]",
			"see: kagzi workflow " + o.verb + " --help"}
		return err
	case len(args) > 0 && changed("query"):
		return usagef("ids and -q cannot be given together")
	case len(args) > 0 && changed("limit"):
		return usagef("--limit needs -q")
	case len(args) == 0 && o.external:
		return usagef(`--external needs IDs; in a filter use: external_id = "x"`)
	case changed("limit") && o.limit < 1:
		return usagef("--limit is %d; it must be at least 1", o.limit)
	}
	q, err := query.Runs.Parse(o.query, time.Time{})
	switch {
	case err != nil:
		return filterError(err)
	case q == nil:
		return nil
	}
	o.choose = strings.TrimSpace(o.query)
	if o.statuses != nil && !q.Uses("status") {
		o.choose = q.Operand() + " and status in (" + strings.Join(o.statuses, ", ") + ")"
	}
	return nil
}

// runMany acts on all runs that match the filter.
func runMany(ctx context.Context, c *client, o *manyOptions) error {
	q, err := c.compile(o.choose)
	if err != nil {
		return err
	}
	if o.open != nil {
		q.Keep = both(q.Keep, o.open.of)
	}
	if !o.yes {
		if err := c.out.askable("-y skips the confirmation; list the selected runs first: kagzi workflow list -q " +
			render.Safe(quoted(o.choose))); err != nil {
			return err
		}
	}
	total, err := c.countRuns(ctx, q)
	if err != nil {
		return err
	}
	if o.limit > 0 {
		total = min(total, o.limit)
	}
	p := &progress{out: c.out, verb: o.verb, total: total, now: c.now}
	if total == 0 {
		c.out.say("no runs%s in namespace %s", matching(o.choose), c.namespace)
		return p.print()
	}
	if err := o.confirm(ctx, c, total); err != nil {
		return err
	}
	if err := o.carryOut(ctx, c, q, p); err != nil {
		return err
	}
	if err := p.print(); err != nil {
		return err
	}
	if p.last.GetFailed() > 0 {
		return codeError(ExitError)
	}
	return nil
}

// both combines two conditions; the first may be nil.
func both(one, other func(*kagziv1.Workflow) bool) func(*kagziv1.Workflow) bool {
	if one == nil {
		return other
	}
	return func(r *kagziv1.Workflow) bool { return one(r) && other(r) }
}

// carryOut acts on the runs, and reports progress if it ends early.
func (o *manyOptions) carryOut(ctx context.Context, c *client, q filter.Query, p *progress) (err error) {
	q.Request.Page = nil
	if q.Keep != nil || o.oneByOne() {
		err = o.byOne(ctx, c, q, p)
	} else {
		err = o.byServer(ctx, c, q, p)
	}
	p.end()
	if err != nil && p.last != nil {
		c.out.say("%s, then it stopped; run the same command again for the rest", p.line())
	}
	return err
}

// confirm asks whether to act on the selected runs.
func (o *manyOptions) confirm(ctx context.Context, c *client, total int64) error {
	if o.yes {
		return nil
	}
	return c.out.ask(ctx, fmt.Sprintf("%s %s matching %s?", o.verb, flagvalue.Counted(total, "run"), o.choose))
}

// errEnough stops paging at the limit.
var errEnough = errors.New("enough")

// byOne acts on each run from here, for what the server's bulk action cannot do. It pages from the
// newest run back, so new runs are not touched and ended runs do not shift the pages.
func (o *manyOptions) byOne(ctx context.Context, c *client, q filter.Query, p *progress) error {
	so := &kagziv1.BulkWorkflowsProgress{}
	_, err := c.eachPage(ctx, q, -1, "", func(runs []*kagziv1.Workflow) error {
		for _, r := range runs {
			if o.limit > 0 && so.Matched == o.limit {
				return errEnough
			}
			so.Matched++
			came, err := o.action.do(ctx, c, r.GetRunId())
			switch {
			case err == nil:
				so.Done++
				if came.unchanged {
					so.Unchanged++
				}
			case ofOne(err):
				lines, _ := explain(c.placed(err))
				so.Failed, so.LastError, so.LastRunId = so.Failed+1, &kagziv1.ErrorDetail{Message: lines[0]},
					r.GetRunId()
			default:
				return err
			}
			p.show(so)
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// byServer starts the server's bulk action and follows its progress.
func (o *manyOptions) byServer(ctx context.Context, c *client, q filter.Query, p *progress) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	request := &kagziv1.BulkWorkflowsRequest{
		Action: o.server, Filter: q.Request, Reason: o.reason, Limit: o.limit}
	if o.bulk != nil {
		o.bulk(request)
	}
	events, err := c.BulkWorkflows(ctx, request)
	if err != nil {
		return err
	}
	for {
		event, err := events.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		p.show(event)
	}
}

// sparse is the minimum time between two progress lines in a log.
const sparse = 10 * time.Second

// progress shows the progress of a bulk action on stderr: one updated line in a terminal, a line
// now and then elsewhere. Each failure gets its own line.
type progress struct {
	out   *output
	verb  string
	total int64
	now   func() time.Time

	last  *kagziv1.BulkWorkflowsProgress
	said  time.Time // when the last line was logged
	width int       // of the line shown in the terminal
}

func (p *progress) show(event *kagziv1.BulkWorkflowsProgress) {
	if event.GetFailed() > p.last.GetFailed() {
		p.end()
		p.out.say("run %s: %s", event.GetLastRunId(), render.ErrorLine(event.GetLastError()))
	}
	if p.last == nil {
		p.said = p.now()
	}
	p.last = proto.CloneOf(event)
	if p.out.errTTY {
		line := p.line()
		// progress that cannot be shown is no reason to fail
		_, _ = fmt.Fprint(p.out.err, "\r"+line+strings.Repeat(" ", max(p.width-len(line), 0)))
		p.width = len(line)
	} else if now := p.now(); now.Sub(p.said) >= sparse {
		p.said = now
		p.out.say("%s", p.line())
	}
}

// end clears the line in the terminal.
func (p *progress) end() {
	if p.width > 0 {
		_, _ = fmt.Fprint(p.out.err, "\r"+strings.Repeat(" ", p.width)+"\r")
		p.width = 0
	}
}

// line returns the progress as ASCII, short enough for any terminal.
func (p *progress) line() string {
	before := ""
	if n := p.last.GetUnchanged(); n > 0 {
		before = fmt.Sprintf(" (%d unchanged)", n)
	}
	return fmt.Sprintf("%s: %d of %d done%s, %d failed", p.verb, p.last.GetDone(), max(p.total, p.last.GetMatched()),
		before, p.last.GetFailed())
}

// print prints the result, as a line if any run matched, or as a document.
func (p *progress) print() error {
	return p.out.print(result{human: func() []string {
		if p.total == 0 {
			return nil
		}
		return []string{p.line()}
	}, document: p.document()})
}

func (p *progress) document() render.Object {
	last := p.last
	if last == nil {
		last = &kagziv1.BulkWorkflowsProgress{}
	}
	return append(render.Object{{Name: "action", Value: p.verb}}, render.Document(last).(render.Object)...)
}
