package cli

import (
	"fmt"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

// shownRun is all that show says of a run. Signals and audit are nil where the server does not tell.
type shownRun struct {
	run     *kagziv1.Workflow
	steps   []*kagziv1.Step
	signals []*kagziv1.Signal
	audit   []*kagziv1.AuditEvent
}

func (s shownRun) document() render.Object {
	document := render.Object{
		{Name: "workflow", Value: render.Document(s.run)}, {Name: "steps", Value: render.Documents(s.steps)}, {Name: "signals"}, {Name: "audit_events"},
	}
	if s.signals != nil {
		document[2].Value = render.Documents(s.signals)
	}
	if s.audit != nil {
		document[3].Value = render.Documents(s.audit)
	}
	return document
}

// lines are the run as people read it: its properties, then a section for each thing that there is.
func (s shownRun) lines(c *client, payloads int) []string {
	v := c.view()
	lines := render.PairLines(render.RunPairs(s.run, v), c.out.colour)
	section := func(title string, body []string) {
		lines = append(append(lines, "", c.out.paint(title, render.Strong)), body...)
	}
	table := func(title string, t render.Table) {
		if len(t.Rows) > 0 {
			section(title, c.out.table(t))
		}
	}
	v.Payloads = payloads
	if s.run.GetError() != nil {
		section("Error", indent(render.ErrorLines(s.run.GetError(), v)))
	}
	if payloads != 0 && len(s.run.GetInput().GetData()) > 0 {
		section("Input", indent(render.PayloadLines(s.run.GetInput(), payloads)))
	}
	if payloads != 0 && len(s.run.GetOutput().GetData()) > 0 {
		section("Output", indent(render.PayloadLines(s.run.GetOutput(), payloads)))
	}
	table("Steps", render.StepsTable(s.steps, c.view()))
	table("Overridden steps", render.OverridesTable(s.steps, c.view()))
	table("Signals", render.SignalsTable(s.signals, c.view()))
	table("Done by people", render.AuditTable(s.audit, c.view()))
	last := map[string]*kagziv1.Step{} // of each step, for the stacks of its attempts are mostly the same
	for _, step := range s.steps {
		if step.GetError().GetStack() != "" {
			last[step.GetName()] = step
		}
	}
	for _, step := range s.steps {
		if last[step.GetName()] == step && payloads != 0 {
			title := fmt.Sprintf("Error of %s, attempt %d", render.Safe(step.GetName()), step.GetAttemptNumber())
			section(title, indent(render.ErrorLines(step.GetError(), v)))
		}
	}
	return lines
}

func indent(lines []string) []string {
	for i, line := range lines {
		lines[i] = "  " + line
	}
	return lines
}
