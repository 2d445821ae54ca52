package cli

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/cli/internal/flagvalue"
	"github.com/kagzi/kagzi/tui/filter"
	"github.com/kagzi/kagzi/tui/render"
)

// Limits of a tree. The output names what they leave out.
const (
	defaultTreeDepth = 10
	maxTreeRuns      = 2000
)

// globalHandler is the reserved workflow type that handles failures of a whole namespace.
const globalHandler = "__kagzi_failure_handler"

func runShowTree(ctx context.Context, c *client, o *showOptions) error {
	run, err := c.find(ctx, o.id, o.external)
	if err != nil {
		return err
	}
	g := &grower{client: c, depth: o.depth, left: maxTreeRuns, seen: map[string]bool{}}
	lineage, err := g.grow(ctx, run, 0)
	if err != nil {
		return err
	}
	return c.out.print(result{
		human:    func() []string { return c.out.table(render.LineageTable(lineage, c.view())) },
		document: render.LineageDocument(lineage),
	})
}

// grower collects a lineage. It visits each run once, so it ends even if runs refer to each other
// in a cycle.
type grower struct {
	*client
	depth int             // generations of children below the first run
	left  int             // how many more runs to collect
	seen  map[string]bool // by run id
}

// grow collects a run's lineage and the runs that it continued as.
func (g *grower) grow(ctx context.Context, run *kagziv1.Workflow, depth int) (*render.Lineage, error) {
	l, err := g.one(ctx, run, depth)
	for last := l; err == nil && g.left > 0 && last.Run.GetContinuedAsRunId() != "" &&
		!g.seen[last.Run.GetContinuedAsRunId()]; {
		var next *kagziv1.Workflow
		if next, err = g.lookUp(ctx, last.Run.GetContinuedAsRunId()); next == nil {
			break
		}
		if last, err = g.one(ctx, next, depth); err == nil {
			l.Continued = append(l.Continued, last)
		}
	}
	return l, err
}

// lookUp gets a run that another run names; nil if retention has deleted it.
func (g *grower) lookUp(ctx context.Context, id string) (*kagziv1.Workflow, error) {
	answer, err := g.GetWorkflow(ctx, &kagziv1.GetWorkflowRequest{Namespace: g.namespace, RunId: id})
	if status.Code(err) == codes.NotFound {
		return nil, nil
	}
	return answer.GetWorkflow(), err
}

// one collects a run's steps, children and handlers.
func (g *grower) one(ctx context.Context, run *kagziv1.Workflow, depth int) (*render.Lineage, error) {
	l := &render.Lineage{Run: run}
	if g.seen[run.GetRunId()] {
		l.Omitted = "shown above"
		return l, nil
	}
	g.seen[run.GetRunId()] = true
	g.left--
	var err error
	if l.Steps, err = g.steps(ctx, run.GetRunId(), false); err != nil {
		return nil, err
	}
	children, err := g.children(ctx, run, l.Steps)
	if err != nil {
		return nil, err
	}
	handlers, err := g.handlers(ctx, run)
	if err != nil {
		return nil, err
	}
	if n := len(children) + len(handlers); n > 0 && depth == g.depth {
		l.Omitted = flagvalue.Counted(int64(n), "run") + " below, beyond --depth"
		return l, nil
	}
	var more, moreHandlers int
	if l.Children, more, err = g.all(ctx, children, depth+1); err != nil {
		return nil, err
	}
	if l.Handlers, moreHandlers, err = g.all(ctx, handlers, depth+1); err != nil {
		return nil, err
	}
	if more += moreHandlers; more > 0 {
		l.Omitted = flagvalue.Counted(int64(more), "run") +
			" more, too many to show; see: kagzi workflow list --parent " + run.GetRunId()
	}
	return l, nil
}

// all collects sibling runs and counts those beyond the limit. A run that a sibling continued as is
// listed with that sibling.
func (g *grower) all(ctx context.Context, runs []*kagziv1.Workflow, depth int) (list []*render.Lineage, more int,
	err error) {
	continued := map[string]bool{}
	for i, r := range runs {
		if continued[r.GetRunId()] {
			continue
		}
		if g.left == 0 {
			return list, len(runs) - i, nil
		}
		l, err := g.grow(ctx, r, depth)
		if err != nil {
			return nil, 0, err
		}
		for _, next := range l.Continued {
			continued[next.Run.GetRunId()] = true
		}
		list = append(list, l)
	}
	return list, 0, nil
}

// children returns the runs that a run started, oldest first: those with it as parent, and those
// its steps name.
func (g *grower) children(ctx context.Context, run *kagziv1.Workflow,
	steps []*kagziv1.Step) ([]*kagziv1.Workflow, error) {
	id := run.GetRunId()
	children, err := g.list(ctx, &kagziv1.ListWorkflowsRequest{Namespace: g.namespace, ParentRunId: &id})
	if err != nil {
		return nil, err
	}
	known := map[string]bool{"": true}
	for _, child := range children {
		known[child.GetRunId()] = true
	}
	for _, s := range steps {
		if known[s.GetChildRunId()] {
			continue
		}
		known[s.GetChildRunId()] = true
		child, err := g.lookUp(ctx, s.GetChildRunId())
		if err != nil {
			return nil, err
		}
		if child != nil {
			children = append(children, child)
		}
	}
	return children, nil
}

// handlers returns the runs that handle a run's failure. The commit that ends the run creates them,
// so they were created at its end.
func (g *grower) handlers(ctx context.Context, run *kagziv1.Workflow) ([]*kagziv1.Workflow, error) {
	failed := run.GetStatus() == kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED ||
		run.GetStatus() == kagziv1.WorkflowStatus_WORKFLOW_STATUS_TIMED_OUT
	if !failed || run.GetFinishedAt() == nil || run.FailedRunId != nil {
		return nil, nil
	}
	types := []string{globalHandler}
	if run.GetOnFailureWorkflow() != "" {
		types = append(types, run.GetOnFailureWorkflow())
	}
	end := run.GetFinishedAt().AsTime()
	runs, err := g.list(ctx, &kagziv1.ListWorkflowsRequest{
		Namespace: g.namespace, WorkflowTypes: types,
		CreatedAfter:  timestamppb.New(end.Add(-time.Millisecond)),
		CreatedBefore: timestamppb.New(end.Add(time.Millisecond)),
	})
	return slices.DeleteFunc(runs, func(r *kagziv1.Workflow) bool { return r.GetFailedRunId() != run.GetRunId() }), err
}

// list returns all runs of a request, oldest first.
func (g *grower) list(ctx context.Context, request *kagziv1.ListWorkflowsRequest) ([]*kagziv1.Workflow, error) {
	var runs []*kagziv1.Workflow
	_, err := g.eachPage(ctx, filter.Query{Request: request}, -1, "", func(more []*kagziv1.Workflow) error {
		runs = append(runs, more...)
		return nil
	})
	slices.Reverse(runs)
	return runs, err
}
