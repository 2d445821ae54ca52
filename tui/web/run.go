package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	g "maragu.dev/gomponents"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	h "github.com/kagzi/kagzi/tui/web/internal/markup"
)

const (
	stepPage  = 200  // attempts of a page of steps
	wholeRun  = 1000 // attempts up to which the page of a run reads all
	mostSteps = 50_000
	lineBytes = 160 // of a payload in the list of steps

	usualDetails = 6 // of an explanation that are shown at once
)

// runTabs are the pages of a run.
var runTabs = []struct{ name, below string }{
	{"Summary", ""}, {"Payloads", "payloads"}, {"Events", "events"}, {"Tree", "tree"},
}

// runDocument is a page of a run: its state and actions, then the part.
func (p *page) runDocument(r *kagziv1.Workflow, below string, body ...g.Node) g.Node {
	top := g.Group{
		h.P(h.Class("crumbs"), h.A(h.Href(p.at("runs")), h.Data("up", ""), h.Text("Runs")), h.Text(" › "),
			h.A(h.Href(p.at("runs", "q", only("type", r.GetWorkflowType()))), cut(r.GetWorkflowType(), 60))),
		h.Div(h.Class("head"), h.ID("state"), h.Data("live", "run"), h.Data("run", r.GetRunId()),
			h.H1(cut(runName(r), 80), h.Text(" "), sign(theme.OfRun(r)), g.If(r.GetPinned(), h.Span(h.Class("tag"),
				h.Text("pinned")))),
			p.runButtons(r)),
		h.P(h.Class("id"), h.Code(h.ID("runid"), h.Text(r.GetRunId())),
			h.Button(h.Type("button"), h.Class("quiet"), h.Data("copy", "runid"), h.Is("hidden"), h.Text("Copy"))),
		h.Nav(h.Class("tabs"), h.Aria("label", "Parts of the run"), g.Map(runTabs,
			func(t struct{ name, below string }) g.Node {
				return h.A(h.Href(p.runURL(r.GetRunId(), t.below)), g.If(t.below == below, h.Aria("current", "page")),
					h.Text(t.name))
			})),
	}
	return p.document(runName(r)+" "+theme.OfRun(r).Word, "Runs", append(top, body...)...)
}

// runName returns the external id of a run, or else its type with the short form of its run id.
func runName(r *kagziv1.Workflow) string {
	if r.GetExternalId() != "" && r.GetScheduleId() == "" {
		return r.GetExternalId()
	}
	return r.GetWorkflowType() + " " + format.ShortID(r.GetRunId())
}

// run shows a run: why it does not go on first, then its steps.
func (p *page) run() error {
	r, err := p.workflow(p.ctx, p.r.PathValue("run"))
	if err != nil {
		return err
	}
	explained := p.explanation(r)
	first, err := p.stepsAtFirst(r)
	if err != nil {
		return err
	}
	return p.write(http.StatusOK, p.runDocument(r, "",
		h.Div(h.ID("why"), h.Data("live", "run"), p.why(r, explained)),
		h.Div(h.ID("facts"), h.Data("live", "run"), p.runFacts(r)),
		p.errorPart(r.GetError()),
		g.Iff(first.whole, func() g.Node { return p.timelineSection(r, first.lanes) }),
		g.Iff(!first.whole, func() g.Node { return p.laterTimeline(r) }),
		p.stepsSection(r, first),
	))
}

// explanation asks why a run does not go on; nil for an ended run, and if nobody can say.
func (p *page) explanation(r *kagziv1.Workflow) *kagziv1.ExplainWorkflowResponse {
	if render.Ended(r.GetStatus()) {
		return nil
	}
	e, err := p.API.ExplainWorkflow(p.ctx, &kagziv1.ExplainWorkflowRequest{Namespace: p.ns, RunId: r.GetRunId()})
	if err != nil { // the rest of the page is worth more than this error
		return nil
	}
	return e
}

// firstSteps are the steps on the first page of a run.
type firstSteps struct {
	whole bool         // lanes has all steps of the run
	lanes []model.Lane // the last ones
	prev  string       // token of the attempts before; empty: there are none
	early []model.Lane // the last of the steps before lanes that failed or are open
	more  bool         // there are more of those
}

// failedOrOpen are the statuses of steps that a reader looks for first.
var failedOrOpen = []kagziv1.StepStatus{kagziv1.StepStatus_STEP_STATUS_FAILED,
	kagziv1.StepStatus_STEP_STATUS_PENDING, kagziv1.StepStatus_STEP_STATUS_RUNNING}

