package web

import (
	"net/http"
	"strconv"

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

// stepsSection lists steps: those that failed or are open, and the last ones.
func (p *page) stepsSection(r *kagziv1.Workflow, f firstSteps) g.Node {
	left := max(len(f.lanes)-stepPage, 0)
	earlier := ""
	switch {
	case f.prev != "":
		earlier = p.runURL(r.GetRunId(), "steps", "page", f.prev)
	case left > 0:
		earlier = p.runURL(r.GetRunId(), "steps")
	}
	title := "Steps"
	if n := r.GetStepCount(); n > 0 {
		title += " (" + format.Number(n) + ")"
	}
	return h.Section(h.ID("steps"), h.Data("live", "run"), h.H2(h.Text(title)),
		g.Iff(len(f.early) > 0, func() g.Node {
			return h.Div(h.Class("early"), h.H3(h.Text("Earlier steps that failed or are open")),
				g.If(f.more, h.P(h.A(h.Href(p.runURL(r.GetRunId(), "steps", "only", onlyTrouble)),
					h.Text("All that failed or are open")))),
				p.stepList(r, f.early))
		}),
		g.If(earlier != "", h.P(h.A(h.Href(earlier), h.Text("← Earlier steps")))),
		p.stepList(r, f.lanes[left:]))
}

// stepList lists steps, one below the other, with what they took and returned.
func (p *page) stepList(r *kagziv1.Workflow, lanes []model.Lane) g.Node {
	if len(lanes) == 0 {
		return h.P(h.Class("empty"), h.Text("No step has started."))
	}
	ended := render.Ended(r.GetStatus())
	return h.Ol(h.Class("steps"), g.Map(lanes, func(l model.Lane) g.Node {
		s := l.Step
		return h.Li(h.Data("key", s.GetName()), h.Div(h.Class("step"),
			sign(theme.OfAttempt(s, ended)),
			h.A(h.Class("name"), h.Href(p.runURL(r.GetRunId(), "step", "name", s.GetName())), cut(s.GetName(), 60)),
			g.If(s.GetKind() != kagziv1.StepKind_STEP_KIND_FUNCTION, h.Span(h.Class("tag"), h.Text(kindName(s)))),
			g.If(s.GetAttemptNumber() > 1, h.Span(h.Class("dim"),
				h.Text("attempt "+strconv.Itoa(int(s.GetAttemptNumber()))))),
			g.If(model.Kept(r, s), h.Span(h.Class("dim"), h.Text("kept"))),
			h.Span(h.Class("took"), h.Text(p.clock.Took(s.GetStartedAt(), s.GetFinishedAt())))),
			p.stepLine(r, s))
	}))
}

func kindName(s *kagziv1.Step) string {
	if s.GetKind() == kagziv1.StepKind_STEP_KIND_CHILD_WORKFLOW {
		return "child"
	}
	return render.StepKind(s.GetKind())
}

// stepLine shows input and result of an attempt beside each other.
func (p *page) stepLine(r *kagziv1.Workflow, s *kagziv1.Step) g.Node {
	parts := g.Group{}
	part := func(label string, class string, node g.Node) {
		parts = append(parts, h.Div(h.Class("io "+class), h.Span(h.Class("dim"), h.Text(label)), node))
	}
	if line := render.PayloadLine(s.GetInput(), lineBytes); line != "" {
		part("in", "mono", cut(line, lineBytes))
	}
	switch {
	case s.GetError() != nil:
		part("error", "mono", h.Span(h.Class(classes[render.StepStyle(s.GetStatus())]), cut(render.StepResult(s,
			p.view()), 240)))
	case s.GetOutput().GetMetadata()[withheld] != "":
		part("out", "", h.Span(h.Class("dim"), h.Text("withheld")))
	case len(s.GetOutput().GetData()) > 0:
		part("out", "mono", cut(render.PayloadLine(s.GetOutput(), lineBytes), lineBytes))
	default:
		if text := render.StepResult(s, p.view()); text != "" && s.GetChildRunId() == "" {
			part("", "", cut(text, 160))
		}
	}
	if s.GetChildRunId() != "" {
		part("run", "mono", h.A(h.Href(p.runURL(s.GetChildRunId(), "")), h.Text(format.ShortID(s.GetChildRunId()))))
	}
	return g.If(len(parts) > 0, h.Div(h.Class("ios"), parts))
}

// onlyTrouble is the value of "only" that selects steps that failed or are open.
const onlyTrouble = "failed"

// runSteps lists a page of the attempts of a long run: all, or those of steps that failed or are open.
func (p *page) runSteps() error {
	r, err := p.workflow(p.ctx, p.r.PathValue("run"))
	if err != nil {
		return err
	}
	query := p.r.URL.Query()
	request := &kagziv1.ListStepsRequest{Namespace: p.ns, RunId: r.GetRunId(),
		Page: &kagziv1.PageRequest{PageSize: stepPage, PageToken: query.Get("page")}}
	title, only := "Steps", query.Get("only")
	switch only {
	case "":
	case onlyTrouble:
		title, request.Statuses, request.LatestOnly = "Steps that failed or are open", failedOrOpen, true
	default:
		return status.Error(codes.InvalidArgument, "only: want failed, or leave it out")
	}
	answer, err := p.API.ListSteps(p.ctx, request)
	if err != nil {
		return err
	}
	link := func(token string) g.Node {
		return h.Href(p.runURL(r.GetRunId(), "steps", "only", only, "page", token))
	}
	prev, next := answer.GetPage().GetPrevPageToken(), answer.GetPage().GetNextPageToken()
	return p.write(http.StatusOK, p.runDocument(r, "", h.Section(h.ID("steps"), h.H2(h.Text(title)),
		p.stepList(r, model.Lanes(answer.GetSteps())),
		h.Nav(h.Class("pager"), h.Aria("label", "Pages of the steps"),
			g.If(prev != "", h.A(h.Rel("prev"), link(prev), h.Text("← Earlier"))),
			g.If(next != "", h.A(h.Rel("next"), link(next), h.Text("Later →")))))))
}

// runStep shows all attempts of a step, the latest first.
func (p *page) runStep() error {
	r, err := p.workflow(p.ctx, p.r.PathValue("run"))
	if err != nil {
		return err
	}
	name := p.r.URL.Query().Get("name")
	answer, err := p.API.ListSteps(p.ctx, &kagziv1.ListStepsRequest{Namespace: p.ns, RunId: r.GetRunId(),
		StepName: &name,
		Page:     &kagziv1.PageRequest{PageSize: stepPage, Last: true}})
	if err == nil && len(answer.GetSteps()) == 0 {
		err = status.Error(codes.NotFound, "the run has no step with this name")
	}
	if err != nil {
		return err
	}
	steps := answer.GetSteps()
	ended := render.Ended(r.GetStatus())
	body := g.Group{h.Div(h.Class("head"), h.H2(h.Text("Step "), cut(name, 80)), p.stepButtons(r, name))}
	for i := len(steps) - 1; i >= 0; i-- {
		s := steps[i]
		url := func(what string) string {
			return p.runURL(r.GetRunId(), "download", "what", what, "step", s.GetStepId())
		}
		v := p.view()
		v.Payloads = shownPayload
		title := h.H3(h.Text("Attempt "+strconv.Itoa(int(s.GetAttemptNumber()))+" "), sign(theme.OfAttempt(s, ended)))
		body = append(body, h.Section(h.Class("attempt"), h.ID("attempt-"+strconv.Itoa(int(s.GetAttemptNumber()))),
			title,
			facts(p.attemptPairs(s), func(label, value string) string {
				if label == "Child run" {
					return p.runURL(value, "")
				}
				return ""
			}),
			g.Iff(s.GetError() != nil, func() g.Node { return lines(render.ErrorLines(s.GetError(), v)) }),
			h.Div(h.Class("pair"),
				h.Div(h.H4(h.Text("Input")), p.payload(s.GetInput(), "No input was recorded.", url("input"))),
				h.Div(h.H4(h.Text("Output")), p.payload(s.GetOutput(), "No output.", url("output"))))))
	}
	return p.write(http.StatusOK, p.runDocument(r, "", h.Div(h.ID("step"), h.Data("live", "run"), body)))
}

// attemptPairs returns the facts of an attempt.
func (p *page) attemptPairs(s *kagziv1.Step) []render.Pair {
	var pairs []render.Pair
	add := func(label, value string) {
		if value != "" && value != "-" {
			pairs = append(pairs, render.Pair{Label: label, Lines: []string{render.Safe(value)}})
		}
	}
	v := p.view()
	add("Kind", kindName(s))
	add("Started", v.FullTime(s.GetStartedAt()))
	add("Took", p.clock.Took(s.GetStartedAt(), s.GetFinishedAt()))
	add("Ended", v.FullTime(s.GetFinishedAt()))
	add("Again", v.FullTime(s.GetRetryAt()))
	add("Due", v.FullTime(s.GetWakeUpAt()))
	add("Worker", p.workerName(s.GetWorkerId()))
	add("Branch", s.GetBranch())
	add("Signal", s.GetSignalName())
	add("Child type", s.GetChildType())
	add("Child run", s.GetChildRunId())
	if s.GetOverriddenBy() != "" {
		add("Overridden", "by "+s.GetOverriddenBy()+": "+s.GetOverrideReason())
	}
	return pairs
}

// download sends a payload as it is stored, never as something that a browser opens.
func (p *page) download() error {
	query := p.r.URL.Query()
	what, id := query.Get("what"), query.Get("step")
	if what != "input" && what != "output" {
		return status.Error(codes.InvalidArgument, "what: want input or output")
	}
	var payload *kagziv1.Payload
	var name string
	if id != "" {
		answer, err := p.API.GetStep(p.ctx, &kagziv1.GetStepRequest{Namespace: p.ns, StepId: id})
		if err == nil && answer.GetStep().GetRunId() != p.r.PathValue("run") {
			err = status.Error(codes.NotFound, "the run has no such step")
		}
		if err != nil {
			return err
		}
		payload, name = answer.GetStep().GetInput(), id
		if what == "output" {
			payload = answer.GetStep().GetOutput()
		}
	} else {
		r, err := p.workflow(p.ctx, p.r.PathValue("run"))
		if err != nil {
			return err
		}
		payload, name = r.GetInput(), r.GetRunId()
		if what == "output" {
			payload = r.GetOutput()
		}
	}
	if payload.GetMetadata()[withheld] != "" {
		return status.Error(codes.PermissionDenied, "the role of your key does not see payloads")
	}
	ext := ".bin"
	if render.IsJSON(payload) {
		ext = ".json"
	}
	header := p.w.Header()
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Content-Disposition", `attachment; filename="`+name+"-"+what+ext+`"`) // ids hold no quotes
	header.Set("Content-Length", strconv.Itoa(len(payload.GetData())))
	_, _ = p.w.Write(payload.GetData()) // the browser may have gone
	return nil
}
