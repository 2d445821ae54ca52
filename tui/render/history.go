package render

import (
	"strconv"
	"strings"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// SignalsTable lists the signals of a run in order of arrival.
func SignalsTable(signals []*kagziv1.Signal, v View) Table {
	t := Table{Columns: []Column{
		{Title: "#", Right: true}, {Title: "SIGNAL", Flex: true}, {Title: "RECEIVED"}, {Title: "TAKEN BY", Flex: true},
		{Title: "SIGNAL ID", Flex: true, Spare: 1}, {Title: "PAYLOAD", Flex: true},
	}}
	for _, s := range signals {
		taken := s.GetStepName()
		if s.StepName == nil {
			taken = "-"
		}
		t.Rows = append(t.Rows, []Cell{
			{Text: strconv.FormatInt(s.GetSequence(), 10)}, Text(s.GetName()), {Text: v.Time(s.GetReceivedAt())},
			Text(taken), Text(s.GetSignalId()),
			Text(PayloadLine(s.GetPayload(), v.Payloads)),
		})
	}
	return t
}

// AuditTable lists who did what, in the given order.
func AuditTable(events []*kagziv1.AuditEvent, v View) Table {
	t := Table{Columns: []Column{
		{Title: "WHEN"}, {Title: "WHO", Flex: true}, {Title: "WHAT", Flex: true}, {Title: "OUTCOME", Flex: true},
		{Title: "DETAIL", Flex: true}, {Title: "REASON", Flex: true},
	}}
	for _, e := range events {
		t.Rows = append(t.Rows, []Cell{{Text: v.Time(e.GetAt())}, Text(e.GetActor()), Text(e.GetMethod()),
			auditOutcome(e), Text(e.GetDetail()), Text(e.GetReason())})
	}
	return t
}

func auditOutcome(e *kagziv1.AuditEvent) Cell {
	c := Text(e.GetOutcome())
	if e.GetOutcome() != "ok" {
		c.Style = Bad
	}
	return c
}

// ChangesTable is AuditTable with a column for the changed object.
func ChangesTable(events []*kagziv1.AuditEvent, v View) Table {
	t := Table{Columns: []Column{
		{Title: "WHEN"}, {Title: "WHO", Flex: true}, {Title: "WHAT", Flex: true}, {Title: "TO", Flex: true},
		{Title: "OUTCOME", Flex: true},
		{Title: "DETAIL", Flex: true}, {Title: "REASON", Flex: true}, {Title: "FROM", Flex: true, Spare: 1},
	}}
	for _, e := range events {
		t.Rows = append(t.Rows, []Cell{
			{Text: v.Time(e.GetAt())}, Text(e.GetActor()), Text(e.GetMethod()),
			Text(strings.TrimSpace(e.GetSubject() + " " + e.GetSubjectId())), auditOutcome(e),
			Text(e.GetDetail()), Text(e.GetReason()), Text(e.GetPeer()),
		})
	}
	return t
}

// AuditPairs describes an audit event.
func AuditPairs(e *kagziv1.AuditEvent, v View) []Pair {
	var p pairs
	p.time("When", e.GetAt(), v)
	p.text("Who", e.GetActor())
	p.text("From", e.GetPeer())
	p.text("What", e.GetMethod())
	p.text("Namespace", e.GetNamespace())
	p.text("To", strings.TrimSpace(e.GetSubject()+" "+e.GetSubjectId()))
	p.cell("Outcome", auditOutcome(e))
	p.text("Detail", e.GetDetail())
	p.text("Reason", e.GetReason())
	return p
}

// OverridesTable lists the steps that people overrode, with the record before. steps holds all
// attempts of a run's steps in the order in which they started.
func OverridesTable(steps []*kagziv1.Step, v View) Table {
	t := Table{Columns: []Column{
		{Title: "STEP", Flex: true}, {Title: "WHEN"}, {Title: "WHO", Flex: true}, {Title: "WHY", Flex: true},
		{Title: "NOW", Flex: true}, {Title: "BEFORE", Flex: true},
	}}
	before := map[string]*kagziv1.Step{} // by name
	for _, s := range steps {
		if s.GetOverriddenBy() != "" {
			at := s.GetFinishedAt()
			if at == nil {
				at = s.GetCreatedAt()
			}
			t.Rows = append(t.Rows, []Cell{
				Text(s.GetName()), {Text: v.Time(at)}, Text(s.GetOverriddenBy()), Text(s.GetOverrideReason()),
				Text(record(s, v)), Text(record(before[s.GetName()], v)),
			})
		}
		before[s.GetName()] = s
	}
	return t
}

// record returns the status and result of a step's attempt as raw text; "-" if there is none.
func record(s *kagziv1.Step, v View) string {
	if s == nil {
		return "-"
	}
	text := StepStatus(s.GetStatus())
	if result := StepResult(s, v); result != "" {
		text += ": " + result
	}
	return text
}

// ExplainPairs returns the facts of an explanation, to show below its sentence.
func ExplainPairs(e *kagziv1.ExplainWorkflowResponse, v View) []Pair {
	var p pairs
	p.text("Blocker", Blocker(e.GetBlocker()))
	p.text("Since", v.near(e.GetSince())) // in the same words as the sentence
	p.text("Next", v.near(e.GetNextAt()))
	return p
}

// StackLines returns the stacks of an explanation, each below a line that names its branch. They may hold
// any text.
func StackLines(e *kagziv1.ExplainWorkflowResponse) (lines []string) {
	for _, b := range e.GetBlocked() {
		if b.GetStack() == "" {
			continue
		}
		title := "Stack:"
		if b.GetBranch() != "" {
			title = "Stack of branch " + b.GetBranch() + ":"
		}
		lines = append(lines, title)
		for line := range strings.SplitSeq(strings.TrimSpace(b.GetStack()), "\n") {
			lines = append(lines, "  "+strings.ReplaceAll(line, "\t", "    "))
		}
	}
	return lines
}
