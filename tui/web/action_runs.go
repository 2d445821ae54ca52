package web

import (
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	g "maragu.dev/gomponents"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/internal/settings"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	h "github.com/kagzi/kagzi/tui/web/internal/markup"
)

// actionKinds are all actions of the page.
var actionKinds []*actionKind

func init() {
	actionKinds = slices.Concat(runKinds, scheduleKinds, otherKinds, namespaceKinds, hookKinds)
} // they refer to pages, which refer to them

func (p *page) scope() model.Scope { return model.Scope{Namespace: p.ns} }

func invalid(format string, a ...any) error {
	return status.Errorf(codes.InvalidArgument, format, a...)
}

var runKinds = []*actionKind{
	{name: "start", title: "Start a run", noun: "run", least: clients, makes: true, fields: startFields, action: start},
	{name: "cancel", title: "Cancel", noun: "run", least: clients,
		fields: func(*page, *question) []field {
			return []field{{name: "grace", label: "Grace", kind: "text",
				note: "such as 30s or 2m; 0s ends it at once; empty means 30s"},
				reasonField}
		},
		action: func(p *page, q *question) (model.Action, []string, error) {
			grace := tui.DefaultGrace
			if text := q.value("grace"); text != "" {
				var err error
				if grace, err = query.ParseDuration(text); err != nil || grace < 0 {
					return model.Action{}, nil, invalid("Grace: want a time that is not negative, such as 30s")
				}
			}
			return p.scope().Cancel(q.targets, grace, q.value("reason")), []string{model.CancelText(grace)}, nil
		}},
	{name: "terminate", title: "Terminate", noun: "run", least: operators, danger: true, fields: withReason,
		action: func(p *page, q *question) (model.Action, []string, error) {
			return p.scope().Terminate(q.targets, q.value("reason")), []string{model.TerminateText}, nil
		}},
	{name: "retry", title: "Retry", noun: "run", least: operators,
		fields: func(_ *page, q *question) []field {
			return []field{
				{name: "from", label: "From step", kind: "text", note: "empty: after the last completed step"},
				{name: "mode", label: "Keep", kind: "choice", choices: retryModes},
				{name: "input", label: "New input", kind: "json",
					note: "JSON, only if no step is kept; empty keeps the input"},
				reasonField}
		},
		action: retry},
	{name: "signal", title: "Signal", noun: "run", least: clients,
		fields: func(*page, *question) []field {
			return []field{{name: "name", label: "Signal", kind: "text", required: true},
				{name: "input", label: "Payload", kind: "json", note: "JSON; empty: none"}}
		},
		action: func(p *page, q *question) (model.Action, []string, error) {
			data, err := jsonOf(q, "input", "Payload")
			if err == nil && q.value("name") == "" {
				err = invalid("Signal: enter its name")
			}
			return p.scope().Signal(q.targets, q.value("name"), data), []string{
				"It is kept until the code of the run asks for it."}, err
		}},
	{name: "pause", title: "Pause", noun: "run", least: operators,
		fields: func(*page, *question) []field {
			return []field{{name: "now", label: "Interrupt running steps", kind: "check"}, reasonField}
		},
		action: func(p *page, q *question) (model.Action, []string, error) {
			said, now := []string{model.PauseText}, q.value("now") != ""
			running := slices.ContainsFunc(q.runs, func(r *kagziv1.Workflow) bool {
				return r.GetStatus() == kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING
			})
			switch {
			case now:
				said = append(said, model.PauseNowText)
			case running:
				said = append(said, model.PauseFirstText)
			}
			return p.scope().Pause(q.targets, now, q.value("reason")), said, nil
		}},
	{name: "resume", title: "Resume", noun: "run", least: operators,
		fields: func(_ *page, q *question) []field {
			if !slices.ContainsFunc(q.runs, diverged) {
				return []field{reasonField}
			}
			return []field{{name: "accept", label: "Accept divergence", kind: "check"}, reasonField}
		},
		action: func(p *page, q *question) (model.Action, []string, error) {
			said := []string{"Workers get it again, and its timers go on."}
			if slices.ContainsFunc(q.runs, diverged) {
				said = []string{model.DivergedText, model.AcceptText}
			}
			return p.scope().Resume(q.targets, q.value("accept") != "", q.value("reason")), said, nil
		}},
	{name: "override", title: "Override a step of", noun: "run", least: operators, danger: true,
		fields: func(*page, *question) []field {
			return []field{{name: "step", label: "Step", kind: "text", required: true},
				{name: "state", label: "Status", kind: "choice", choices: []string{"completed", "failed"}},
				{name: "input", label: "Output", kind: "json", note: "JSON, for a completed step"},
				{name: "error", label: "Error", kind: "text", note: "for a failed step"},
				{name: "reason", label: "Reason", kind: "text", required: true, note: "kept in the history"}}
		},
		action: override},
	{name: "pin", title: "Pin", noun: "run", least: operators, fields: withReason,
		action: func(p *page, q *question) (model.Action, []string, error) {
			return p.scope().Pin(q.targets, true, q.value("reason")), []string{"The retention does not delete it."}, nil
		}},
	{name: "unpin", title: "Unpin", noun: "run", least: operators, fields: withReason,
		action: func(p *page, q *question) (model.Action, []string, error) {
			return p.scope().Pin(q.targets, false, q.value("reason")), []string{"The retention applies again."}, nil
		}},
}