// stepsAtFirst reads all steps of a run; of a long run the last ones, and those that failed or are open.
func (p *page) stepsAtFirst(r *kagziv1.Workflow) (f firstSteps, err error) {
	steps, whole, prev, err := p.stepsToShow(r)
	if err != nil {
		return f, err
	}
	f = firstSteps{whole: whole, lanes: model.Lanes(steps), prev: prev}
	shown := map[string]bool{}
	for _, l := range f.lanes[max(len(f.lanes)-stepPage, 0):] {
		shown[l.Name] = true
	}
	f.early = f.lanes
	if prev != "" {
		answer, err := p.API.ListSteps(p.ctx, &kagziv1.ListStepsRequest{Namespace: p.ns, RunId: r.GetRunId(),
			Statuses: failedOrOpen, LatestOnly: true, Page: &kagziv1.PageRequest{PageSize: stepPage, Last: true}})
		if err != nil {
			return f, err
		}
		f.early, f.more = model.Lanes(answer.GetSteps()), answer.GetPage().GetPrevPageToken() != ""
	}
	f.early = slices.DeleteFunc(slices.Clone(f.early), func(l model.Lane) bool {
		return shown[l.Name] || !l.Failed && !l.Open
	})
	return f, nil
}

// stepsToShow reads all steps of a run, or the last ones of a long run; prev is then the token of those
// before.
func (p *page) stepsToShow(r *kagziv1.Workflow) (steps []*kagziv1.Step, whole bool, prev string, err error) {
	request := &kagziv1.ListStepsRequest{Namespace: p.ns, RunId: r.GetRunId()}
	if r.GetStepCount() <= wholeRun { // there may be more attempts than steps
		request.Page = &kagziv1.PageRequest{PageSize: wholeRun}
		answer, err := p.API.ListSteps(p.ctx, request)
		if err != nil || answer.GetPage().GetNextPageToken() == "" {
			return answer.GetSteps(), true, "", err
		}
	}
	request.Page = &kagziv1.PageRequest{PageSize: stepPage, Last: true}
	answer, err := p.API.ListSteps(p.ctx, request)
	return answer.GetSteps(), false, answer.GetPage().GetPrevPageToken(), err
}

// allSteps reads all attempts of a run's steps.
func (p *page) allSteps(ctx context.Context, run string) ([]*kagziv1.Step, error) {
	var steps []*kagziv1.Step
	request := &kagziv1.ListStepsRequest{Namespace: p.ns, RunId: run, Page: &kagziv1.PageRequest{PageSize: 1000}}
	for {
		answer, err := p.API.ListSteps(ctx, request)
		if err != nil {
			return nil, err
		}
		steps = append(steps, answer.GetSteps()...)
		if request.Page.PageToken = answer.GetPage().GetNextPageToken(); request.Page.PageToken == "" {
			return steps, nil
		}
		if len(steps) >= mostSteps {
			return nil, status.Errorf(codes.ResourceExhausted,
				"the run has more than %d attempts of steps, which is too "+
					"many for one page", mostSteps)
		}
	}
}

// why says what the run waits for or how it ended.
func (p *page) why(r *kagziv1.Workflow, e *kagziv1.ExplainWorkflowResponse) g.Node {
	style := classes[theme.OfRun(r).Style]
	said, details := r.GetNote(), []string(nil)
	switch {
	case render.Ended(r.GetStatus()) && r.GetError() != nil:
		said = render.ErrorLine(r.GetError())
	case render.Ended(r.GetStatus()):
	case e != nil:
		said, details = e.GetSummary(), e.GetDetails()
		if r.GetNote() != "" {
			details = append([]string{"Note: " + r.GetNote()}, details...)
		}
	}
	if said == "" {
		said = "The run is " + theme.OfRun(r).Word + "."
	}
	return h.Div(h.Class("why "+style), h.P(h.Class("lead"), cut(said, 400)),
		g.If(len(details) > 0, h.Ul(g.Map(details[:min(len(details), usualDetails)], item))),
		g.If(len(details) > usualDetails, h.Details(h.ID("why-all"), h.Summary(h.Text(fmt.Sprintf("%d more",
			len(details)-usualDetails))), h.Ul(g.Map(details[min(len(details), usualDetails):], item)))),
		g.Iff(e != nil, func() g.Node {
			pairs, stacks := render.ExplainPairs(e, p.view()), render.StackLines(e)
			for i, line := range stacks {
				stacks[i] = render.Safe(line)
			}
			return g.Group{g.If(len(pairs) > 0, h.Details(h.ID("why-more"), h.Summary(h.Text("More")), facts(pairs,
				nil))),
				g.If(len(stacks) > 0, h.Details(h.ID("stacks"), h.Summary(h.Text("Stacks of the code")),
					lines(stacks)))}
		}))
}

func item(s string) g.Node { return h.Li(text(s)) }

