package web

import (
	"net/http"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	g "maragu.dev/gomponents"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	h "github.com/kagzi/kagzi/tui/web/internal/markup"
)

const (
	treeDepth = 5   // generations below a run
	treeRuns  = 200 // of a tree
	treeChild = 50  // children of a run
)

// grower collects the runs below a run, each once.
type grower struct {
	*page
	left int
	seen map[string]bool
}

// runTree shows where a run comes from, and the runs that it started.
func (p *page) runTree() error {
	r, err := p.workflow(p.ctx, p.r.PathValue("run"))
	if err != nil {
		return err
	}
	grow := &grower{page: p, left: treeRuns, seen: map[string]bool{r.GetRunId(): true}}
	below, err := grow.below(r, treeDepth)
	if err != nil {
		return err
	}
	var above g.Group
	for _, one := range []struct{ label, id string }{{"Started by", r.GetParentRunId()},
		{"Retry of", r.GetRetriedFromRunId()}, {"Continues", r.GetContinuedFromRunId()},
		{"Handles the failure of", r.GetFailedRunId()}, {"Continued as", r.GetContinuedAsRunId()}} {
		if one.id == "" {
			continue
		}
		other, err := p.workflow(p.ctx, one.id)
		if err != nil && status.Code(err) != codes.NotFound {
			return err
		}
		if other == nil { // the retention has deleted it
			above = append(above, h.Li(h.Text(one.label+" "+one.id+", which is deleted")))
			continue
		}
		above = append(above, h.Li(h.Text(one.label+" "), p.branch(other)))
	}
	return p.write(http.StatusOK, p.runDocument(r, "tree", h.Div(h.ID("tree"), h.Data("live", "run"),
		g.If(len(above) > 0, section("related", "Related runs", h.Ul(h.Class("tree"), above))),
		section("children", "Runs that it started", g.If(below != nil, h.Ul(h.Class("tree"), h.Li(p.branch(r), below))),
			g.If(below == nil, h.P(h.Class("empty"), h.Text("It has started no run.")))))))
}

// branch shows a run in one line.
func (p *page) branch(r *kagziv1.Workflow) g.Node {
	return g.Group{sign(theme.OfRun(r)), h.Text(" "), h.A(h.Href(p.runURL(r.GetRunId(), "")), cut(r.GetWorkflowType(),
		48)),
		h.Text(" "), h.Span(h.Class("mono dim"), h.Text(format.ShortID(r.GetRunId()))), h.Text(" "),
		h.Span(h.Class("dim"), h.Text(p.clock.Took(r.GetStartedAt(), r.GetFinishedAt())), h.Text(" "),
			cut(render.RunNote(r, p.view()), 80))}
}

// below lists the children of a run with theirs; nil if there are none.
func (w *grower) below(r *kagziv1.Workflow, depth int) (g.Node, error) {
	id := r.GetRunId()
	answer, err := w.API.ListWorkflows(w.ctx, &kagziv1.ListWorkflowsRequest{Namespace: w.ns, ParentRunId: &id,
		Page: &kagziv1.PageRequest{PageSize: treeChild}})
	if err != nil || len(answer.GetWorkflows()) == 0 {
		return nil, err
	}
	more := h.Li(h.A(h.Href(w.at("runs", "q", only("parent", id))), h.Text("All runs that this one started")))
	if depth == 0 || w.left == 0 {
		return h.Ul(h.Class("tree"), more), nil
	}
	var list g.Group
	for _, child := range answer.GetWorkflows() {
		if w.seen[child.GetRunId()] || w.left == 0 {
			continue
		}
		w.seen[child.GetRunId()] = true
		w.left--
		grandchildren, err := w.below(child, depth-1)
		if err != nil {
			return nil, err
		}
		list = append(list, h.Li(w.branch(child), grandchildren))
	}
	if answer.GetPage().GetNextPageToken() != "" || w.left == 0 {
		list = append(list, more)
	}
	return h.Ul(h.Class("tree"), list), nil
}