func diverged(r *kagziv1.Workflow) bool { return r.GetPaused() && len(r.GetDivergences()) > 0 }

// retryModes are which steps a retry keeps, the usual one first.
var retryModes = []string{"completed steps", "all completed steps, compensations too", "no step"}

func retry(p *page, q *question) (model.Action, []string, error) {
	o := model.RetryOptions{FromStep: q.value("from"), KeepAll: q.value("mode") == retryModes[1],
		Restart: q.value("mode") == retryModes[2], Reason: q.value("reason")}
	var err error
	if o.Input, err = jsonOf(q, "input", "New input"); err != nil {
		return model.Action{}, nil, err
	}
	switch {
	case o.FromStep != "" && (o.KeepAll || o.Restart):
		err = invalid("From step: a step cannot be combined with another choice of kept steps")
	case o.Input != nil && !o.Restart:
		err = invalid("New input: only a retry that keeps no step can have another input")
	}
	return p.scope().Retry(q.targets, o), []string{model.RetryText(o)}, err
}

func override(p *page, q *question) (model.Action, []string, error) {
	if len(q.targets) != 1 {
		return model.Action{}, nil, invalid("works on one run at a time")
	}
	o := model.Override{Step: q.value("step"), Reason: q.value("reason")}
	switch {
	case o.Step == "":
		return model.Action{}, nil, invalid("Step: enter its name")
	case q.value("state") == "failed":
		if o.Message = q.value("error"); o.Message == "" {
			return model.Action{}, nil, invalid("Error: enter the error of the step")
		}
	default:
		var err error
		if o.Output, err = jsonOf(q, "input", "Output"); err != nil {
			return model.Action{}, nil, err
		}
		if o.Output == nil {
			return model.Action{}, nil, invalid("Output: enter the output of the step as JSON")
		}
	}
	return p.scope().Override(q.targets[0], o), []string{model.OverrideText}, nil
}

// jsonOf returns the JSON of a field; nil if it is empty.
func jsonOf(q *question, name, label string) ([]byte, error) {
	data, err := settings.JSON(q.value(name))
	if err != nil {
		err = invalid("%s: %s", label, err)
	}
	return data, err
}

func startFields(*page, *question) []field {
	return []field{
		{name: "type", label: "Type", kind: "text", required: true},
		{name: "queue", label: "Queue", kind: "text", note: `empty means "default"`},
		{name: "input", label: "Input", kind: "json", note: "JSON; empty: none"},
		{name: "external", label: "External id", kind: "text",
			note: "a second run with it is not started while one is open"},
		{name: "priority", label: "Priority", kind: "number", note: "-100 to 100, higher first; empty means 0"},
		{name: "delay", label: "Delay", kind: "text", note: "such as 90s, 2h or 7d; empty means now"},
	}
}