// runFacts shows the properties of a run, with links to other runs and to its queue.
func (p *page) runFacts(r *kagziv1.Workflow) g.Node {
	pairs := render.RunPairs(r, p.view())
	shown, rest := pairs[:0:0], pairs[:0:0]
	for _, one := range pairs {
		switch one.Label {
		case "Run", "Status", "Type", "Note", "Namespace", "Pinned":
		case "Retry", "Run retry", "Timeouts", "On failure", "Below a handler", "Requires", "Concurrency",
			"Unread signals":
			rest = append(rest, one)
		default:
			shown = append(shown, one)
		}
	}
	link := func(label, value string) string {
		switch label {
		case "Parent", "Retried from", "Handles", "Continued as", "Continued from":
			id, _, _ := strings.Cut(value, " ")
			return p.runURL(id, "")
		case "Schedule":
			return p.scheduleURL(value)
		case "Worker":
			if p.monitors() {
				return p.workerURL(r.GetWorkerId())
			}
		case "Queue":
			return p.at("runs", "q", only("queue", r.GetTaskQueue()))
		}
		return ""
	}
	return g.Group{facts(shown, link),
		g.If(len(rest) > 0, h.Details(h.ID("facts-more"), h.Summary(h.Text("More facts")), facts(rest, link)))}
}

// errorPart shows an error with its stack.
func (p *page) errorPart(e *kagziv1.ErrorDetail) g.Node {
	if e == nil {
		return nil
	}
	v := p.view()
	v.Payloads = shownPayload
	return h.Details(h.ID("error"), g.If(e.GetStack() != "", h.Is("open")), h.Class("error"),
		h.Summary(h.Text("Error")), lines(render.ErrorLines(e, v)))
}

// runPayloads shows what a run was started with and what it returned.
func (p *page) runPayloads() error {
	r, err := p.workflow(p.ctx, p.r.PathValue("run"))
	if err != nil {
		return err
	}
	missing := "The run completed without an output."
	switch {
	case !render.Ended(r.GetStatus()):
		missing = "No output yet: the run has not ended."
	case r.GetStatus() != kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED:
		missing = "No output: the run " + theme.OfRun(r).Word + "."
	}
	url := func(what string) string { return p.runURL(r.GetRunId(), "download", "what", what) }
	return p.write(http.StatusOK, p.runDocument(r, "payloads", h.Div(h.Class("pair"), h.ID("payloads"), h.Data("live",
		"run"),
		section("input", "Input", p.payload(r.GetInput(), "The run was started without an input.", url("input"))),
		section("output", "Output", p.payload(r.GetOutput(), missing, url("output")))), p.signalsPart(r.GetRunId())))
}

// signalsPart lists the signals that a run received.
func (p *page) signalsPart(run string) g.Node {
	answer, err := p.API.ListSignals(p.ctx, &kagziv1.ListSignalsRequest{Namespace: p.ns, RunId: run,
		Page: &kagziv1.PageRequest{PageSize: stepPage}})
	if err != nil {
		return h.P(h.Class("problem"), text(sentence(err)))
	}
	return section("signals", "Signals", table{Table: render.SignalsTable(answer.GetSignals(), p.view()),
		caption: "Signals in order of arrival", empty: "The run has received no signal."}.node())
}

// runEvents shows what happened to a run, oldest first.
func (p *page) runEvents() error {
	r, err := p.workflow(p.ctx, p.r.PathValue("run"))
	if err != nil {
		return err
	}
	steps, whole, _, err := p.stepsToShow(r)
	if err != nil {
		return err
	}
	signals, err := p.API.ListSignals(p.ctx, &kagziv1.ListSignalsRequest{Namespace: p.ns, RunId: r.GetRunId(),
		Page: &kagziv1.PageRequest{PageSize: wholeRun}})
	if err != nil {
		return err
	}
	id := r.GetRunId()
	audit, err := p.API.ListAuditEvents(p.ctx, &kagziv1.ListAuditEventsRequest{Namespace: p.ns, SubjectId: &id,
		Page: &kagziv1.PageRequest{PageSize: stepPage}})
	if err != nil && status.Code(err) != codes.PermissionDenied { // some roles do not see it
		return err
	}
	events := model.Events(r, steps, signals.GetSignals(), audit.GetEvents())
	t := table{caption: "Events, oldest first", empty: "Nothing has happened yet.",
		Table: render.Table{Columns: []render.Column{{Title: "#", Right: true}, {Title: "TIME"}, {Title: "AFTER",
			Right: true},
			{Title: "WHAT"}, {Title: "OF"}, {Title: "DETAIL"}}}}
	for _, e := range events {
		after := ""
		if e.Sequence > 1 {
			after = "+" + render.Duration(e.Since)
		}
		t.Rows = append(t.Rows, []render.Cell{{Text: format.Number(int64(e.Sequence)), Style: render.Dim},
			{Text: p.clock.Exact(e.At)}, {Text: after, Style: render.Dim}, {Text: e.Kind, Style: e.Style},
			render.Text(e.Subject),
			{Text: render.Truncate(render.Safe(e.Detail), 300), Style: render.Dim}})
	}
	t.link = func(row, column int) string {
		if s := events[row].Step; s != nil && column == 4 {
			return p.runURL(r.GetRunId(), "step", "name", s.GetName())
		}
		return ""
	}
	return p.write(http.StatusOK, p.runDocument(r, "events", h.Div(h.ID("events"), h.Data("live", "run"),
		g.If(!whole, h.P(h.Class("empty"), h.Text("The run is long: events of its last steps."))), t.node())))
}
