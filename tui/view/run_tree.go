package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/widget"
)

// followMost limits how many child runs are followed at a time. Each is a stream.
const followMost = 20

// treeTab shows steps, attempts and child runs as a tree. The steps of a child run are loaded when
// its node is opened.
type treeTab struct {
	tabBase
	tree  *widget.Tree
	nodes map[string]treeNode
	kids  []string              // ids of the nodes of child runs, in order
	below map[string]*model.Run // opened child runs, by run id
	live  map[string]bool       // those that are followed now

	placed bool // the cursor was placed initially
}

// treeNode says what a node stands for.
type treeNode struct {
	step  string // of the page's run
	runID string // of a child run
}

func newTreeTab(p *runPage) *treeTab {
	t := &treeTab{tabBase: newTabBase(p), tree: widget.NewTree(p.app.theme), below: map[string]*model.Run{},
		live: map[string]bool{}}
	t.tree.OnEnter(t.enter)
	return t
}

func (t *treeTab) Parts() model.Part { return model.Children }

// Hide stops following child runs.
func (t *treeTab) Hide() {
	for id := range t.live {
		t.below[id].Hide()
	}
	clear(t.live)
}

func (t *treeTab) Close() {
	for _, run := range t.below {
		run.Close()
	}
}

func (t *treeTab) Draw(c widget.Canvas) {
	if t.outdated() {
		t.nodes, t.kids = map[string]treeNode{}, nil
		t.tree.SetRoots(t.ofRun(t.p.run, "", 0))
		if !t.placed && t.p.run.Loaded() {
			t.placed = true
			t.tree.Select("step:" + t.p.firstLook())
		}
	}
	t.follow()
	if len(t.nodes) == 0 {
		drawMiddle(c, t.p.noSteps()...)
		return
	}
	t.tree.SetRect(c.X, c.Y, c.W, c.H)
	t.tree.Draw(c.Screen)
}

// follow follows exactly the child runs whose nodes are open.
func (t *treeTab) follow() {
	open := map[string]bool{}
	for _, node := range t.kids {
		if id := t.nodes[node].runID; t.tree.IsOpen(node) && len(open) < followMost {
			open[id] = true
		}
	}
	for id := range t.live {
		if !open[id] {
			t.below[id].Hide()
			delete(t.live, id)
		}
	}
	for id := range open {
		if t.live[id] {
			continue
		}
		if t.below[id] == nil {
			run := model.NewRun(t.p.app.link, id)
			run.Changed = t.Changed
			t.below[id] = run
		}
		t.live[id] = true
		t.below[id].SetParts(model.Children)
		t.below[id].Show()
	}
}

// enter opens a child run, shows the attempts of a step, or folds any other node.
func (t *treeTab) enter(n widget.Node) {
	switch node := t.nodes[n.ID]; {
	case node.runID != "":
		t.p.app.done(t.p.app.pushView("run", node.runID))
	case node.step != "":
		t.p.showAttempts(node.step)
	default:
		t.tree.Toggle()
	}
}

func (t *treeTab) Key(event *tcell.EventKey) bool { return t.tree.Key(event) }

func (t *treeTab) Mouse(action tview.MouseAction, event *tcell.EventMouse) bool {
	consumed, _ := t.tree.MouseHandler()(action, event, func(tview.Primitive) {})
	return consumed
}

// Step returns the step of the node under the cursor, if it belongs to this run.
func (t *treeTab) Step() (string, bool) {
	n, ok := t.tree.Selected()
	if !ok || t.nodes[n.ID].step == "" {
		return "", false
	}
	return t.nodes[n.ID].step, true
}

// Actions open and fold nodes.
func (t *treeTab) Actions() []*Action {
	return []*Action{
		{Name: "open", Keys: []string{"enter"}, Help: "open the attempts of a step, or a child run", Group: GroupMove,
			Hint: 1, Run: simply(func() {
				if n, ok := t.tree.Selected(); ok {
					t.enter(n)
				}
			})},
		{Name: "fold", Keys: []string{"space"}, Help: "fold or unfold the row under the cursor", Group: GroupMove,
			Hint: 3, Run: simply(t.tree.Toggle)},
		{Name: "fold-all", Keys: []string{"["}, Help: "fold everything", Group: GroupView,
			Run: simply(func() { t.tree.FoldAll(true) })},
		{Name: "unfold-all", Keys: []string{"]"}, Help: "unfold everything that is loaded", Group: GroupView,
			Run: simply(func() { t.tree.FoldAll(false) })},
		t.p.copyIDAction(), t.p.copyJSONAction(), t.p.showJSONAction(),
	}
}

// deepest limits how many generations of runs are shown.
const deepest = 10

// ofRun returns the steps of a run with their children, then the child runs without a known step.
func (t *treeTab) ofRun(run *model.Run, prefix string, depth int) []widget.Node {
	children := run.Children().All()
	placed := map[string]bool{}
	byStep := map[string][]*kagziv1.Workflow{}
	byID := map[string]*kagziv1.Workflow{}
	for _, child := range children {
		byStep[child.GetParentStepId()] = append(byStep[child.GetParentStepId()], child)
		byID[child.GetRunId()] = child
	}
	var nodes []widget.Node
	attempts := map[string][]*kagziv1.Step{}
	for _, s := range run.Steps() {
		attempts[s.GetName()] = append(attempts[s.GetName()], s)
	}
	ended := !endOf(run.Workflow()).IsZero()
	lanes := run.Lanes()
	wide := format.NameWidth(lanes)
	for i := range lanes {
		l := &lanes[i]
		node := t.ofStep(l, attempts[l.Name], prefix, ended, wide)
		for _, s := range attempts[l.Name] {
			list := byStep[s.GetStepId()]
			if id := s.GetChildRunId(); id != "" && byID[id] == nil {
				list = append(list, &kagziv1.Workflow{RunId: id})
			} else if id != "" && byID[id].GetParentStepId() != s.GetStepId() {
				list = append(list, byID[id])
			}
			for _, child := range list {
				if !placed[child.GetRunId()] {
					placed[child.GetRunId()] = true
					node.Children, node.Open = append(node.Children, t.ofChild(child, prefix, depth)), true
				}
			}
		}
		nodes = append(nodes, node)
	}
	for _, child := range children {
		if !placed[child.GetRunId()] {
			nodes = append(nodes, t.ofChild(child, prefix, depth))
		}
	}
	return nodes
}