func start(p *page, q *question) (model.Action, []string, error) {
	input, err := jsonOf(q, "input", "Input")
	if err == nil && q.value("type") == "" {
		err = invalid("Type: enter the type of the workflow")
	}
	if err != nil {
		return model.Action{}, nil, err
	}
	request := &kagziv1.StartWorkflowRequest{WorkflowType: q.value("type"), TaskQueue: q.value("queue"),
		ExternalId: q.value("external")}
	if input != nil {
		request.Input = &kagziv1.Payload{Data: input, Metadata: map[string]string{"content-type": "application/json"}}
	}
	if text := q.value("priority"); text != "" {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return model.Action{}, nil, invalid("Priority: want a number from -100 to 100")
		}
		request.Priority = new(int32(n))
	}
	if text := q.value("delay"); text != "" {
		d, err := query.ParseDuration(text)
		if err != nil || d < 0 {
			return model.Action{}, nil, invalid("Delay: want a time such as 90s, 2h or 7d")
		}
		request.StartAt, request.StartIn = timestamppb.New(p.now.Add(d)), durationpb.New(d)
	}
	return p.scope().Start(request), []string{"It waits until a worker of its queue and type takes it."}, nil
}

// runActions returns the actions on several runs that the caller may do.
func (p *page) runActions() []*actionKind {
	return slices.DeleteFunc(slices.Clone(runKinds), func(a *actionKind) bool {
		return a.makes || a.name == "override" || !p.offers(a.least)
	})
}

// runButtons links to the questions that fit the state of a run.
func (p *page) runButtons(r *kagziv1.Workflow) g.Node {
	ended, completed := render.Ended(r.GetStatus()), r.GetStatus() == kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED
	fits := map[string]bool{
		"cancel": !ended, "terminate": !ended, "signal": !ended, "retry": ended && !completed,
		"pause": !ended && !r.GetPaused() && !r.GetPausing(), "resume": !ended && (r.GetPaused() || r.GetPausing()),
		"pin": !r.GetPinned(), "unpin": r.GetPinned(),
	}
	var list g.Group
	for _, a := range p.runActions() {
		if !fits[a.name] {
			continue
		}
		pairs := []string{"do", a.name, "id", r.GetRunId()}
		if name := waitsFor(r); a.name == "signal" && name != "" {
			pairs = append(pairs, "name", name)
		}
		list = append(list, h.A(h.Class("button"), h.Href(p.at("act", pairs...)), h.Text(a.title)))
	}
	list = append(list, h.A(h.Class("button"), h.Href(p.runURL(r.GetRunId(), "diff")), h.Text("Compare")))
	return h.Div(h.Class("buttons"), list)
}

// waitsFor returns the name of the signal that a run waits for; empty if it does not.
func waitsFor(r *kagziv1.Workflow) string {
	const prefix = "signal:"
	if text := r.GetWaitingFor(); len(text) > len(prefix) && text[:len(prefix)] == prefix {
		return text[len(prefix):]
	}
	return ""
}

// stepButtons links to the questions about a step.
func (p *page) stepButtons(r *kagziv1.Workflow, name string) g.Node {
	if !p.offers(operators) {
		return nil
	}
	ended := render.Ended(r.GetStatus()) && r.GetStatus() != kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED
	return h.Div(h.Class("buttons"),
		g.If(ended, h.A(h.Class("button"), h.Href(p.at("act", "do", "retry", "id", r.GetRunId(), "from", name)),
			h.Text("Retry from here"))),
		h.A(h.Class("button"), h.Href(p.at("act", "do", "override", "id", r.GetRunId(), "step", name)),
			h.Text("Override")))
}

// several writes a number of things.
func several(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
