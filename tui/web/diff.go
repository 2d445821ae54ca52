package web

import (
	"net/http"
	"strings"

	g "maragu.dev/gomponents"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/internal/diff"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	h "github.com/kagzi/kagzi/tui/web/internal/markup"
)

const (
	mostDiffRows = 2000
	others       = 10 // runs of the same type that are offered
)

// runDiff compares a run with another one: the one that is asked for, or what a person chooses.
func (p *page) runDiff() error {
	r, err := p.workflow(p.ctx, p.r.PathValue("run"))
	if err != nil {
		return err
	}
	with := strings.TrimSpace(p.r.URL.Query().Get("with"))
	if with == "" {
		return p.chooseOther(r)
	}
	other, err := p.workflow(p.ctx, with)
	if err != nil {
		return err
	}
	var sides [2]diff.Side
	for i, run := range []*kagziv1.Workflow{r, other} {
		steps, _, _, err := p.stepsToShow(run)
		if err != nil {
			return err
		}
		sides[i] = diff.Side{Run: run, Steps: model.Lanes(steps)}
	}
	rows := diff.Runs(sides, p.clock, theme.Mono())
	left := max(len(rows)-mostDiffRows, 0)
	return p.write(http.StatusOK, p.runDocument(r, "diff", section("diff", "Compared with another run",
		h.Div(h.Class("scroll"), h.TabIndex("0"), h.Table(h.Class("diff"), h.Caption(h.Class("sr"),
			h.Text("Comparison of two runs")),
			h.THead(h.Tr(h.Th(h.Scope("col"), cut(runName(r), 60)), h.Th(h.Class("sign-col"), h.Span(h.Class("sr"),
				h.Text("Differs"))), h.Th(h.Scope("col"), h.A(h.Href(p.runURL(other.GetRunId(), "")),
				cut(runName(other), 60))))),
			h.TBody(g.Map(rows[:len(rows)-left], diffRow)))),
		g.If(left > 0, h.P(h.Class("empty"), h.Text("The comparison is longer: only its first rows are shown."))))))
}

func diffRow(r diff.Row) g.Node {
	if r.Heading() {
		return h.Tr(h.Th(h.ColSpan("3"), h.Scope("colgroup"), h.Text(r.Left)))
	}
	mark := ""
	if r.Differs() {
		mark = "≠"
	}
	return h.Tr(g.If(r.Differs(), h.Class("differs")), h.Td(text(r.Left)), h.Td(h.Class("sign-col"), h.Text(mark)),
		h.Td(text(r.Right)))
}

// chooseOther offers runs to compare with: the latest of the same type.
func (p *page) chooseOther(r *kagziv1.Workflow) error {
	answer, err := p.API.ListWorkflows(p.ctx, &kagziv1.ListWorkflowsRequest{Namespace: p.ns,
		WorkflowTypes: []string{r.GetWorkflowType()}, Page: &kagziv1.PageRequest{PageSize: others + 1}})
	if err != nil {
		return err
	}
	var list g.Group
	for _, other := range answer.GetWorkflows() {
		if other.GetRunId() != r.GetRunId() && len(list) < others {
			list = append(list, h.Li(sign(theme.OfRun(other)), h.Text(" "), h.A(h.Href(p.runURL(r.GetRunId(), "diff",
				"with",
				other.GetRunId())), cut(runName(other), 60)), h.Text(" "), h.Span(h.Class("dim"),
				p.ago(other.GetCreatedAt()),
				h.Text(" "), cut(render.RunNote(other, p.view()), 80))))
		}
	}
	return p.write(http.StatusOK, p.runDocument(r, "diff", section("diff", "Compare with",
		h.Form(h.Method("get"), h.Action(p.runURL(r.GetRunId(), "diff")), h.Class("filter"),
			h.Label(h.Class("sr"), h.For("with"), h.Text("Run id")),
			h.Input(h.ID("with"), h.Name("with"), h.Type("search"), h.Placeholder("run id"), h.Required()),
			h.Button(h.Type("submit"), h.Text("Compare"))),
		g.If(len(list) > 0, g.Group{h.P(h.Text("Latest runs of the same type:")), h.Ul(h.Class("tree"), list)}))))
}