// ofStep returns a step with its attempts, if it has more than one.
func (t *treeTab) ofStep(l *model.Lane, attempts []*kagziv1.Step, prefix string, ended bool, wide int) widget.Node {
	sign := theme.OfAttempt(l.Step, ended)
	node := widget.Node{ID: prefix + "step:" + l.Name, Open: sign.Style == render.Bad,
		Cells: t.cells(l.Step, sign, l.Name, wide)}
	own := treeNode{}
	if prefix == "" {
		own.step = l.Name
	}
	t.nodes[node.ID] = own
	if len(attempts) < 2 {
		return node
	}
	node.Cells = slices.Insert(node.Cells, 2,
		render.Cell{Text: fmt.Sprintf("%d attempts", len(attempts)), Style: render.Waiting})
	for _, s := range attempts {
		sign := theme.OfAttempt(s, ended)
		attempt := widget.Node{ID: prefix + "attempt:" + s.GetStepId(),
			Cells: t.cells(s, sign, "attempt "+strconv.Itoa(int(s.GetAttemptNumber())), 0)}
		t.nodes[attempt.ID] = own
		node.Children = append(node.Children, attempt)
	}
	return node
}

// cells returns the row of an attempt: sign, name, duration and result.
func (t *treeTab) cells(s *kagziv1.Step, sign theme.Sign, name string, wide int) []render.Cell {
	began := s.GetStartedAt()
	if began == nil {
		began = s.GetCreatedAt()
	}
	name += strings.Repeat(" ", max(wide-render.Width(render.Safe(name)), 0))
	cells := []render.Cell{t.mark(sign), {Text: name}}
	if s.GetFinishedAt() != nil || sign.Word != "stopped" {
		cells = append(cells, render.Cell{Text: fmt.Sprintf("%6s", t.p.app.clock.Took(began, s.GetFinishedAt())),
			Style: render.Dim})
	}
	style := render.Dim
	if s.GetError() != nil {
		style = sign.Style
	}
	result := render.StepResult(s, t.p.app.clock.View())
	if s.GetOverriddenBy() != "" {
		result, style = "set by "+s.GetOverriddenBy()+": "+s.GetOverrideReason(), render.Strong
	}
	if result != "" {
		cells = append(cells, render.Cell{Text: result, Style: style})
	}
	return cells
}

func (t *treeTab) mark(sign theme.Sign) render.Cell {
	return render.Cell{Text: t.p.app.look.Glyph(sign.Glyph), Style: sign.Style}
}

// ofChild returns a run below a step, with its own steps if it was opened.
func (t *treeTab) ofChild(r *kagziv1.Workflow, prefix string, depth int) widget.Node {
	id := prefix + "run:" + r.GetRunId()
	t.nodes[id] = treeNode{runID: r.GetRunId()}
	t.kids = append(t.kids, id)
	node := widget.Node{ID: id, Cells: t.childCells(r)}
	run := t.below[r.GetRunId()]
	switch {
	case depth+1 >= deepest:
		node.Children = t.remark(id, "enter opens it")
	case run != nil && run.Workflow() != nil && run.Loaded():
		if node.Children = t.ofRun(run, id+"/", depth+1); node.Children == nil {
			node.Children = t.remark(id, "no steps")
		}
	case run != nil && run.Err() != nil:
		node.Children = t.remark(id, sentence(run.Err()))
	case len(t.live) >= followMost:
		node.Children = t.remark(id, fmt.Sprintf(
			"%d runs are open already: fold one, or open this one with enter", followMost))
	default:
		node.Children = t.remark(id, "Reading …")
	}
	return node
}

// childCells returns the row of a child run. Only the id is known if it is not in the list of
// children.
func (t *treeTab) childCells(r *kagziv1.Workflow) []render.Cell {
	if r.GetWorkflowType() == "" {
		return []render.Cell{{Text: "run " + r.GetRunId(), Style: render.Dim}}
	}
	sign := theme.OfRun(r)
	cells := []render.Cell{
		t.mark(sign), {Text: r.GetWorkflowType(), Style: render.Strong}, {Text: runTitle(r)},
		{Text: sign.Word, Style: sign.Style},
		{Text: t.p.app.clock.Took(r.GetStartedAt(), r.GetFinishedAt()), Style: render.Dim},
	}
	if note := render.RunNote(r, t.p.app.clock.View()); note != "" {
		cells = append(cells, render.Cell{Text: note, Style: render.Dim})
	}
	return cells
}

// remark returns a single text line as the content of a node.
func (t *treeTab) remark(id, text string) []widget.Node {
	return []widget.Node{{ID: id + "/", Cells: []render.Cell{{Text: text, Style: render.Dim}}}}
}
