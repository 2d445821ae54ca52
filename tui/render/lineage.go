package render

import (
	"strconv"
	"strings"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Lineage is a run with its steps and related runs. The caller makes sure that no run contains
// itself, so the tree is finite.
type Lineage struct {
	Run       *kagziv1.Workflow
	Steps     []*kagziv1.Step // every attempt, in the order in which the steps started
	Children  []*Lineage
	Handlers  []*Lineage // runs that handle its failure
	Continued []*Lineage // runs that it continued as, in order
	Omitted   string     // raw text: what is left out below, and why; empty if nothing is
}

// LineageTable shows a lineage as a tree: a row for each run and for the latest attempt of each
// step, with children below their step.
func LineageTable(l *Lineage, v View) Table {
	t := Table{Columns: []Column{
		{Title: "RUN, STEP", Flex: true}, {Title: "STATUS"}, {Title: "ATTEMPT", Right: true, Spare: 2},
		{Title: "TOOK", Right: true, Spare: 1}, {Title: "RUN ID"}, {Title: "NOTE", Flex: true},
	}}
	for _, n := range runBranches(l, "", v) {
		n.rows(&t, "", "")
	}
	return t
}

// LineageDocument returns a lineage for programs; related runs are nested.
func LineageDocument(l *Lineage) Object {
	below := func(list []*Lineage) []any {
		documents := make([]any, len(list))
		for i, one := range list {
			documents[i] = LineageDocument(one)
		}
		return documents
	}
	return Object{
		{"workflow", Document(l.Run)}, {"steps", Documents(l.Steps)}, {"children", below(l.Children)},
		{"handlers", below(l.Handlers)},
		{"continued_as", below(l.Continued)}, {"omitted", l.Omitted},
	}
}

// branch is a row of the tree and the rows below it.
type branch struct {
	cells []Cell
	below []branch
}

// rows adds the branch's rows; the first one begins with lead, the others with indent.
func (b branch) rows(t *Table, lead, indent string) {
	cells := append([]Cell{{Text: lead + b.cells[0].Text, Style: b.cells[0].Style}}, b.cells[1:]...)
	t.Rows = append(t.Rows, cells)
	for i, n := range b.below {
		if i == len(b.below)-1 {
			n.rows(t, indent+"└─ ", indent+"   ")
		} else {
			n.rows(t, indent+"├─ ", indent+"│  ")
		}
	}
}

// runBranches returns a run and, beside it, the runs that it continued as.
func runBranches(l *Lineage, role string, v View) []branch {
	r := l.Run
	name := Text(r.GetWorkflowType())
	name.Text, name.Style = Safe(role)+name.Text, Strong
	b := branch{cells: []Cell{
		name, RunStatusCell(r), {Text: strconv.Itoa(int(r.GetAttempts()))},
		{Text: v.Took(r.GetStartedAt(), r.GetFinishedAt())}, Text(r.GetRunId()), Text(RunNote(r, v)),
	}}
	placed := map[*Lineage]bool{}
	attempts := map[string]string{} // names of steps, by the ids of their attempts
	for _, s := range l.Steps {
		attempts[s.GetStepId()] = s.GetName()
	}
	for _, s := range latest(l.Steps) {
		b.below = append(b.below, stepBranch(s, l.Children, attempts, placed, v))
	}
	for _, child := range l.Children {
		if !placed[child] {
			b.below = append(b.below, runBranches(child, childRole(child, nil), v)...)
		}
	}
	for _, h := range l.Handlers {
		b.below = append(b.below, runBranches(h, "failure handler: ", v)...)
	}
	if l.Omitted != "" {
		b.below = append(b.below, branch{cells: []Cell{{Text: "… " + Safe(l.Omitted), Style: Dim}, {}, {}, {}, {}, {}}})
	}
	branches := []branch{b}
	for _, next := range l.Continued {
		branches = append(branches, runBranches(next, "continued as: ", v)...)
	}
	return branches
}

// childRole says whether a run is a child of the step or was only started by its code.
func childRole(l *Lineage, s *kagziv1.Step) string {
	if OnItsOwn(l.Run) && s.GetChildRunId() != l.Run.GetRunId() {
		return "started: "
	}
	return "child: "
}

// stepBranch returns a step with the children that it started.
func stepBranch(s *kagziv1.Step, children []*Lineage, attempts map[string]string, placed map[*Lineage]bool,
	v View) branch {
	note := StepResult(s, v)
	if s.GetOverriddenBy() != "" {
		note = strings.TrimSpace(note + " (set by " + s.GetOverriddenBy() + ")")
	}
	b := branch{cells: []Cell{
		Text(s.GetName()), {Text: StepStatus(s.GetStatus()), Style: StepStyle(s.GetStatus())},
		{Text: strconv.Itoa(int(s.GetAttemptNumber()))},
		{Text: v.Took(s.GetStartedAt(), s.GetFinishedAt())}, {}, Text(note),
	}}
	for _, child := range children {
		if placed[child] || s.GetChildRunId() != child.Run.GetRunId() &&
			attempts[child.Run.GetParentStepId()] != s.GetName() {
			continue
		}
		placed[child] = true
		b.below = append(b.below, runBranches(child, childRole(child, s), v)...)
	}
	return b
}

// latest keeps the last attempt of each step, at the place of the first.
func latest(steps []*kagziv1.Step) []*kagziv1.Step {
	var list []*kagziv1.Step
	place := map[string]int{}
	for _, s := range steps {
		if i, known := place[s.GetName()]; known {
			list[i] = s
			continue
		}
		place[s.GetName()] = len(list)
		list = append(list, s)
	}
	return list
}
